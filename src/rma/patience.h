// How long an origin keeps expecting something from a target that has disappointed it (handed_calls.h).
#pragma once

#include <cstdint>

namespace near::rma {

/// Whether to retry something that failed lately. Skips the next try, then the next 2, 4, ... 64 tries, until one succeeds.
class Patience {
public:
  /// Whether to try now.
  bool tries() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  /// Whether the last try failed.
  bool has_failed() const { return next_ != 0; }
  void succeeded() { left_ = next_ = 0; }
  void failed() {
    next_ = next_ == 0 ? 1 : next_ < most ? 2 * next_ : most;
    left_ = next_;
  }

private:
  static constexpr std::uint32_t most = 64;
  std::uint32_t left_ = 0, next_ = 0;
};

/// Whether to wake a target that sleeps in MPI: worthwhile if it leaves many completions in a row unanswered. Waking counts as a
/// failure until the target has answered for a while; a target that goes back to sleep at once does not.
class Waking {
public:
  /// A completion begins at `now` (nanoseconds) that has no answer yet.
  /// Returns whether there are enough of these in close succession.
  bool begins(std::uint64_t now) {
    if (begun_++ == 0) since_ = now;
    if (begun_ < enough) return false;
    begun_ = 0;
    return now - since_ < enough * interval_ns;
  }
  /// Whether to wake the target. If true, the target is assumed to be woken.
  bool tries() {
    if (!patience_.tries()) return false;
    patience_.failed();
    return true;
  }
  void answered() {
    begun_ = 0;
    if (++answered_ == worth_it) patience_.succeeded();
  }
  void not_answered() { answered_ = 0; }

private:
  static constexpr std::uint32_t enough = 16, worth_it = 64;
  static constexpr std::uint64_t interval_ns = 20'000;
  Patience patience_;
  std::uint32_t begun_ = 0;    ///< completions since one was answered, or since there were enough
  std::uint32_t answered_ = 0; ///< completions answered in a row
  std::uint64_t since_ = 0;    ///< when the first of `begun_` began
};

} // namespace near::rma
