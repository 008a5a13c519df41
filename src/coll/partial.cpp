// See partial.h.
#include "coll/partial.h"

namespace near::coll {

Result Partial::make_incoming(Buffer& incoming) {
  if (room_ == nullptr) {
    if (home_ != nullptr && value_.address != home_) {
      room_ = home_;
    } else {
      Buffer made;
      NEAR_TRY(group_.scratch(value_.count, *value_.type, made));
      room_ = made.address;
    }
  }
  incoming = Buffer{room_, value_.count, value_.type};
  return {};
}

Result Partial::absorb_lower() {
  if (!writable_) {
    Buffer copy{home_, value_.count, value_.type};
    if (home_ == nullptr || room_ == home_) NEAR_TRY(group_.scratch(value_.count, *value_.type, copy));
    NEAR_TRY(group_.copy(value_, copy));
    value_ = copy;
    writable_ = true;
  }
  return group_.reduce(operation_, Buffer{room_, value_.count, value_.type}, value_);
}

Result Partial::absorb_higher() {
  NEAR_TRY(group_.reduce(operation_, value_, Buffer{room_, value_.count, value_.type}));
  take_incoming();
  return {};
}

void Partial::take_incoming() {
  void* old = value_.address;
  value_.address = room_;
  room_ = writable_ ? old : nullptr;
  writable_ = true;
}

Result Partial::settle() { return group_.copy(value_, Buffer{home_, value_.count, value_.type}); }

} // namespace near::coll
