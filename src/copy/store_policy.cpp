#include "copy/store_policy.h"

#include "base/knob.h"
#include "os/clock.h"

#include <algorithm>
#include <string>

namespace near::copy {

namespace {

const std::string& named() { return base::knobs().stores.text; }

} // namespace

void StorePolicy::begin_with(const std::array<std::uint32_t, 2>& costs) {
  if (named() != "auto") streaming_ = named() == "streaming";
  if (costs[0] == 0 || costs[1] == 0) return;
  for (int kind = 0; kind < 2; ++kind) cost_[kind] = static_cast<float>(costs[kind]) / 1024;
  // Each kind was measured after copies of the same kind.
  if (named() == "auto") streaming_ = cost_[0] > leave_ * cost_[1];
}

StorePolicy::Use StorePolicy::begin_timed() {
  next_ = interval_ / 2;
  if (named() != "auto") {
    streaming_ = named() == "streaming";
    return {streaming_ ? Store::streaming : Store::cached, os::monotonic_ns()};
  }
  // Times the kind in use, to keep its statistics current, and the other kind, in turn.
  const bool other = (turn_++ & 1) != 0;
  return {streaming_ != other ? Store::streaming : Store::cached, os::monotonic_ns()};
}

void StorePolicy::end_timed(const Use& use, std::uint64_t bytes) {
  const float took =
      static_cast<float>(os::monotonic_ns() - use.since_ns) * 1024.0f / static_cast<float>(bytes);
  const bool streaming = use.stores == Store::streaming;
  float &cost = cost_[streaming], &last = last_[streaming];
  // These copies may have been interrupted, but rarely twice in a row. No disturbance makes a copy faster.
  const bool surprising = streaming == streaming_ && cost != 0 && took > 2 * cost;
  cost = last == 0 ? took : std::min(last, took);
  last = took;
  interval_ = surprising ? std::max(interval_ / 8, shortest) : std::min(interval_ * 2, longest);
  if (named() == "auto") choose();
  next_ = interval_ / 2;
}

void StorePolicy::choose() {
  const bool known = cost_[0] != 0 && cost_[1] != 0;
  if (known && better_streaming() == streaming_) {
    cheap_ = 0;
    return;
  }
  if (known && streaming_ && ++cheap_ < wanted_) return;
  interval_ = shortest;
  if (!known) return;
  cheap_ = 0;
  if (!streaming_) wanted_ = std::min(2 * wanted_, most_wanted);
  streaming_ = !streaming_;
  if (!streaming_) interval_ = settling_;
}

} // namespace near::copy
