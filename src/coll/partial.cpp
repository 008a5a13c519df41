// See partial.h.
#include "coll/partial.h"

namespace near::coll {

Result Partial::make_incoming(Buffer& incoming) {
  if (other_ == nullptr) {
    if (home_ != nullptr && value_.address != home_) {
      other_ = home_;
    } else {
      Buffer made;
      NEAR_TRY(group_.scratch(value_.count, *value_.type, made));
      other_ = made.address;
    }
  }
  incoming = Buffer{other_, value_.count, value_.type};
  return {};
}

Result Partial::absorb_lower() {
  if (!writable_) {
    Buffer copy{home_, value_.count, value_.type};
    if (home_ == nullptr || other_ == home_) NEAR_TRY(group_.scratch(value_.count, *value_.type, copy));
    NEAR_TRY(group_.copy(value_, copy));
    value_ = copy;
    writable_ = true;
  }
  return group_.reduce(operation_, Buffer{other_, value_.count, value_.type}, value_);
}

Result Partial::absorb_higher() {
  NEAR_TRY(group_.reduce(operation_, value_, Buffer{other_, value_.count, value_.type}));
  take_incoming();
  return {};
}

void Partial::take_incoming() {
  void* old = value_.address;
  value_.address = other_;
  other_ = writable_ ? old : nullptr;
  writable_ = true;
}

Result Partial::settle() { return group_.copy(value_, Buffer{home_, value_.count, value_.type}); }

} // namespace near::coll
