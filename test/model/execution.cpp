#include "execution.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace near::model {

namespace {

Execution* current_execution = nullptr;

constexpr Place gap = 1 << 12;        ///< between the places of two messages
constexpr unsigned most_steps = 4000; ///< a scenario with more steps is taken to run forever

const char* order_name(Order order) {
  static constexpr const char* names[] = {"relaxed", "acquire", "release", "acq_rel"};
  return names[static_cast<int>(order)];
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = ((hash ^ value) + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u; // a zero changes the hash, too
  return hash ^ hash >> 32;
}

template <class T>
std::uint64_t mix_all(std::uint64_t hash, const T& plain) {
  static_assert(std::has_unique_object_representations_v<T> && sizeof plain % sizeof hash == 0);
  std::uint64_t part;
  for (std::size_t at = 0; at < sizeof plain; at += sizeof part) {
    std::memcpy(&part, reinterpret_cast<const std::byte*>(&plain) + at, sizeof part);
    hash = mix(hash, part);
  }
  return hash;
}

std::uint64_t hash_of(std::size_t word, const Message& message) {
  std::uint64_t place = static_cast<std::uint64_t>(message.place) << 1 | (message.attached ? 1 : 0);
  return mix_all(mix(mix(mix(1, word), place), message.value), message.view);
}

[[noreturn]] void misuse(const char* what) {
  std::fprintf(stderr, "model: %s\n", what);
  std::abort();
}

} // namespace

Execution& current() {
  if (current_execution == nullptr) misuse("an atomic of the model is used outside of a scenario");
  return *current_execution;
}

// ---- the frame ----

Execution::Result Execution::run(const std::function<void()>& scenario, Chooser& chooser,
                                 const Bounds& bounds, const Mutant& mutant, bool tracing) {
  chooser_ = &chooser;
  left_ = bounds;
  mutant_ = &mutant;
  tracing_ = tracing;
  thread_count_ = word_count_ = mutex_count_ = 0;
  running_ = main_thread;
  threads_[main_thread] = Thread{};
  threads_[main_thread].name = "main";
  threads_[main_thread].view.clock.steps[main_thread] = 1;
  fences_ = {};
  events_ = steps_ = pendings_ = 0;
  decisions_.clear();
  trace_.clear();
  failure_.clear();
  again_ = known_ = false;
  memory_hash_ = 0;
  arena_used_ = 0;

  ++execution_;
  current_execution = this;
  try {
    scenario();
  } catch (const Stop&) { // failure_ or again_ says why
  }
  current_execution = nullptr;
  if (again_) return Result::again;
  if (known_) return Result::known;
  return failure_.empty() ? Result::held : Result::failed;
}

ThreadId Execution::add_thread(std::string name, std::function<void()> body, bool mortal) {
  if (thread_count_ == main_thread) misuse("too many threads");
  Thread& made = threads_[thread_count_];
  made = Thread{};
  made.name = std::move(name);
  made.body = std::move(body);
  made.mortal = mortal;
  return static_cast<ThreadId>(thread_count_++);
}

void Execution::go() {
  tick();
  for (std::size_t i = 0; i < thread_count_; ++i) {
    threads_[i].view = self().view;
    threads_[i].view.clock.steps[i] = 1;
    fibres_[i].prepare(&Execution::thread_body, this);
  }
  if (thread_count_ != 0) pick(Leaves::blocked);
  if (!failure_.empty() || again_ || known_) throw Stop();
  for (std::size_t i = 0; i < thread_count_; ++i) self().view.join(threads_[i].view);
}

void Execution::thread_body(void* argument) {
  auto& execution = *static_cast<Execution*>(argument);
  execution.self().body();
  execution.settle_all();
  execution.self().state = State::ended;
  execution.event();
  execution.pick(Leaves::for_good);
}

void Execution::fail(std::string why) {
  failure_ = std::move(why);
  back_to_main();
}

void Execution::back_to_main() {
  if (on_main()) throw Stop();
  ThreadId left = running_;
  running_ = main_thread;
  fibres_[left].leave_for_good_to(fibres_[main_thread]);
}

void Execution::deadlock() {
  std::string text = "no thread can continue:";
  for (std::size_t i = 0; i < thread_count_; ++i) {
    const Thread& thread = threads_[i];
    switch (thread.state) {
    case State::paused: text += " " + thread.name + " polls and nothing changes;"; break;
    case State::in_futex:
      text += " " + thread.name + " sleeps on " + words_[thread.blocked_on].name + ";";
      break;
    case State::on_mutex: text += " " + thread.name + " waits for a mutex;"; break;
    case State::awaiting:
      text += " " + thread.name + " waits for the end of " + threads_[thread.blocked_on].name + ";";
      break;
    case State::ready:
    case State::ended:
    case State::killed: break;
    }
  }
  text.pop_back();
  fail(std::move(text));
}

// ---- scheduling ----

unsigned Execution::decide(Choice kind, unsigned alternatives) {
  unsigned chosen = chooser_->choose(kind, alternatives);
  decisions_.push_back(static_cast<std::uint8_t>(chosen));
  return chosen;
}

bool Execution::can_run(const Thread& thread) const {
  switch (thread.state) {
  case State::ready: return true;
  case State::paused: return may_poll_again(thread);
  case State::on_mutex: return !mutexes_[thread.blocked_on].held;
  case State::awaiting:
    return threads_[thread.blocked_on].state == State::ended ||
           threads_[thread.blocked_on].state == State::killed;
  case State::in_futex:
  case State::ended:
  case State::killed: return false;
  }
  return false;
}

void Execution::learn(Value value) {
  self().history = mix(self().history, value);
  self().changed = true;
}

/// Hash of all that determines the further execution: the position and view of each thread, and the memory.
std::uint64_t Execution::state_hash(Leaves how) {
  std::uint64_t hash = mix(memory_hash_, running_ << 8 | static_cast<unsigned>(how));
  for (std::size_t i = 0; i < thread_count_; ++i) {
    Thread& thread = threads_[i];
    if (thread.changed || i == running_) {
      std::uint64_t own =
          mix(mix(thread.history, static_cast<std::uint64_t>(thread.state)), thread.blocked_on);
      own = mix_all(mix_all(mix_all(own, thread.view), thread.acquirable), thread.released);
      own = mix_all(mix_all(own, thread.at_light_fence), thread.from_heavy_fences);
      for (const Pending& pending : thread.pending)
        own = mix(own, (pending.open ? 1 : 0) | (pending.held ? 2 : 0) | (pending.deferred ? 4 : 0) |
                           static_cast<unsigned>(pending.kind) << 4 | pending.word << 8);
      thread.hash = own;
      thread.changed = false;
    }
    hash = mix(hash, thread.hash + (can_run(thread) ? 1 : 0) + (may_poll_again(thread) ? 2 : 0));
  }
  for (std::size_t i = 0; i < mutex_count_; ++i)
    hash = mix_all(mix(hash, mutexes_[i].held ? 1 : 0), mutexes_[i].view);
  return mix_all(hash, fences_);
}

void Execution::leave_what_is_known(Leaves how) {
  if (on_main() || !chooser_->knows_states() || !chooser_->been_here(state_hash(how), left_)) return;
  known_ = true;
  back_to_main();
}

void Execution::pick(Leaves how) {
  leave_what_is_known(how);
  std::array<ThreadId, max_threads> candidates{};
  std::size_t count = 0;
  if (how == Leaves::preempted) {
    if (left_.preemptions == 0) return;
    candidates[count++] = running_;
  }
  bool all_over = true;
  for (ThreadId i = 0; i < thread_count_; ++i) {
    all_over = all_over && (threads_[i].state == State::ended || threads_[i].state == State::killed);
    if (i != running_ && can_run(threads_[i])) candidates[count++] = i;
  }
  // A thread that would only poll again comes last: the others may change something.
  if (how == Leaves::yields && can_run(self())) candidates[count++] = running_;
  if (count == 0) {
    if (all_over) back_to_main();
    deadlock();
  }
  std::size_t chosen = 0;
  if (count > 1) {
    chosen = chooser_->choose_thread({candidates.data(), count});
    decisions_.push_back(static_cast<std::uint8_t>(chosen));
  }
  ThreadId next = candidates[chosen];
  if (next == running_) return;
  if (how == Leaves::preempted) --left_.preemptions;
  ThreadId left = running_;
  running_ = next;
  if (how == Leaves::for_good)
    fibres_[left].leave_for_good_to(fibres_[next]);
  else
    fibres_[left].switch_to(fibres_[next]);
}

void Execution::scheduling_point() {
  if (on_main()) return;
  if (++steps_ > most_steps)
    fail("the threads run forever: no end after " + std::to_string(most_steps) + " steps");
  pick(Leaves::preempted);
  if (self().mortal && left_.kills != 0 && decide(Choice::kill, 2) != 0) die();
}

void Execution::die() {
  --left_.kills;
  if (tracing_) note("is killed", nullptr, "", "", Where());
  self().state = State::killed;
  event();
  pick(Leaves::for_good);
}

void Execution::event() {
  ++events_;
  ++self().own_events;
}

void Execution::use(std::uint16_t index) {
  Word& word = words_[index];
  if (on_main()) return;
  if (!word.used) {
    word.used = true;
    word.first_user = running_;
  } else if (word.first_user != running_ && !shared[index]) {
    shared.set(index);
    again_ = true;
    back_to_main();
  }
}

/// Called before each operation on a word: carries out those that it must not overtake, and lets others run.
void Execution::begin_operation(std::uint16_t index, bool releasing) {
  if (on_main()) return;
  for (Pending* earlier = oldest_open(); earlier != nullptr; earlier = oldest_open()) {
    // Operations on one word keep their order, and an overtaken operation may not cross a release.
    bool forced = releasing || earlier->word == index;
    if (!forced && !shared[index]) break; // no thread can tell the difference
    if (!forced && shared[earlier->word] && (earlier->deferred || left_.deferrals != 0) &&
        decide(Choice::defer, 2) != 0) {
      if (!earlier->deferred) --left_.deferrals;
      earlier->deferred = true;
      break;
    }
    carry_out(*earlier);
  }
  use(index);
  if (shared[index]) scheduling_point();
}

// ---- words ----

std::uint16_t Execution::make_word(const void* address, Value initial) {
  if (!on_main()) misuse("words are made before the threads run");
  if (word_count_ == max_words) misuse("too many words");
  if (words_.size() == word_count_) words_.emplace_back();
  Word& made = words_[word_count_];
  made.address = address;
  made.name = "word " + std::to_string(word_count_);
  made.text = nullptr;
  made.used = false;
  made.messages.resize(1);
  made.messages[0] = {initial, gap, false, self().view};
  self().view.seen.place[word_count_] = gap;
  return static_cast<std::uint16_t>(word_count_++);
}

std::byte* Execution::allocate(std::size_t bytes, std::size_t alignment) {
  if (arena_.empty()) arena_.resize(64u << 10);
  auto at = reinterpret_cast<std::uintptr_t>(arena_.data()) + arena_used_;
  std::uintptr_t aligned = (at + alignment - 1) / alignment * alignment;
  arena_used_ += aligned - at + bytes;
  if (arena_used_ > arena_.size()) misuse("the scenario needs too much memory");
  return reinterpret_cast<std::byte*>(aligned);
}

std::uint16_t Execution::word_at(const void* address) const {
  for (std::size_t i = 0; i < word_count_; ++i)
    if (words_[i].address == address) return static_cast<std::uint16_t>(i);
  misuse("no word of the model has this address");
}

void Execution::name_word(const void* address, std::string name, ValueText text) {
  Word& word = words_[word_at(address)];
  word.name = std::move(name);
  word.text = text;
}

bool Execution::is_mutant(Where where) const {
  return mutant_->line == where.line() && !mutant_->file.empty() &&
         std::string_view(where.file_name()).ends_with(mutant_->file);
}

Order Execution::weakened(Order order, Where where) {
  if (order != Order::relaxed) collect(where);
  if (!is_mutant(where)) return order;
  bool acquire = acquires(order) && !mutant_->acquire, release = releases(order) && !mutant_->release;
  return acquire ? (release ? Order::acq_rel : Order::acquire) : (release ? Order::release : Order::relaxed);
}

bool Execution::removed(Where where) const { return is_mutant(where) && mutant_->removed; }

void Execution::collect(Where where) {
  if (sites != nullptr) sites->insert({where.file_name(), where.line()});
}

std::size_t Execution::oldest_readable(const Word& word) {
  auto index = static_cast<std::size_t>(&word - words_.data());
  Place seen = self().view.seen.place[index];
  std::size_t at = word.messages.size() - 1;
  while (at > 0 && word.messages[at - 1].place >= seen) --at;
  return at;
}

bool Execution::has_room_after(const Word& word, std::size_t at) const {
  if (at + 1 == word.messages.size()) return true;
  const Message& next = word.messages[at + 1];
  return !next.attached && next.place - word.messages[at].place >= 2;
}

/// Chooses one of candidates_; the first is the newest.
std::size_t Execution::choose_candidate(Choice kind) {
  if (candidates_.size() == 1 || left_.stale == 0 || on_main()) return candidates_[0];
  unsigned chosen = decide(kind, static_cast<unsigned>(candidates_.size()));
  if (chosen != 0) {
    --left_.stale;
    self().polled_stale = true;
  }
  return candidates_[chosen];
}

void Execution::read(std::uint16_t index, std::size_t at, Order order) {
  Thread& thread = self();
  const Message& message = words_[index].messages[at];
  Place& seen = thread.view.seen.place[index];
  seen = std::max(seen, message.place);
  (acquires(order) ? thread.view : thread.acquirable).join(message.view);
}

void Execution::write(std::uint16_t index, std::size_t after, Value value, Order order, bool modifies) {
  Thread& thread = self();
  Word& word = words_[index];
  Message made;
  made.value = value;
  made.attached = modifies;
  Place before = word.messages[after].place;
  made.place = after + 1 == word.messages.size() ? before + gap
                                                 : before + (word.messages[after + 1].place - before) / 2;
  thread.view.seen.place[index] = made.place;
  made.view = releases(order) ? thread.view : thread.released;
  made.view.seen.place[index] = made.place;
  // Only a read-modify-write continues the release sequence of the message that it read (C++20).
  if (modifies) made.view.join(word.messages[after].view);
  memory_hash_ ^= hash_of(index, made);
  word.messages.insert(word.messages.begin() + static_cast<std::ptrdiff_t>(after) + 1, made);
  event();
}

Value Execution::load_now(std::uint16_t index, Order order, Where where) {
  Word& word = words_[index];
  candidates_.clear();
  for (std::size_t at = word.messages.size(), oldest = oldest_readable(word); at-- > oldest;)
    candidates_.push_back(at);
  std::size_t at = choose_candidate(Choice::message);
  read(index, at, order);
  if (tracing_)
    note("load", &word, value_text(word, word.messages[at].value), order_name(order), where,
         remark(word, at));
  learn(word.messages[at].value);
  return word.messages[at].value;
}

Value Execution::load(std::uint16_t index, Order order, Where where) {
  begin_operation(index, false);
  return load_now(index, order, where);
}

void Execution::store(std::uint16_t index, Value value, Order order, Where where) {
  order = weakened(order, where);
  begin_operation(index, releases(order));
  Word& word = words_[index];
  candidates_.clear();
  for (std::size_t at = word.messages.size(), oldest = oldest_readable(word); at-- > oldest;)
    if (has_room_after(word, at)) candidates_.push_back(at);
  std::size_t after = choose_candidate(Choice::place);
  std::string text = tracing_ && after + 1 != word.messages.size() ? "comes before later stores" : "";
  write(index, after, value, order, false);
  if (tracing_) note("store", &word, value_text(word, value), order_name(order), where, std::move(text));
  if (releases(order)) tick();
  learn(0);
}

Value Execution::modify_now(std::uint16_t index, Pending::Kind kind, Value operand, Order order,
                            Where where) {
  Word& word = words_[index];
  candidates_.clear();
  for (std::size_t at = word.messages.size(), oldest = oldest_readable(word); at-- > oldest;)
    if (has_room_after(word, at)) candidates_.push_back(at);
  std::size_t at = choose_candidate(Choice::message);
  Value before = word.messages[at].value, after = operand;
  if (kind == Pending::add) after = before + operand;
  if (kind == Pending::bit_or) after = before | operand;
  std::string text = tracing_ ? remark(word, at) : "";
  read(index, at, order);
  write(index, at, after, order, true);
  static constexpr const char* names[] = {"load", "exchange", "add", "or"};
  if (tracing_)
    note(names[kind], &word, value_text(word, before) + " -> " + value_text(word, after), order_name(order),
         where, std::move(text));
  if (releases(order)) tick();
  learn(before);
  return before;
}

Value Execution::modify(std::uint16_t index, Pending::Kind kind, Value operand, Order order, Where where) {
  begin_operation(index, releases(order));
  return modify_now(index, kind, operand, order, where);
}

bool Execution::compare_and_swap(std::uint16_t index, Value& expected, Value desired, Order order,
                                 Where where) {
  order = weakened(order, where);
  begin_operation(index, releases(order));
  Word& word = words_[index];
  candidates_.clear();
  // It reads a value that it can replace or a different one: a strong one never fails on an equal value.
  for (std::size_t at = word.messages.size(), oldest = oldest_readable(word); at-- > oldest;)
    if (word.messages[at].value != expected || has_room_after(word, at)) candidates_.push_back(at);
  std::size_t at = choose_candidate(Choice::message);
  Value before = word.messages[at].value;
  std::string text = tracing_ ? remark(word, at) : "";
  bool swapped = before == expected;
  // The facade's failure orders: acquire for acq_rel, relaxed for the others.
  if (!swapped && order != Order::acq_rel) order = Order::relaxed;
  read(index, at, order);
  if (swapped) write(index, at, desired, order, true);
  if (tracing_)
    note(swapped ? "swap" : "swap fails", &word,
         swapped ? value_text(word, before) + " -> " + value_text(word, desired) : value_text(word, before),
         order_name(order), where, std::move(text));
  if (releases(order)) tick();
  learn(before);
  expected = before;
  return swapped;
}

// ---- operations that later ones overtake ----

Pending* Execution::postpone(std::uint16_t index, Pending::Kind kind, Value operand, Where where) {
  Thread& thread = self();
  Pending* place = nullptr;
  for (;;) {
    for (Pending& pending : thread.pending)
      if (!pending.open && !pending.held) place = &pending;
    if (place != nullptr) break;
    if (oldest_open() == nullptr) misuse("too many values of relaxed operations are kept at once");
    carry_out(*oldest_open());
  }
  *place = {};
  place->kind = kind;
  place->open = place->held = true;
  place->word = index;
  place->number = ++pendings_;
  place->operand = operand;
  place->where = where;
  return place;
}

Pending* Execution::oldest_open() {
  Pending* oldest = nullptr;
  for (Pending& pending : self().pending)
    if (pending.open && (oldest == nullptr || pending.number < oldest->number)) oldest = &pending;
  return oldest;
}

void Execution::carry_out(Pending& pending) {
  pending.open = false;
  use(pending.word);
  if (shared[pending.word]) scheduling_point();
  if (pending.kind == Pending::load)
    pending.result = load_now(pending.word, Order::relaxed, pending.where);
  else
    pending.result = modify_now(pending.word, pending.kind, pending.operand, Order::relaxed, pending.where);
  if (tracing_ && pending.deferred && shared[pending.word])
    trace_.back().note += trace_.back().note.empty() ? "late" : ", late";
}

void Execution::settle_all() {
  while (Pending* earlier = oldest_open()) carry_out(*earlier);
}

Value Execution::settle(Pending& pending) {
  while (pending.open) carry_out(*oldest_open());
  return pending.result;
}

void Execution::release_hold(Pending& pending) {
  pending.held = false;
  if (pending.kind == Pending::load) pending.open = false; // a read whose value is not used has no effect
}

// ---- fences ----

void Execution::full_fence() {
  Thread& thread = self();
  thread.view.join(thread.acquirable);
  thread.view.seen.join(thread.from_heavy_fences); // a full fence includes a light one
  thread.view.seen.join(fences_);
  fences_ = thread.view.seen;
  thread.released = thread.view;
  thread.at_light_fence = thread.view.seen;
  tick(); // later stores carry what precedes the fence
  learn(0);
}

void Execution::fence(Where where) {
  if (removed(where)) return;
  collect(where);
  settle_all();
  scheduling_point();
  full_fence();
  if (tracing_) note("fence", nullptr, "", "", where);
}

void Execution::light_fence(Where where) {
  if (removed(where)) return;
  collect(where);
  settle_all();
  scheduling_point();
  Thread& thread = self();
  thread.at_light_fence = thread.view.seen;
  thread.at_light_fence.join(thread.acquirable.seen);
  thread.view.seen.join(thread.from_heavy_fences);
  learn(0);
  if (tracing_) note("compiler fence", nullptr, "", "", where);
}

void Execution::heavy_fence(Where where) {
  if (removed(where)) return;
  collect(where);
  settle_all();
  scheduling_point();
  full_fence();
  if (tracing_) note("barrier of all begins", nullptr, "", "", where);
  const Seen at_start = self().view.seen;
  Seen gained;
  // The other threads execute their barriers one after another, in one order or the other; the caller sees
  // their combined effect at the end of the call.
  bool backwards = thread_count_ > 2 && !on_main() && decide(Choice::side, 2) != 0;
  for (std::size_t i = 0; i < thread_count_; ++i) {
    std::size_t other = backwards ? thread_count_ - 1 - i : i;
    if (other == running_) continue;
    scheduling_point();
    Thread& thread = threads_[other];
    gained.join(thread.at_light_fence);
    thread.from_heavy_fences.join(at_start);
    learn(0);
    thread.changed = true;
    if (tracing_) note("barrier reaches", nullptr, thread.name, "", where);
  }
  self().view.seen.join(gained);
  full_fence();
  if (tracing_) note("barrier of all ends", nullptr, "", "", where);
}

// ---- memory without atomics ----

Execution::Cell& Execution::cell(const std::byte* at) {
  if (cells_.empty()) cells_.resize(4096);
  std::size_t mask = cells_.size() - 1;
  auto hash = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(at) * 0x9e3779b97f4a7c15u >> 40);
  for (std::size_t probe = 0; probe <= mask; ++probe) {
    Cell& found = cells_[(hash + probe) & mask];
    if (found.execution == execution_ && found.at == at) return found;
    if (found.execution != execution_) {
      found = Cell{};
      found.at = at;
      found.execution = execution_;
      return found;
    }
  }
  misuse("too many bytes of plain memory");
}

