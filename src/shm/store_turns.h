// Which stores a process uses in turns that are long enough to be timed each, from what they have cost.
//
// Now and then some turns in a row try the other kind: the first of them meets caches as the present kind leaves them, and does not
// count. Least costs are compared, since disturbances only add.
#pragma once

#include "copy/copy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace near::shm {

class StoreTurns {
public:
  /// `first`: the stores that are used first. `interval`: turns before the first trial of the others.
  StoreTurns(copy::Store first, std::uint32_t interval)
      : present_(first), shortest_(interval), interval_(interval), left_(interval) {}

  /// For the turn that begins.
  copy::Store next() const { return trial_left_ == 0 ? present_ : other(); }
  copy::Store present() const { return present_; }

  /// The turn is over. `cost`: nanoseconds per KiB.
  void note(float cost) {
    if (trial_left_ != 0) {
      if (trial_left_-- <= counted) tried_ = std::min(tried_, cost);
      if (trial_left_ == 0 || (tried_ != unknown && tried_ > hopeless * least())) conclude();
      return;
    }
    const float usual = least();
    changed_ = cost > suspicious * usual ? changed_ + 1 : 0;
    recent_[at_++ % recent_.size()] = cost;
    if (changed_ >= patience) {
      recent_.fill(std::min(cost, recent_[(at_ - 2) % recent_.size()]));
      changed_ = 0;
      left_ = std::min(left_, shortest_); // not at once: the pauses of some programs vary all the time
    }
    if (left_ != 0) --left_;
    if (left_ != 0) return;
    trial_left_ = length;
    tried_ = unknown;
  }

  /// The turn is over, and nothing is known of its cost. A trial ends without a result, for it might go on for long.
  void skip() {
    if (trial_left_ == 0) return;
    trial_left_ = 0;
    left_ = interval_;
  }

private:
  static constexpr float unknown = std::numeric_limits<float>::max();
  /// Stores past the cache must cost less than this part of what cached ones do, and are left if cached ones cost less than this many
  /// times as much: if in doubt, stores are cached.
  static constexpr float leave_for = 0.87f, come_back_for = 1.05f;
  /// A trial ends early if its first turn that counts has cost this many times as much.
  static constexpr float hopeless = 1.25f;
  /// So many turns in a row that cost this many times as much as before say that the program or the machine has changed.
  static constexpr float suspicious = 1.5f;
  static constexpr std::uint32_t patience = 2;
  /// So many trials in a row change the kind.
  static constexpr std::uint32_t enough_wins = 2;
  /// Turns of a trial, those of them that count, and the most turns between trials.
  static constexpr std::uint32_t length = 3, counted = 2, longest = 256;

  copy::Store other() const {
    return present_ == copy::Store::cached ? copy::Store::streaming : copy::Store::cached;
  }
  float least() const { return *std::min_element(recent_.begin(), recent_.end()); }

  void conclude() {
    const float bound = present_ == copy::Store::cached ? leave_for : come_back_for;
    wins_ = tried_ < bound * least() ? wins_ + 1 : 0;
    trial_left_ = 0;
    if (wins_ == 0) {
      left_ = interval_ = std::min(2 * interval_, longest);
    } else if (wins_ < enough_wins) {
      left_ = shortest_ / 4;
    } else {
      wins_ = 0;
      left_ = interval_ = shortest_;
      present_ = other();
      recent_.fill(tried_);
    }
  }

  copy::Store present_;
  std::array<float, 4> recent_{unknown, unknown, unknown, unknown}; ///< costs of the present kind
  float tried_ = unknown;                                           ///< by the trial
  std::uint32_t at_ = 0, changed_ = 0, trial_left_ = 0, wins_ = 0;
  std::uint32_t shortest_, interval_, left_; ///< turns between trials; until the next one
};

} // namespace near::shm
