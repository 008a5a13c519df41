// One execution of a scenario: its threads, the words that they share, and the messages that each may still
// read. README.md explains the memory model and the terms that are used here.
#pragma once

#include "fibre.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace near::model {

using Where = std::source_location;
using Value = std::uint64_t;
using ThreadId = unsigned;
using Place = std::int32_t; ///< in a modification order
using Steps = std::int32_t;

inline constexpr std::size_t max_threads = 8, max_words = 24; // multiples of 4, since views are joined often

enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel };
constexpr bool acquires(Order order) { return order == Order::acquire || order == Order::acq_rel; }
constexpr bool releases(Order order) { return order == Order::release || order == Order::acq_rel; }

/// For each word, the place in its modification order of the oldest message that may still be read.
struct Seen {
  std::array<Place, max_words> place{};
  void join(const Seen& other) {
    for (std::size_t i = 0; i < max_words; ++i)
      place[i] = place[i] < other.place[i] ? other.place[i] : place[i];
  }
};

/// A vector clock for happens-before: the number of steps of each thread that come before.
struct Clock {
  std::array<Steps, max_threads> steps{};
  void join(const Clock& other) {
    for (std::size_t i = 0; i < max_threads; ++i)
      steps[i] = steps[i] < other.steps[i] ? other.steps[i] : steps[i];
  }
};

struct View {
  Seen seen;
  Clock clock;
  void join(const View& other) {
    seen.join(other.seen);
    clock.join(other.clock);
  }
};

/// A store, as other threads may read it.
struct Message {
  Value value = 0;
  Place place = 0;       ///< in the modification order; gaps leave space for earlier stores
  bool attached = false; ///< by a read-modify-write: no message may come between it and its predecessor
  View view;             ///< an acquire read joins this view
};

using ValueText = std::string (*)(Value);

struct Word {
  const void* address = nullptr;
  std::string name;
  ValueText text = nullptr;
  std::vector<Message> messages; ///< in modification order
  ThreadId first_user = 0;
  bool used = false;
};

/// Bounds on everything other than continuing the running thread and reading the newest message, so that an
/// exhaustive search ends.
struct Bounds {
  unsigned preemptions = 2; ///< switches away from a thread that could continue
  unsigned stale = 2;       ///< reads of older messages than the newest, stores before an existing message
  unsigned deferrals = 1;   ///< relaxed reads that are carried out after later operations
  unsigned kills = 1;       ///< deaths of mortal threads
};
inline constexpr unsigned unbounded = 1u << 30;

/// Weakens one ordering: the operation at this place in the sources loses its acquire or its release, or is
/// removed.
struct Mutant {
  std::string file; ///< the end of the path; empty: nothing is weakened
  unsigned line = 0;
  bool acquire = false, release = false, removed = false;
};

/// The kind of a decision; alternative 0 is always the default.
enum class Choice : std::uint8_t { thread, kill, message, place, defer, side };

/// Makes the decisions of an execution.
class Chooser {
public:
  virtual ~Chooser() = default;
  /// Returns one of 0 .. alternatives - 1.
  virtual unsigned choose(Choice kind, unsigned alternatives) = 0;
  /// Returns the index of one of the candidates. If the running thread can continue, it is the first one.
  virtual unsigned choose_thread(std::span<const ThreadId> candidates) {
    return choose(Choice::thread, static_cast<unsigned>(candidates.size()));
  }
  /// Whether to call been_here() at each scheduling point.
  virtual bool knows_states() const { return false; }
  /// Whether all that can follow from this state, with this much left of the bounds, has been explored.
  virtual bool been_here(std::uint64_t /*state*/, const Bounds& /*left*/) { return false; }
};

struct TraceLine {
  std::string thread, operation, word, value, note;
  const char* order = "";
  Where where;
};

using Site = std::pair<std::string, unsigned>; ///< file, line