void Execution::plain(const void* at, std::size_t bytes, bool writes, Where where) {
  const Clock& clock = self().view.clock;
  Steps now = clock.steps[running_];
  self().changed = true;
  if (tracing_) note(writes ? "writes" : "reads", nullptr, std::to_string(bytes) + " bytes", "plain", where);
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto* address = static_cast<const std::byte*>(at) + i;
    Cell& byte = cell(address);
    if (byte.written > clock.steps[byte.writer])
      fail("data race: " + self().name + (writes ? " writes" : " reads") + " what " +
           threads_[byte.writer].name + " wrote (line " + std::to_string(byte.written_where.line()) +
           ") without ordering between them");
    memory_hash_ ^= byte.hash;
    if (!writes) {
      byte.read[running_] = now;
      learn(static_cast<Value>(*address));
    } else {
      for (std::size_t other = 0; other < max_threads; ++other)
        if (byte.read[other] > clock.steps[other])
          fail("data race: " + self().name + " writes what " + threads_[other].name +
               " read without ordering between them");
      byte.writer = running_;
      byte.written = now;
      byte.written_where = where;
      byte.read = {};
    }
    // The hash need not include the value, which follows from its writer and the time of the write.
    byte.hash = mix(mix_all(mix(reinterpret_cast<std::uintptr_t>(address), byte.writer), byte.read),
                    static_cast<std::uint32_t>(byte.written));
    memory_hash_ ^= byte.hash;
  }
}

