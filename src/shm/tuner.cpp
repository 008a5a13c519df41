#include "shm/tuner.h"

#include <algorithm>
#include <bit>

namespace near::shm {

namespace {

/// A protocol must promise less than this fraction of the current one's cost to replace it, so that two
/// similar protocols do not alternate.
constexpr float leave_for = 0.9f;
/// A protocol whose transfers cost this many times as much as the best one's is not tried again, unless the
/// best one becomes slower.
constexpr float hopeless = 6.0f;
/// A transfer is suspicious if it costs more than this multiple of the current protocol's cost. After
/// `patience` of them in a row, or two batches, other protocols are tried.
constexpr float suspicious = 1.6f;
constexpr std::uint32_t patience = 4;
/// Trials may cost this part of the time spent in transfers so far: the first one of a protocol in a size class of
/// which only an estimate or the costs of another class are known, and all later ones.
constexpr float first_price = 0.05f, price = 0.02f;
/// A trial of the kernel's copy ends early if even the least of its first messages, one, two or three, has cost this many times
/// what the best protocol does (trials of four messages: of one or two). Other protocols find their memory cold at first. A message
/// shorter than `tells_alone` says too little, and one alone counts for `most_of_one` times the best cost at most.
constexpr std::array<float, 3> clearly_slower = {2.0f, 1.5f, 1.3f};
constexpr std::uint64_t tells_alone = 512 << 10;
constexpr float most_of_one = 3.0f;
/// So many messages on their way to the peer make a stream of those that arrive from it meanwhile.
constexpr std::uint64_t stream_messages = 4;
/// A pause is taken into account only if it is shorter than this many transfers.
constexpr float telling = 8.0f;

constexpr std::size_t index(Protocol protocol) { return static_cast<std::size_t>(protocol); }

} // namespace

int Tuner::class_of(std::uint64_t bytes) {
  return std::clamp(static_cast<int>(std::bit_width(bytes >> 12)) - 1, 0, classes - 1);
}

/// How the cost of a KiB by this protocol differs between two size classes, according to the initial estimates: what a
/// message costs whatever its size, such as a system call, is a smaller part of longer ones.
float Tuner::expected_ratio(int size_class, int other, std::size_t protocol) const {
  if (estimates_ == nullptr) return 1;
  const auto here = estimates_->cost[static_cast<std::size_t>(size_class)][protocol],
             there = estimates_->cost[static_cast<std::size_t>(other)][protocol];
  return here == 0 || there == 0 ? 1 : static_cast<float>(here) / static_cast<float>(there);
}

/// Initializes a class at its first use with what the nearest class knows, so that a program pays for the
/// trials once, at its first size, and not with its largest messages. The first class takes the initial
/// estimates. The present protocol keeps its cost until its first messages show the right one; the others need a trial
/// before they replace it.
void Tuner::begin(Class& here, int size_class, bool has_gaps) {
  if (basis_ == Basis::profile) here.next_trial = first_interval;
  for (int distance = 1; distance < classes; ++distance)
    for (int other : {size_class - distance, size_class + distance}) {
      if (other < 0 || other >= classes) continue;
      const Class& there = of(other, has_gaps);
      if (there.messages < first_trial) continue;
      here.cost = there.cost;
      here.basis = there.basis;
      here.pause = there.pause;
      here.present = there.present;
      for (std::size_t protocol = 0; protocol < protocols; ++protocol) {
        if (protocol == index(here.present) || here.basis[protocol] == Basis::none) continue;
        here.cost[protocol] *= expected_ratio(size_class, other, protocol);
        if (here.basis[protocol] == Basis::measured) here.basis[protocol] = Basis::other_size;
      }
      return;
    }
  if (estimates_ == nullptr) return;
  const auto& costs = estimates_->cost[static_cast<std::size_t>(size_class)];
  for (std::size_t protocol = 0; protocol < protocols; ++protocol) {
    if (costs[protocol] == 0) continue;
    here.cost[protocol] = static_cast<float>(costs[protocol]) / 1024;
    here.basis[protocol] = basis_;
  }
}

/// The cost of a protocol's transfers, and of the longer pause that may follow them.
float Tuner::total(const Class& here, Protocol protocol) {
  float cost = here.cost[index(protocol)], pause = here.pause[index(protocol)];
  float shortest = pause;
  for (float other : here.pause)
    if (other >= 0) shortest = std::min(shortest, other);
  return pause >= 0 && shortest < telling * cost ? cost + (pause - shortest) : cost;
}

void Tuner::note_pause(Class& here, Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns) {
  if (here.last != protocol) return; // there was no pause, or it followed another protocol
  float pause = began_ns > here.ended_ns ? static_cast<float>(began_ns - here.ended_ns) : 0;
  pause = pause * 1024.0f / static_cast<float>(bytes);
  float& shortest = here.pause[index(protocol)];
  // Lower it at once: if the program computes during the pauses, they vary, and the shortest contains the
  // least computation.
  bool shorter = shortest < 0 || pause < shortest;
  shortest =
      shorter ? pause : shortest + 0.05f * std::min(pause - shortest, shortest + here.cost[index(protocol)]);
}

Protocol Tuner::best(const Class& here, Mask possible) {
  Protocol found = Protocol::count;
  for (std::size_t protocol = 0; protocol < protocols; ++protocol) {
    if ((possible >> protocol & 1) == 0 || here.basis[protocol] == Basis::none) continue;
    if (found == Protocol::count || total(here, static_cast<Protocol>(protocol)) < total(here, found))
      found = static_cast<Protocol>(protocol);
  }
  return found;
}

/// The number of messages of a trial, of which the later half counts. A pipeline reaches its full speed once
/// all its packets have been used. With shorter trials, a program whose messages used another protocol would
/// never come back to it. If messages go both ways, the peer follows during the first half.
std::uint32_t Tuner::trial_length(Protocol protocol, std::uint64_t bytes, std::uint64_t sent) {
  constexpr std::uint64_t two_rounds = 8u << 20, longest_trial = 256, long_message = 4u << 20;
  // What the first messages find cold is little beside the time of long ones, and a few of these cost as much as many others.
  const std::uint64_t least = bytes >= long_message ? shortest_trial / 2 : shortest_trial;
  const std::uint64_t cold = protocol == Protocol::pipelined ? two_rounds / bytes : 0;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::max(cold, 2 * sent), least, longest_trial));
}