/// An operation whose value has not been used yet. It is carried out when its value is used, when a later
/// operation or the chooser forces it: until then, later operations of its thread overtake it.
struct Pending {
  enum Kind : std::uint8_t { load, exchange, add, bit_or } kind = load;
  bool open = false; ///< not carried out yet
  bool held = false; ///< its value may still be used
  bool deferred = false;
  std::uint16_t word = 0;
  unsigned number = 0;
  Value operand = 0, result = 0;
  Where where;
};

class Execution {
public:
  /// Thrown through the scenario if its execution ends early.
  class Stop {};
  /// again: a word turned out to be shared; known: the rest has been explored.
  enum class Result : std::uint8_t { held, failed, again, known };

  /// Runs `scenario`, which makes words and threads, calls go(), and checks the result.
  Result run(const std::function<void()>& scenario, Chooser& chooser, const Bounds& bounds,
             const Mutant& mutant, bool tracing);
  [[noreturn]] void fail(std::string why);

  // ---- the scenario's frame ----
  ThreadId add_thread(std::string name, std::function<void()> body, bool mortal);
  void go();
  std::uint16_t make_word(const void* address, Value initial);
  void name_word(const void* address, std::string name, ValueText text);
  /// Memory for this execution, at the same addresses in each execution, so that equal states are recognised.
  std::byte* allocate(std::size_t bytes, std::size_t alignment);

  // ---- words ----
  Value load(std::uint16_t word, Order order, Where where);
  void store(std::uint16_t word, Value value, Order order, Where where);
  /// Reads and modifies; returns the old value.
  Value modify(std::uint16_t word, Pending::Kind kind, Value operand, Order order, Where where);
  bool compare_and_swap(std::uint16_t word, Value& expected, Value desired, Order order, Where where);
  /// Whether a relaxed operation of the running thread may be overtaken at all.
  bool defers() const { return !on_main(); }
  /// A relaxed operation that later ones may overtake.
  Pending* postpone(std::uint16_t word, Pending::Kind kind, Value operand, Where where);
  Value settle(Pending& pending);
  void release_hold(Pending& pending);
  /// The order that the operation at this place keeps under the mutant.
  Order weakened(Order order, Where where);

  // ---- fences ----
  void fence(Where where);
  void light_fence(Where where);
  void heavy_fence(Where where);

  // ---- memory without atomics ----
  void plain(const void* at, std::size_t bytes, bool writes, Where where);

  // ---- blocking ----
  /// begin_poll() and poll_again() enclose a poll that finds nothing, so it changes nothing of the thread.
  void begin_poll() { self().history_before_poll = self().history; }
  void poll_again();
  void futex_wait(const void* address, Value expected, Where where);
  void futex_wake(const void* address, Where where);
  std::uint16_t make_mutex();
  void lock(std::uint16_t mutex, Where where);
  void unlock(std::uint16_t mutex, Where where);
  /// Waits until that thread has ended and sees all that it did; returns whether it was killed.
  bool await_end(ThreadId thread, Where where);
  /// Returns whether all of them have ended; if so, sees all that they did.
  bool have_ended(std::span<const ThreadId> threads);
  bool was_killed(ThreadId thread) const { return threads_[thread].state == State::killed; }

  // ---- the result ----
  const std::string& failure() const { return failure_; }
  const std::vector<std::uint8_t>& decisions() const { return decisions_; }
  const std::vector<TraceLine>& trace() const { return trace_; }
  unsigned steps() const { return steps_; }