// ---- blocking ----

void Execution::poll_again() {
  settle_all();
  self().history = self().history_before_poll;
  self().state = State::paused;
  pick(Leaves::yields);
  Thread& thread = self();
  thread.state = State::ready;
  thread.poll_began = foreign_events(thread);
  thread.polled_stale = false;
}

void Execution::futex_wait(const void* address, Value expected, Where where) {
  std::uint16_t index = word_at(address);
  settle_all();
  begin_operation(index, true);
  learn(0);
  Word& word = words_[index];
  if (word.messages.back().value != expected) {
    if (tracing_)
      note("futex wait", &word, value_text(word, expected), "", where,
           "it is " + value_text(word, word.messages.back().value) + ": goes on");
    return;
  }
  if (tracing_) note("futex wait", &word, value_text(word, expected), "", where, "sleeps");
  self().state = State::in_futex;
  self().blocked_on = index;
  pick(Leaves::blocked);
}

void Execution::futex_wake(const void* address, Where where) {
  std::uint16_t index = word_at(address);
  settle_all();
  begin_operation(index, true);
  std::string woken;
  for (std::size_t i = 0; i < thread_count_; ++i) {
    Thread& thread = threads_[i];
    if (thread.state != State::in_futex || thread.blocked_on != index) continue;
    thread.state = State::ready;
    thread.changed = true;
    if (tracing_) woken += (woken.empty() ? "wakes " : ", ") + thread.name;
  }
  event();
  learn(0);
  if (tracing_) note("futex wake", &words_[index], "", "", where, woken.empty() ? "nobody sleeps" : woken);
}

