// Chooses the protocol of a large message: the one that was fastest for earlier messages of its size and
// pair.
//
// Messages whose data has gaps at either end are packed or unpacked on the way, which takes several times as long, and
// not by every protocol alike. So their costs are kept apart: a program that sends faces of a grid in turns, some of
// which have gaps, would otherwise take a slower protocol for those that have none.
//
// The best protocol depends on whether the two processors share a cache, and on a virtual machine that may
// change while a program runs. So the choice does not depend on the size alone. The receiver, which alone
// decides, times every transfer. It repeats the trials of other protocols, often at first, then rarely, and
// often again when the current one becomes slower. The initial estimates (segment/initial_estimates.h) say
// which protocol comes first, and postpone the trials of those that they rate slower until the first one has
// been measured.
//
// A trial has a price: what its messages take beyond what the best protocol would have taken. Trials are repeated only
// while their prices make up a small part of the time spent in transfers so far. If many messages are under way,
// only as many as the trial needs take its protocol.
//
// If several transfers of a pair are under way at once, each one waits for those before it. So a transfer is
// charged only for the time since the last one ended; otherwise protocols whose transfers overlap would seem as
// much slower as there are transfers under way.
//
// If messages go both ways at once, the cost of a protocol depends on what the other direction uses: both processes
// pack and unpack pipelined messages, and neither has time for the other. Two tuners that decide on their own would
// then stay with what is best beside the other's choice. Therefore one of the two processes follows the other (follow()). The
// other decides by the time until both directions are done: its own transfers plus its waits for messages to the peer.
// The follower changes with its next window, so a trial begins with a window, only its second window counts, and the
// windows right after a trial do not count.
//
// A protocol also has a cost after the transfer: a program that rewrites what another processor has read pays
// for each cache line (doc/adr/0014). So the tuner also measures the pause until the next transfer begins. If
// the pause is longer after one protocol than after another, the difference is added to that protocol's cost.
// If the program computes for much longer than a transfer takes, the pauses tell nothing, and the choice
// matters little.
#pragma once

#include "segment/initial_estimates.h"

#include <array>
#include <cstdint>

namespace near::shm {

using segment::Basis;
using segment::Protocol;

class Tuner {
public:
  /// `shown` is where tools read the statistics; may be null. `estimates` are the initial estimates, whose
  /// origin is `basis`; may be null, and must outlive the tuner.
  explicit Tuner(segment::PairStatistics* shown = nullptr, const segment::PairEstimates* estimates = nullptr,
                 Basis basis = Basis::none)
      : shown_(shown), estimates_(estimates), basis_(basis) {
    for (auto& list : classes_)
      for (Class& each : list) each.pause.fill(-1);
  }

  static constexpr int protocols = static_cast<int>(Protocol::count);
  using Mask = unsigned; ///< bit p: protocol p is possible for this message
  static constexpr Mask bit(Protocol protocol) { return 1u << static_cast<unsigned>(protocol); }

  /// What the tuner knows about the messages of one size class that have gaps, or about those that have none.
  struct Class {
    std::array<float, protocols> cost{};  ///< nanoseconds per KiB, smoothed
    std::array<Basis, protocols> basis{}; ///< origin of the cost; Basis::none: unknown
    /// The shortest recent pause after a transfer, in nanoseconds per KiB; below 0: unknown.
    std::array<float, protocols> pause{};
    std::uint64_t ended_ns = 0;      ///< when the last transfer ended
    Protocol last = Protocol::count; ///< the protocol of the last transfer
    Mask possible = 0;               ///< protocols that were possible for at least one message
    bool named = false;              ///< the user chose the protocol (NEAR_COPY)
    std::uint32_t messages = 0, next_trial = first_trial, interval = first_interval;
    std::uint32_t last_trial = 0; ///< how many messages there had been when the last trial ended
    std::uint32_t settled_at = 0; ///< the peer follows the protocol of before until there have been so many
    std::uint32_t worse = 0; ///< messages in a row for which the current protocol was much slower than before
    float worse_least = 0;   ///< the lowest cost of these
    Protocol present = Protocol::count;
    bool in_stream = false; ///< many messages are on their way in both directions
    bool exchanges = false; ///< at least one message is on its way in the other direction
    // In a stream many messages are under way, and the first of a window waits for all the others: only the mean of
    // many tells what each one costs.
    float batch_sum = 0; ///< of the costs of the present protocol's last few messages
    std::uint32_t batch_messages = 0, batch_overlapped = 0;
    // A trial consists of several consecutive messages, because the first ones find the protocol's memory
    // cold.
    Protocol trial = Protocol::count; ///< Protocol::count: no trial is under way
    std::uint32_t length = 0;         ///< number of its messages
    std::uint32_t started = 0;        ///< messages that have taken the trial's protocol
    std::uint32_t measured = 0;       ///< of these, how many have arrived
    float least = 0;                  ///< lowest cost in the later half of them
    float sum = 0;                    ///< of the costs in the present half
    std::uint32_t overlapped = 0;     ///< of these, how many began before the pair's last one had ended
    float best_cost = 0;              ///< cost of the best protocol known when the trial began; 0: none
    bool best_measured = false;       ///< it was measured with messages of this class
    std::uint32_t slow = 0; ///< messages of the trial, in a row, that were far slower than the best protocol
    std::uint8_t last_tried = 0;
    Mask tried = 0; ///< protocols that have had a trial with messages of this class
  };

