// Which protocol a large message takes: what earlier ones of its size and pair really took, corrected all the
// time.
//
// Of two processors that share a cache and two that do not, each has its own best protocol, and a virtual machine
// may change from one to the other while a program runs. So nothing is derived from sizes alone: every
// transfer is timed by its receiver, who alone decides; protocols that were not best are tried again, at first
// often, then seldom, and often again when the present one gets worse. InitialEstimates (segment/initial_estimates.h) say which
// protocol is tried first, and spare the trials of what they call slower until that one is measured.
//
// A protocol also leaves something behind: a program that rewrites what another processor has read pays for each
// line, after the transfer (doc/adr/0014). So the pause until the next transfer begins is looked at too: what
// it is longer after one protocol than after another counts as that protocol's cost. Where the program computes for
// much longer than a transfer takes, pauses tell nothing, and matter little.
#pragma once

#include "segment/initial_estimates.h"

#include <array>
#include <cstdint>

namespace near::transport {

using segment::Basis;
using segment::Protocol;

class Tuner {
public:
  /// `shown`: where tools read what is known; may be null. `estimates`: what to begin with, resting on `basis`;
  /// they may be null too, and outlive this.
  explicit Tuner(segment::PairStatistics* shown = nullptr, const segment::PairEstimates* estimates = nullptr,
                 Basis basis = Basis::none)
      : shown_(shown), estimates_(estimates), basis_(basis) {
    for (Class& each : classes_) each.pause.fill(-1);
  }

  static constexpr int protocols = static_cast<int>(Protocol::count);
  using Mask = unsigned; ///< bit w: protocol w is possible for this message
  static constexpr Mask bit(Protocol protocol) { return 1u << static_cast<unsigned>(protocol); }

  /// What is known of one size class.
  struct Class {
    std::array<float, protocols> cost{};  ///< nanoseconds a KiB, smoothed
    std::array<Basis, protocols> basis{}; ///< of the cost; Basis::none: it is not known
    /// After it, nanoseconds a KiB: the shortest of late; below 0: not known.
    std::array<float, protocols> pause{};
    std::uint64_t ended_ns = 0;      ///< the last transfer
    Protocol last = Protocol::count; ///< which protocol that took
    Mask possible = 0;               ///< for one message at least
    bool named = false;              ///< the present protocol was named from outside
    std::uint32_t messages = 0, next_trial = first_trial, interval = first_interval;
    std::uint32_t worse = 0; ///< how often in a row the present protocol was much slower than it used to be
    Protocol present = Protocol::count;
    // A trial is some messages in a row: the first ones find the protocol's memory cold.
    Protocol trial = Protocol::count; ///< Protocol::count: not now
    std::uint32_t measured = 0;       ///< messages of it that arrived
    float least = 0;                  ///< cost of the later half of them
    float best_cost = 0;              ///< of the best protocol known when the trial began; 0: none
    std::uint32_t slow = 0;           ///< of them, in a row, that were far behind the best protocol
    std::uint8_t last_tried = 0;
  };

  /// The protocol for a message of `bytes`; `possible` is not empty.
  Protocol choose(std::uint64_t bytes, Mask possible);
  /// The protocol was named from outside; it is only timed.
  void take(Protocol protocol, std::uint64_t bytes);
  /// A transfer of `bytes` is over. The times are of one clock.
  void learn(Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns, std::uint64_t ended_ns);

  static constexpr int classes = segment::size_classes;
  /// Class 0: less than 8 KiB; each further one twice as much.
  static int class_of(std::uint64_t bytes);
  const Class& of(int size_class) const { return classes_[static_cast<std::size_t>(size_class)]; }

private:
  static constexpr std::uint32_t first_trial = 8, first_interval = 32, longest_interval = 2048;
  static constexpr std::uint32_t shortest_trial = 8;
  static std::uint32_t trial_length(Protocol protocol, std::uint64_t bytes);

  void begin(Class& here, int size_class);
  static float total(const Class& here, Protocol protocol);
  static Protocol best(const Class& here, Mask possible);
  static void note_pause(Class& here, Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns);
  static Protocol begin_trial(Class& here, Protocol protocol);

  void show(int size_class) const;

  segment::PairStatistics* shown_;
  const segment::PairEstimates* estimates_;
  Basis basis_;
  std::array<Class, classes> classes_{};
};

} // namespace near::transport
