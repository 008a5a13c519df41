#include "shm/store_policy.h"

#include "base/knob.h"
#include "os/clock.h"

#include <algorithm>

namespace near::shm {

void StorePolicy::timed(void* to, const void* from, std::uint64_t bytes, bool streaming) {
  std::uint64_t began = os::monotonic_ns();
  copy::copy(to, from, bytes, streaming ? copy::Store::streaming : copy::Store::cached);
  float took = static_cast<float>(os::monotonic_ns() - began) * 1024.0f / static_cast<float>(bytes);
  float& cost = cost_[streaming];
  // Raise the cost slowly, because this copy may have been interrupted. Lower it at once, because no
  // disturbance makes a copy faster.
  cost = cost == 0 || took < cost ? took : cost + 0.2f * std::min(took - cost, 4 * cost);
}

void StorePolicy::begin_with(const std::array<std::uint32_t, 2>& costs) {
  if (costs[0] == 0 || costs[1] == 0) return;
  for (int kind = 0; kind < 2; ++kind) cost_[kind] = static_cast<float>(costs[kind]) / 1024;
  streaming_ = better_streaming();
}

void StorePolicy::show() const {
  if (shown_ == nullptr) return;
  for (int kind = 0; kind < 2; ++kind)
    shown_->store_cost[kind].store_relaxed(segment::statistic_of(cost_[kind]));
  shown_->streaming.store_relaxed(streaming_);
}

void StorePolicy::copy(void* to, const void* from, std::uint64_t bytes) {
  if (next_-- != 0) [[likely]] {
    copy::copy(to, from, bytes, streaming_ ? copy::Store::streaming : copy::Store::cached);
    return;
  }
  static const std::string& named = base::knobs().stores.text;
  if (named != "auto") {
    streaming_ = named == "streaming";
    timed(to, from, bytes, streaming_);
  } else {
    // Time the kind in use, to keep its statistics current, and the other kind in turn.
    bool other = (turn_++ & 1) != 0;
    timed(to, from, bytes, streaming_ != other);
    if (cost_[0] != 0 && cost_[1] != 0) {
      bool better = better_streaming();
      interval_ = better == streaming_ ? std::min(interval_ * 2, longest) : shortest;
      streaming_ = better;
    }
  }
  next_ = interval_ / 2;
  show();
}

} // namespace near::shm