Protocol Tuner::begin_trial(Class& here, Protocol protocol, std::uint64_t bytes, std::uint64_t sent) {
  Protocol known = best(here, here.possible);
  here.best_cost = known != Protocol::count ? here.cost[index(known)] : 0;
  here.best_measured = known != Protocol::count && here.basis[index(known)] == Basis::measured;
  here.trial = protocol;
  here.pause[index(protocol)] = -1;
  here.measured = here.slow = 0;
  here.started = 1;
  here.length = trial_length(protocol, bytes, sent);
  return protocol;
}

/// Returns true if the pair has spent enough time in transfers for a trial of a protocol with this known cost.
bool Tuner::affords_trial(const Class& here, Protocol protocol, std::uint64_t bytes,
                          std::uint32_t length) const {
  if (here.basis[index(protocol)] == Basis::built_in) return true; // says little about this machine
  float extra = std::max(0.0f, here.cost[index(protocol)] - here.cost[index(here.present)]);
  extra *= static_cast<float>(bytes) / 1024.0f * static_cast<float>(length);
  return lost_ns_ + extra <= ((here.tried & bit(protocol)) != 0 ? price : first_price) * spent_ns_;
}

void Tuner::end_trial(Class& here, float cost, std::uint64_t bytes) {
  const std::size_t protocol = index(here.trial);
  if (here.best_measured)
    lost_ns_ += std::max(0.0f, cost - here.best_cost) * static_cast<float>(bytes) / 1024.0f *
                static_cast<float>(here.measured);
  // If a profile is wrong about one protocol, it says nothing about the others.
  if (here.basis[protocol] == Basis::profile && cost > suspicious * here.cost[protocol])
    std::replace(here.basis.begin(), here.basis.end(), Basis::profile, Basis::built_in);
  here.cost[protocol] = cost;
  here.basis[protocol] = Basis::measured;
  here.last_trial = here.messages;
  if (here.in_stream) here.settled_at = here.messages + here.length;
  here.tried |= bit(here.trial);
  if (here.present == Protocol::count) here.present = here.trial;
  here.trial = Protocol::count;
}