  // `has_gaps`: the message's data has gaps at the sender, at the receiver, or at both.

  /// Returns the protocol for a message of `bytes` bytes. `possible` must not be empty. `sent` is the number of messages
  /// that are on their way to the peer meanwhile.
  Protocol choose(std::uint64_t bytes, Mask possible, std::uint64_t sent = 0, bool has_gaps = false);
  /// Records that the peer's choice for a message is taken over.
  void follow(Protocol protocol, std::uint64_t bytes, bool has_gaps = false);
  /// Records that the user chose the protocol of a message, so that it is only timed.
  void take(Protocol protocol, std::uint64_t bytes, bool has_gaps = false);
  /// Records a transfer of `bytes` bytes. Both times are nanoseconds of the same clock.
  void learn(Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns, std::uint64_t ended_ns,
             bool has_gaps = false);
  /// Records that messages are on their way to the peer from now on. In a stream both ways the time in which this process
  /// waits for them is part of what the transfers from the peer cost.
  void sends_began(std::uint64_t now_ns) { sends_ = {Period{now_ns, ~std::uint64_t{0}}, sends_[0]}; }
  /// Records that none are any more. Their beginning may not have been recorded.
  void sends_ended(std::uint64_t now_ns) {
    if (sends_[0].end_ns == ~std::uint64_t{0}) sends_[0].end_ns = now_ns;
  }
  /// Records that a protocol that choose() returned cannot move the message.
  void refused(Protocol protocol, std::uint64_t bytes, bool has_gaps = false);

  /// Whether no transfer has been recorded.
  bool is_unused() const { return spent_ns_ == 0; }

  static constexpr int classes = segment::size_classes;
  /// Returns the size class of a message. Class 0: less than 8 KiB; each further class: up to twice as much.
  static int class_of(std::uint64_t bytes);
  const Class& of(int size_class, bool has_gaps = false) const {
    return classes_[has_gaps ? 1 : 0][static_cast<std::size_t>(size_class)];
  }

private:
  static constexpr std::uint32_t first_trial = 8, first_interval = 32, longest_interval = 2048;
  static constexpr std::uint32_t shortest_trial = 8;
  static std::uint32_t trial_length(Protocol protocol, std::uint64_t bytes, std::uint64_t sent);

  Class& class_for(std::uint64_t bytes, bool has_gaps) {
    return classes_[has_gaps ? 1 : 0][static_cast<std::size_t>(class_of(bytes))];
  }
  void begin(Class& here, int size_class, bool has_gaps);
  float expected_ratio(int size_class, int other, std::size_t protocol) const;
  std::uint64_t waited(std::uint64_t began_ns) const;
  static float total(const Class& here, Protocol protocol);
  static Protocol best(const Class& here, Mask possible);
  static void note_pause(Class& here, Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns);
  static void set_present(Class& here, Protocol protocol);
  static void start_again(Class& here, float cost);
  static void note_suspicion(Class& here, float took, float cost);
  static bool learn_from_batch(Class& here, float took, bool overlapped);
  static Protocol begin_trial(Class& here, Protocol protocol, std::uint64_t bytes, std::uint64_t sent);
  bool affords_trial(const Class& here, Protocol protocol, std::uint64_t bytes, std::uint32_t length) const;
  static bool is_clear(const Class& here, std::uint64_t bytes);
  void conclude_trial(Class& here, std::uint64_t bytes);
  void end_trial(Class& here, float cost, std::uint64_t bytes);
  void learn_from_trial(Class& here, float took, bool overlapped, std::uint64_t bytes);
  static void learn_from_present(Class& here, float took, bool overlapped);

  void show(int size_class, bool has_gaps) const;

  segment::PairStatistics* shown_;
  const segment::PairEstimates* estimates_;
  Basis basis_;
  std::array<std::array<Class, classes>, 2> classes_{}; ///< of messages without gaps, and with gaps
  std::uint64_t ended_ns_ = 0;                          ///< when the pair's last transfer ended
  struct Period {
    std::uint64_t begin_ns = 0, end_ns = 0;
  };
  // The last two periods in which messages were on their way to the peer, the later one first: windows of a stream.
  std::array<Period, 2> sends_{};
  std::array<std::uint64_t, 2> window_{}; ///< most messages on their way in each, as far as choose() knows
  std::uint64_t in_window_ = 0;           ///< messages that have come since the later one began
  std::uint64_t window_ns_ = 0;           ///< when the period of the last choice had begun
  double spent_ns_ = 0;                   ///< in all transfers
  double lost_ns_ = 0; ///< of these, what trials have cost beyond what the best protocol would have
};

} // namespace near::shm
