// Chooses the protocol of a large message: the one that was fastest for earlier messages of its size and pair.
//
// Two processors that share a cache and two that do not have different best protocols, and a virtual machine
// may change from one case to the other while a program runs. So nothing is derived from sizes alone. The
// receiver, which alone decides, times every transfer. It tries protocols that were not best again, often at
// first, then rarely, and often again when the present one becomes slower. The initial estimates
// (segment/initial_estimates.h) say which protocol comes first, and save the trials of protocols that they
// call slower until the first one is measured.
//
// A protocol also has a cost after the transfer: a program that rewrites what another processor has read pays
// for each cache line (doc/adr/0014). So the tuner also measures the pause until the next transfer begins, and
// adds what the pause is longer after one protocol than after another to that protocol's cost. If the program
// computes for much longer than a transfer takes, pauses say nothing, and the choice matters little.
#pragma once

#include "segment/initial_estimates.h"

#include <array>
#include <cstdint>

namespace near::shm {

using segment::Basis;
using segment::Protocol;

class Tuner {
public:
  /// `shown`: where tools read the statistics; may be null. `estimates`: the initial estimates, whose origin is
  /// `basis`; may be null, and must outlive the tuner.
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
    std::array<Basis, protocols> basis{}; ///< origin of the cost; Basis::none: unknown
    /// Of the pause after a transfer, nanoseconds a KiB: the shortest recent one; below 0: unknown.
    std::array<float, protocols> pause{};
    std::uint64_t ended_ns = 0;      ///< when the last transfer ended
    Protocol last = Protocol::count; ///< the protocol of the last transfer
    Mask possible = 0;               ///< protocols that were possible for at least one message
    bool named = false;              ///< the user chose the protocol (NEAR_COPY)
    std::uint32_t messages = 0, next_trial = first_trial, interval = first_interval;
    std::uint32_t worse = 0; ///< messages in a row for which the present protocol was much slower than before
    Protocol present = Protocol::count;
    // A trial takes several messages in a row, because the first ones find the protocol's memory cold.
    Protocol trial = Protocol::count; ///< Protocol::count: no trial is under way
    std::uint32_t measured = 0;       ///< messages of the trial that have arrived
    float least = 0;                  ///< cost of the later half of them
    float best_cost = 0;              ///< of the best protocol known when the trial began; 0: none
    std::uint32_t slow = 0; ///< messages of the trial, in a row, that were far slower than the best protocol
    std::uint8_t last_tried = 0;
  };

  /// Returns the protocol for a message of `bytes`; `possible` must not be empty.
  Protocol choose(std::uint64_t bytes, Mask possible);
  /// Records that the user chose the protocol of a message: it is only timed.
  void take(Protocol protocol, std::uint64_t bytes);
  /// Records a transfer of `bytes`. Both times must come from the same clock.
  void learn(Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns, std::uint64_t ended_ns);

  static constexpr int classes = segment::size_classes;
  /// The size class of a message. Class 0: less than 8 KiB; each further class: twice as much.
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

} // namespace near::shm