/// What was measured of the last messages belongs to the protocol of before.
void Tuner::set_present(Class& here, Protocol protocol) {
  here.present = protocol;
  here.worse = 0;
  here.batch_sum = 0;
  here.batch_messages = here.batch_overlapped = 0;
}

Protocol Tuner::choose(std::uint64_t bytes, Mask possible, std::uint64_t sent, bool has_gaps) {
  Class& here = class_for(bytes, has_gaps);
  if (here.messages == 0) begin(here, class_of(bytes), has_gaps);
  ++here.messages;
  here.possible |= possible;
  // Whether this message is the first one since messages to the peer began to be on their way.
  const bool is_first = sends_[0].begin_ns != window_ns_;
  if (is_first) {
    window_ = {sent, window_[0]};
    in_window_ = 0;
  }
  window_ns_ = sends_[0].begin_ns;
  window_[0] = std::max(window_[0], sent);
  // The first messages of a window come while, or even before, it is being sent, so the most that were on their way
  // count for as many messages as the window may have. A stream that never drains is one endless window.
  const bool in_window = ++in_window_ <= 2 * window_[0];
  here.exchanges = sent != 0;
  here.in_stream = sent >= stream_messages || (window_[0] >= stream_messages && in_window);
  if (here.in_stream) sent = std::max(window_[0], window_[1]);
  const bool has_present = here.present != Protocol::count && (possible & bit(here.present)) != 0;
  if (here.trial != Protocol::count && (possible & bit(here.trial)) != 0) {
    // A trial has enough messages under way: others wait for its outcome with what was best so far.
    if (here.started >= here.length && has_present) return here.present;
    ++here.started;
    return here.trial;
  }
  // If messages go both ways, the peer follows with its next window, so trials begin with one.
  if (here.in_stream && in_window && has_present && !is_first &&
      here.messages < std::max(here.last_trial, here.next_trial) + 4 * sent)
    return here.present;
  for (std::size_t protocol = 0; protocol < protocols; ++protocol)
    if ((possible >> protocol & 1) != 0 && here.basis[protocol] == Basis::none)
      return begin_trial(here, static_cast<Protocol>(protocol), bytes, sent);
  Protocol fastest = best(here, possible);
  if (here.basis[index(fastest)] != Basis::measured) return begin_trial(here, fastest, bytes, sent);
  if (!has_present || total(here, fastest) < leave_for * total(here, here.present)) {
    set_present(here, fastest);
  }
  if (here.messages < here.next_trial) [[likely]]
    return here.present;
  here.next_trial = here.messages + here.interval;
  for (int step = 0; step < protocols; ++step) {
    here.last_tried = static_cast<std::uint8_t>((here.last_tried + 1) % protocols);
    Protocol other = static_cast<Protocol>(here.last_tried);
    // Only its transfers count here: its pause may date from a time when the program computed, or come from a
    // neighbouring class, and only another trial can tell.
    bool promising = here.basis[index(other)] != Basis::measured ||
                     here.cost[index(other)] < hopeless * total(here, here.present);
    if (other == here.present || (possible & bit(other)) == 0 || !promising) continue;
    const std::uint32_t length = trial_length(other, bytes, sent);
    if (!affords_trial(here, other, bytes, length)) continue;
    here.interval = std::min(2 * here.interval, longest_interval);
    // The longer trials are, the rarer they are.
    here.next_trial += here.interval * (std::max(length, shortest_trial) / shortest_trial - 1);
    return begin_trial(here, other, bytes, sent);
  }
  return here.present;
}

