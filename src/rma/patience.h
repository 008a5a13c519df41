// How long an origin goes on expecting something of a target that has disappointed it (handed_calls.h).
#pragma once

#include <cstdint>

namespace near::rma {

/// Whether to try something again that has failed lately: not the next time, then not the next 2, 4, ... 64 times, until it succeeds.
class Patience {
public:
  /// Whether to try now.
  bool tries() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  /// Whether it failed the last time that it was tried.
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

/// Whether a target that sleeps in MPI is worth waking: if many completions that it does not answer follow each other. Waking it
/// counts as a failure until it has answered for a while, which a target that sleeps again at once does not do.
class Waking {
public:
  /// A completion begins at `now` (nanoseconds) without an answer yet. Returns whether there are enough of these, one soon after another.
  bool begins(std::uint64_t now) {
    if (begun_++ == 0) since_ = now;
    if (begun_ < enough) return false;
    begun_ = 0;
    return now - since_ < enough * interval_ns;
  }
  /// Whether to wake it. If so, that is taken for done.
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
  std::uint32_t answered_ = 0; ///< completions that were answered, one after another
  std::uint64_t since_ = 0;    ///< when the first of `begun_` began
};

} // namespace near::rma
