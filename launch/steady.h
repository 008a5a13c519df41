// Determines how long a value has remained the same.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace near::launch {

template <class T>
class Steady {
public:
  /// Returns whether `value` was the same in every call for at least `patience_ns` until now.
  bool lasts(T value, std::uint64_t now_ns, std::uint64_t patience_ns) {
    if (value_ != value) {
      value_ = std::move(value);
      since_ns_ = now_ns;
    }
    return now_ns >= since_ns_ + patience_ns;
  }
  void reset() { value_.reset(); }

private:
  std::optional<T> value_;
  std::uint64_t since_ns_ = 0;
};

} // namespace near::launch