void Tuner::follow(Protocol protocol, std::uint64_t bytes, bool has_gaps) {
  Class& here = class_for(bytes, has_gaps);
  if (here.messages == 0) begin(here, class_of(bytes), has_gaps);
  ++here.messages;
  here.possible |= bit(protocol);
  if (here.present != protocol) set_present(here, protocol);
  here.trial = Protocol::count;
}

void Tuner::take(Protocol protocol, std::uint64_t bytes, bool has_gaps) {
  Class& here = class_for(bytes, has_gaps);
  ++here.messages;
  here.possible |= bit(protocol);
  here.named = true;
  here.present = protocol;
  here.trial = Protocol::count;
}

void Tuner::refused(Protocol protocol, std::uint64_t bytes, bool has_gaps) {
  Class& here = class_for(bytes, has_gaps);
  if (here.trial == protocol) here.trial = Protocol::count;
}

void Tuner::show(int size_class, bool has_gaps) const {
  if (shown_ == nullptr) return;
  const Class& here = of(size_class, has_gaps);
  auto& row = (has_gaps ? shown_->with_gaps : shown_->from_it)[size_class];
  row.messages.store_relaxed(here.messages);
  row.present.store_relaxed(static_cast<std::uint32_t>(here.present));
  for (std::size_t protocol = 0; protocol < protocols; ++protocol) {
    bool known = (here.possible >> protocol & 1) != 0 && here.basis[protocol] != Basis::none;
    Basis basis = here.named && protocol == index(here.present) ? Basis::named : here.basis[protocol];
    row.cost[protocol].store_relaxed(
        known ? segment::statistic_of(total(here, static_cast<Protocol>(protocol))) : 0);
    row.basis[protocol].store_relaxed(static_cast<std::uint32_t>(basis));
  }
}

/// The program or the machine has changed: what is known about the other protocols is out of date.
void Tuner::start_again(Class& here, float cost) {
  here.basis = {};
  here.pause.fill(-1);
  here.basis[index(here.present)] = Basis::measured;
  here.cost[index(here.present)] = cost;
  here.interval = first_interval;
  here.next_trial = here.messages + first_interval;
  here.worse = 0;
}

/// Counts what the present protocol took if that is far more than its cost.
void Tuner::note_suspicion(Class& here, float took, float cost) {
  if (took > suspicious * cost)
    here.worse_least = here.worse++ == 0 ? took : std::min(here.worse_least, took);
  else
    here.worse = 0;
}

/// Returns false if most messages are over before the next one begins, so that each one tells what it costs.
bool Tuner::learn_from_batch(Class& here, float took, bool overlapped) {
  constexpr std::uint32_t length = 64;
  if (here.in_stream && here.messages < here.settled_at) return true;
  here.batch_sum += took;
  here.batch_overlapped += overlapped ? 1 : 0;
  const bool is_stream = 2 * here.batch_overlapped > ++here.batch_messages || here.in_stream;
  if (here.batch_messages < length) return is_stream;
  float& cost = here.cost[index(here.present)];
  const float mean = here.batch_sum / static_cast<float>(length);
  here.batch_sum = 0;
  here.batch_messages = here.batch_overlapped = 0;
  if (!is_stream) return false;
  note_suspicion(here, mean, cost);
  if (here.worse >= 2)
    start_again(here, mean);
  else if (here.worse == 0)
    cost += 0.5f * (mean - cost);
  return true;
}

/// The time between the pair's last transfer and one that began now in which messages were on their way to the peer.
std::uint64_t Tuner::waited(std::uint64_t began_ns) const {
  std::uint64_t sum = 0;
  for (const Period& period : sends_) {
    const std::uint64_t first = std::max(period.begin_ns, ended_ns_),
                        last = std::min(period.end_ns, began_ns);
    if (last > first) sum += last - first;
  }
  return sum;
}

