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
/// So many messages on their way to the peer make a stream of those that arrive from it meanwhile.
constexpr std::uint64_t stream_messages = 4;
/// A pause is taken into account only if it is shorter than this many transfers.
constexpr float telling = 8.0f;

constexpr std::size_t index(Protocol protocol) { return static_cast<std::size_t>(protocol); }

} // namespace

int Tuner::class_of(std::uint64_t bytes) {
  return std::clamp(static_cast<int>(std::bit_width(bytes >> 12)) - 1, 0, classes - 1);
}

/// Initializes a class at its first use with what the nearest class knows, so that a program pays for the
/// trials once, at its first size, and not with its largest messages. The first class takes the initial
/// estimates.
void Tuner::begin(Class& here, int size_class) {
  if (basis_ == Basis::profile) here.next_trial = first_interval;
  for (int distance = 1; distance < classes; ++distance)
    for (int other : {size_class - distance, size_class + distance}) {
      if (other < 0 || other >= classes) continue;
      const Class& there = of(other);
      if (there.messages < first_trial) continue;
      here.cost = there.cost;
      here.basis = there.basis;
      here.pause = there.pause;
      here.present = there.present;
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
  constexpr std::uint64_t two_rounds = 8u << 20, longest_trial = 256;
  const std::uint64_t cold = protocol == Protocol::pipelined ? two_rounds / bytes : 0;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::max(cold, 2 * sent), shortest_trial, longest_trial));
}

Protocol Tuner::begin_trial(Class& here, Protocol protocol, std::uint64_t bytes, std::uint64_t sent) {
  Protocol known = best(here, here.possible);
  here.best_cost = known != Protocol::count ? here.cost[index(known)] : 0;
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
  if (here.best_cost != 0)
    lost_ns_ += std::max(0.0f, cost - here.best_cost) * static_cast<float>(bytes) / 1024.0f *
                static_cast<float>(here.measured);
  // If a profile is wrong about one protocol, it says nothing about the others.
  if (here.basis[protocol] == Basis::profile && cost > suspicious * here.cost[protocol])
    std::replace(here.basis.begin(), here.basis.end(), Basis::profile, Basis::built_in);
  here.cost[protocol] = cost;
  here.basis[protocol] = Basis::measured;
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

Protocol Tuner::choose(std::uint64_t bytes, Mask possible, std::uint64_t sent) {
  int size_class = class_of(bytes);
  Class& here = classes_[static_cast<std::size_t>(size_class)];
  if (here.messages == 0) begin(here, size_class);
  ++here.messages;
  here.possible |= possible;
  here.in_stream = sent >= stream_messages;
  const bool has_present = here.present != Protocol::count && (possible & bit(here.present)) != 0;
  if (here.trial != Protocol::count && (possible & bit(here.trial)) != 0) {
    // A trial has enough messages under way: others wait for its outcome with what was best so far.
    if (here.started >= here.length && has_present) return here.present;
    ++here.started;
    return here.trial;
  }
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
  here.interval = std::min(2 * here.interval, longest_interval);
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
    // The longer trials are, the rarer they are.
    here.next_trial += here.interval * (length / shortest_trial - 1);
    return begin_trial(here, other, bytes, sent);
  }
  return here.present;
}

void Tuner::follow(Protocol protocol, std::uint64_t bytes) {
  Class& here = classes_[static_cast<std::size_t>(class_of(bytes))];
  if (here.messages == 0) begin(here, class_of(bytes));
  ++here.messages;
  here.possible |= bit(protocol);
  if (here.present != protocol) set_present(here, protocol);
  here.trial = Protocol::count;
}

void Tuner::take(Protocol protocol, std::uint64_t bytes) {
  Class& here = classes_[static_cast<std::size_t>(class_of(bytes))];
  ++here.messages;
  here.possible |= bit(protocol);
  here.named = true;
  here.present = protocol;
  here.trial = Protocol::count;
}

void Tuner::refused(Protocol protocol, std::uint64_t bytes) {
  Class& here = classes_[static_cast<std::size_t>(class_of(bytes))];
  if (here.trial == protocol) here.trial = Protocol::count;
}

void Tuner::show(int size_class) const {
  if (shown_ == nullptr) return;
  const Class& here = of(size_class);
  auto& row = shown_->from_it[size_class];
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

/// Returns false if most messages are over before the next one begins, so that each one tells what it costs.
bool Tuner::learn_from_batch(Class& here, float took, bool overlapped) {
  constexpr std::uint32_t length = 64;
  here.batch_sum += took;
  here.batch_overlapped += overlapped ? 1 : 0;
  const bool is_stream = 2 * here.batch_overlapped > ++here.batch_messages || here.in_stream;
  if (here.batch_messages < length) return is_stream;
  float& cost = here.cost[index(here.present)];
  const float mean = here.batch_sum / static_cast<float>(length);
  here.batch_sum = 0;
  here.batch_messages = here.batch_overlapped = 0;
  if (!is_stream) return false;
  here.worse = mean > suspicious * cost ? here.worse + 1 : 0;
  if (here.worse >= 2)
    start_again(here, mean);
  else if (here.worse == 0)
    cost += 0.5f * (mean - cost);
  return true;
}

void Tuner::learn(Protocol protocol, std::uint64_t bytes, std::uint64_t began_ns, std::uint64_t ended_ns) {
  int size_class = class_of(bytes);
  Class& here = classes_[static_cast<std::size_t>(size_class)];
  note_pause(here, protocol, bytes, began_ns);
  here.last = protocol;
  here.ended_ns = ended_ns;
  const bool overlapped = began_ns < ended_ns_;
  began_ns = std::clamp(ended_ns_, began_ns, ended_ns);
  ended_ns_ = ended_ns;
  spent_ns_ += static_cast<float>(ended_ns - began_ns);
  float took = static_cast<float>(ended_ns - began_ns) * 1024.0f / static_cast<float>(bytes);
  float& cost = here.cost[index(protocol)];
  if (protocol == here.trial) {
    // If it is far slower than the best protocol, the rest of the trial is not worth its cost.
    here.slow = here.best_cost != 0 && took > hopeless * here.best_cost ? here.slow + 1 : 0;
    ++here.measured;
    const bool later_half = here.measured > here.length / 2;
    if (here.measured == 1 || here.measured == here.length / 2 + 1) {
      here.least = took;
      here.sum = 0;
      here.overlapped = 0;
    }
    here.least = std::min(here.least, took);
    here.sum += took;
    here.overlapped += overlapped ? 1 : 0;
    if (here.slow < patience && (!later_half || here.measured < here.length)) return;
    // In a stream, transfers may end together, and the peer works at the same time: only their mean tells what each
    // one costs.
    const std::uint32_t summed = later_half ? here.measured - here.length / 2 : here.measured;
    end_trial(here,
              2 * here.overlapped > summed || here.in_stream ? here.sum / static_cast<float>(summed)
                                                             : here.least,
              bytes);
    show(size_class);
    return;
  }
  if (protocol != here.present) return; // belongs to a trial that has ended, or began before a change
  if (here.basis[index(protocol)] != Basis::measured) {
    cost = took;
    here.basis[index(protocol)] = Basis::measured;
  }
  if (!learn_from_batch(here, took, overlapped)) {
    here.worse = took > suspicious * cost ? here.worse + 1 : 0;
    // A message may have waited for a processor, so it changes the cost by at most half.
    if (here.worse >= patience)
      start_again(here, took);
    else
      cost += 0.25f * std::clamp(took - cost, -2 * cost, 2 * cost);
  }
  show(size_class);
}

} // namespace near::shm