std::uint16_t Execution::make_mutex() {
  if (mutex_count_ == mutexes_.size()) misuse("too many mutexes");
  mutexes_[mutex_count_] = {};
  return static_cast<std::uint16_t>(mutex_count_++);
}

void Execution::lock(std::uint16_t index, Where where) {
  settle_all();
  scheduling_point();
  Mutex& mutex = mutexes_[index];
  while (mutex.held) {
    self().state = State::on_mutex;
    self().blocked_on = index;
    pick(Leaves::blocked);
    self().state = State::ready;
  }
  mutex.held = true;
  learn(0);
  self().view.join(mutex.view);
  if (tracing_) note("lock", nullptr, "", "", where);
}

void Execution::unlock(std::uint16_t index, Where where) {
  settle_all();
  scheduling_point();
  mutexes_[index].held = false;
  mutexes_[index].view = self().view;
  tick();
  learn(0);
  event();
  if (tracing_) note("unlock", nullptr, "", "", where);
}

bool Execution::await_end(ThreadId thread, Where where) {
  settle_all();
  if (threads_[thread].state != State::ended && threads_[thread].state != State::killed) {
    self().state = State::awaiting;
    self().blocked_on = thread;
    pick(Leaves::blocked);
    self().state = State::ready;
  }
  self().view.join(threads_[thread].view);
  bool killed = threads_[thread].state == State::killed;
  learn(killed ? 1 : 0);
  if (tracing_)
    note(killed ? "sees the death of" : "sees the end of", nullptr, threads_[thread].name, "", where);
  return killed;
}

bool Execution::have_ended(std::span<const ThreadId> threads) {
  for (ThreadId thread : threads)
    if (threads_[thread].state != State::ended && threads_[thread].state != State::killed) {
      learn(0);
      return false;
    }
  for (ThreadId thread : threads) self().view.join(threads_[thread].view);
  learn(1);
  return true;
}

// ---- the trace ----

std::string Execution::value_text(const Word& word, Value value) const {
  return word.text != nullptr ? word.text(value) : std::to_string(value);
}

std::string Execution::remark(const Word& word, std::size_t at) const {
  std::size_t newer = word.messages.size() - 1 - at;
  if (newer == 0) return {};
  return "not the newest, which is " + value_text(word, word.messages.back().value);
}

void Execution::note(std::string operation, const Word* word, std::string value, const char* order,
                     Where where, std::string text) {
  if (word != nullptr && !shared[static_cast<std::size_t>(word - words_.data())]) return; // not shared
  TraceLine line;
  line.thread = self().name;
  line.operation = std::move(operation);
  if (word != nullptr) line.word = word->name;
  line.value = std::move(value);
  line.order = order;
  line.where = where;
  line.note = std::move(text);
  trace_.push_back(std::move(line));
}

} // namespace near::model