/// Ends the trial with what its later half, or fewer messages if they were far too slow, has cost.
void Tuner::conclude_trial(Class& here, std::uint64_t bytes) {
  const std::uint32_t first_half = here.length - here.length / 2;
  const std::uint32_t summed = here.measured > first_half ? here.measured - first_half : here.measured;
  // In a stream, transfers may end together, and the peer works at the same time: only their mean tells what each one
  // costs. In an exchange the cost depends on which of the two processes began, so the least one tells too little.
  const bool takes_mean = 2 * here.overlapped > summed || here.in_stream || here.exchanges;
  end_trial(here, takes_mean ? here.sum / static_cast<float>(summed) : here.least, bytes);
}

/// Whether the rest of a trial would show nothing new.
bool Tuner::is_clear(const Class& here, std::uint64_t bytes) {
  const std::uint32_t measured = here.measured;
  if (here.trial != Protocol::cma || !here.best_measured || here.in_stream || here.exchanges) return false;
  if (measured > clearly_slower.size() || measured > here.length - here.length / 2) return false;
  return (measured > 1 || bytes >= tells_alone) && here.least > clearly_slower[measured - 1] * here.best_cost;
}

void Tuner::learn_from_trial(Class& here, float took, bool overlapped, std::uint64_t bytes) {
  // If it is far slower than the best protocol, the rest of the trial is not worth its cost.
  here.slow = here.best_cost != 0 && took > hopeless * here.best_cost ? here.slow + 1 : 0;
  ++here.measured;
  if (here.measured == 1 || here.measured == here.length - here.length / 2 + 1) {
    here.least = took;
    here.sum = 0;
    here.overlapped = 0;
  }
  here.least = std::min(here.least, took);
  here.sum += took;
  here.overlapped += overlapped ? 1 : 0;
  // In a stream both ways, the wait at the end of the window belongs to the trial; the next message brings it.
  if (here.slow >= patience || (here.measured >= here.length && !here.in_stream))
    conclude_trial(here, bytes);
  else if (is_clear(here, bytes)) // one message may have waited for a processor for much longer than it took
    end_trial(here, here.measured == 1 ? std::min(here.least, most_of_one * here.best_cost) : here.least,
              bytes);
}

void Tuner::learn_from_present(Class& here, float took, bool overlapped) {
  float& cost = here.cost[index(here.present)];
  if (here.basis[index(here.present)] != Basis::measured) {
    cost = took;
    here.basis[index(here.present)] = Basis::measured;
  }
  if (learn_from_batch(here, took, overlapped)) return;
  note_suspicion(here, took, cost);
  // A message may have waited for a processor, so it changes the cost by at most half.
  if (here.worse >= patience)
    start_again(here, here.worse_least); // trials end with the least of as many messages, too
  else
    cost += 0.25f * std::clamp(took - cost, -2 * cost, 2 * cost);
}

void Tuner::learn(Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns, std::uint64_t ended_ns,
                  bool has_gaps) {
  Class& here = class_for(bytes, has_gaps);
  note_pause(here, protocol, bytes, began_ns);
  here.last = protocol;
  here.ended_ns = ended_ns;
  const std::uint64_t waited_ns = here.in_stream && ended_ns_ != 0 ? waited(began_ns) : 0;
  const bool overlapped = began_ns < ended_ns_;
  began_ns = std::clamp(ended_ns_, began_ns, ended_ns);
  ended_ns_ = ended_ns;
  spent_ns_ += static_cast<float>(waited_ns + ended_ns - began_ns);
  const float per_kib = 1024.0f / static_cast<float>(bytes);
  float took = static_cast<float>(ended_ns - began_ns) * per_kib;
  const float before = static_cast<float>(waited_ns) * per_kib; // belongs to the messages before this one
  if (here.trial != Protocol::count && here.measured != 0) {
    here.sum += before;
    if (here.measured >= here.length) conclude_trial(here, bytes);
  } else if (protocol != here.trial) {
    took += before;
  }
  if (protocol == here.trial)
    learn_from_trial(here, took, overlapped, bytes);
  else if (protocol == here.present) // else it belongs to a trial that has ended, or began before a change
    learn_from_present(here, took, overlapped);
  show(class_of(bytes), has_gaps);
}

} // namespace near::shm