  /// Words that two threads used, in this or an earlier execution of the same scenario. An operation on any
  /// other word is not a scheduling point, since no other thread can tell when it happens.
  std::bitset<max_words> shared;
  /// While this is set, collects the places at which operations with an order, and fences, were executed.
  std::set<Site>* sites = nullptr;

private:
  enum class State : std::uint8_t { ready, paused, in_futex, on_mutex, awaiting, ended, killed };
  struct Thread {
    std::string name;
    std::function<void()> body;
    bool mortal = false;
    State state = State::ready;
    std::size_t blocked_on = 0; ///< word, mutex or thread
    View view;                  ///< the messages that it has seen
    View acquirable;            ///< views of its relaxed reads: a fence joins them to `view`
    View released;              ///< the view that its relaxed stores carry: that of its last fence
    Seen at_light_fence;        ///< the messages that it had seen at its last light fence
    Seen from_heavy_fences;     ///< the messages that it sees after its next light fence
    unsigned own_events = 0, poll_began = 0;
    bool polled_stale = false;
    std::array<Pending, 4> pending{};
    std::uint64_t history = 0; ///< hash of its operations and their results, which determines its position
    std::uint64_t history_before_poll = 0;
    std::uint64_t hash = 0; ///< of all the above, unless `changed`
    bool changed = true;
  };
  struct Mutex {
    bool held = false;
    View view;
  };
  struct Cell { ///< a byte without atomics
    const std::byte* at = nullptr;
    unsigned execution = 0;
    ThreadId writer = 0;
    Steps written = 0;
    Where written_where;
    std::array<Steps, max_threads> read{};
    std::uint64_t hash = 0;
  };
  enum class Leaves : std::uint8_t { preempted, yields, blocked, for_good };

  Thread& self() { return threads_[running_]; }
  bool on_main() const { return running_ == main_thread; }
  unsigned decide(Choice kind, unsigned alternatives);
  void begin_operation(std::uint16_t word, bool releasing);
  void use(std::uint16_t word);
  void scheduling_point();
  void pick(Leaves how);
  void leave_what_is_known(Leaves how);
  std::uint64_t state_hash(Leaves how);
  void learn(Value value);
  bool can_run(const Thread& thread) const;
  unsigned foreign_events(const Thread& thread) const { return events_ - thread.own_events; }
  bool may_poll_again(const Thread& thread) const {
    return thread.polled_stale || foreign_events(thread) != thread.poll_began;
  }
  void event();
  /// Called after a release: later steps of this thread are not part of what others may acquire.
  void tick() { ++self().view.clock.steps[running_]; }
  void die();
  static void thread_body(void* argument);
  [[noreturn]] void deadlock();
  [[noreturn]] void back_to_main();
  void full_fence();

  Pending* oldest_open();
  void settle_all();
  void carry_out(Pending& pending);
  Value modify_now(std::uint16_t word, Pending::Kind kind, Value operand, Order order, Where where);
  Value load_now(std::uint16_t word, Order order, Where where);
  bool removed(Where where) const;
  bool is_mutant(Where where) const;
  void collect(Where where);
  std::size_t oldest_readable(const Word& word);
  bool has_room_after(const Word& word, std::size_t at) const;
  std::size_t choose_candidate(Choice kind);
  void read(std::uint16_t word, std::size_t at, Order order);
  void write(std::uint16_t word, std::size_t after, Value value, Order order, bool modifies);
  std::string value_text(const Word& word, Value value) const;
  std::string remark(const Word& word, std::size_t at) const;
  void note(std::string operation, const Word* word, std::string value, const char* order, Where where,
            std::string text = {});
  std::uint16_t word_at(const void* address) const;
  Cell& cell(const std::byte* at);

  static constexpr ThreadId main_thread = max_threads - 1;

  Chooser* chooser_ = nullptr;
  Bounds left_;
  const Mutant* mutant_ = nullptr;
  bool tracing_ = false;
  std::array<Fibre, max_threads> fibres_;
  std::array<Thread, max_threads> threads_;
  std::size_t thread_count_ = 0;
  std::vector<Word> words_;
  std::size_t word_count_ = 0;
  std::array<Mutex, 4> mutexes_;
  std::size_t mutex_count_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::byte> arena_;
  std::size_t arena_used_ = 0;
  std::uint64_t memory_hash_ = 0; ///< of all messages and cells
  unsigned execution_ = 0;
  ThreadId running_ = main_thread;
  Seen fences_; ///< the messages that the threads had seen at their full fences
  unsigned events_ = 0, steps_ = 0, pendings_ = 0;
  std::vector<std::uint8_t> decisions_;
  std::vector<std::size_t> candidates_;
  std::vector<TraceLine> trace_;
  std::string failure_;
  bool again_ = false, known_ = false;
};

/// The current execution, to which the operations of the model's atomics go.
Execution& current();

} // namespace near::model
