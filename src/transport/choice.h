// Which way a large message takes: what earlier ones of its size and pair really took, corrected all the
// time.
//
// Of two processors that share a cache and two that do not, each has its own best way, and a virtual machine
// may change from one to the other while a program runs. So nothing is derived from sizes alone: every
// transfer is timed by its receiver, who alone decides; ways that were not best are looked at again, at first
// often, then seldom, and often again when the present one gets worse. Priors (segment/priors.h) say which
// way is tried first, and spare the looks at what they call slower until that one is measured.
//
// A way also leaves something behind: a program that rewrites what another processor has read pays for each
// line, after the transfer (doc/adr/0014). So the pause until the next transfer begins is looked at too: what
// it is longer after one way than after another counts as that way's cost. Where the program computes for
// much longer than a transfer takes, pauses tell nothing, and matter little.
#pragma once

#include "segment/priors.h"

#include <array>
#include <cstdint>

namespace near::transport {

using segment::Basis;
using segment::Way;

class Choice {
public:
  /// `shown`: where tools read what is known; may be null. `priors`: what to begin with, resting on `basis`;
  /// they may be null too, and outlive this.
  explicit Choice(segment::PairFigures* shown = nullptr, const segment::PairPriors* priors = nullptr,
                  Basis basis = Basis::none)
      : shown_(shown), priors_(priors), basis_(basis) {
    for (Class& each : classes_) each.pause.fill(-1);
  }

  static constexpr int ways = static_cast<int>(Way::count);
  using Mask = unsigned; ///< bit w: way w is possible for this message
  static constexpr Mask bit(Way way) { return 1u << static_cast<unsigned>(way); }

  /// What is known of one size class.
  struct Class {
    std::array<float, ways> cost{};  ///< nanoseconds a KiB, smoothed
    std::array<Basis, ways> basis{}; ///< of the cost; Basis::none: it is not known
    /// After it, nanoseconds a KiB: the shortest of late; below 0: not known.
    std::array<float, ways> pause{};
    std::uint64_t ended_ns = 0; ///< the last transfer
    Way last = Way::count;      ///< which way that took
    Mask possible = 0;          ///< for one message at least
    bool named = false;         ///< the present way was named from outside
    std::uint32_t messages = 0, next_look = first_look, interval = first_interval;
    std::uint32_t worse = 0; ///< how often in a row the present way was much slower than it used to be
    Way present = Way::count;
    // A look is some messages in a row: the first ones find the way's memory cold.
    Way looking = Way::count;   ///< Way::count: not now
    std::uint32_t measured = 0; ///< messages of it that arrived
    float least = 0;            ///< cost of the later half of them
    float best_cost = 0;        ///< of the best way known when the look began; 0: none
    std::uint32_t slow = 0;     ///< of them, in a row, that were far behind the best way
    std::uint8_t looked_at = 0;
  };

  /// The way for a message of `bytes`; `possible` is not empty.
  Way choose(std::uint64_t bytes, Mask possible);
  /// The way was named from outside; it is only timed.
  void take(Way way, std::uint64_t bytes);
  /// A transfer of `bytes` is over. The times are of one clock.
  void learn(Way way, std::uint64_t bytes, std::uint64_t began_ns, std::uint64_t ended_ns);

  static constexpr int classes = segment::size_classes;
  /// Class 0: less than 8 KiB; each further one twice as much.
  static int class_of(std::uint64_t bytes);
  const Class& of(int size_class) const { return classes_[static_cast<std::size_t>(size_class)]; }

private:
  static constexpr std::uint32_t first_look = 8, first_interval = 32, longest_interval = 2048;
  static constexpr std::uint32_t shortest_look = 8;
  static std::uint32_t look_length(Way way, std::uint64_t bytes);

  void begin(Class& here, int size_class);
  static float total(const Class& here, Way way);
  static Way best(const Class& here, Mask possible);
  static void note_pause(Class& here, Way way, std::uint64_t bytes, std::uint64_t began_ns);
  static Way begin_look(Class& here, Way way);

  void show(int size_class) const;

  segment::PairFigures* shown_;
  const segment::PairPriors* priors_;
  Basis basis_;
  std::array<Class, classes> classes_{};
};

} // namespace near::transport
