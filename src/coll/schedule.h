// A recorded collective: the verbs that a collective group was given, run by the progress engine.
// Nonblocking and persistent collectives are schedules; a persistent one is run again and again.
//
// A schedule is a list of steps that run in order. A send or receive step only starts its message; a wait
// step holds the schedule until one earlier message is finished. So a schedule does exactly what the blocking
// form does, and a verb that would block costs the progress engine one test.
//
// A nonblocking call has begun when it is recorded. So its verbs are executed instead, until one of them would have to wait:
// only that one and those behind it become steps.
#pragma once

#include "coll/call.h"
#include "p2p/p2p.h"

#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

namespace near::coll {

using object::Communicator;

class Area;
class AreaCall;
struct Description;
struct AreaExtension;

class Schedule final : public p2p::Schedule {
public:
  /// `begins`: the call begins while it is recorded, and runs once.
  explicit Schedule(bool begins);
  ~Schedule() override;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  // From memory of earlier schedules: nonblocking calls come in numbers.
  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  using Step = std::size_t;

  // Recording. Datatypes and operations are kept alive until the schedule is destroyed.
  Step send(const Buffer& buffer, int to, int tag, Communicator& communicator);
  /// With a `condition`, only if that is true when the step is run.
  Step receive(const Buffer& buffer, int from, int tag, Communicator& communicator,
               const bool* condition = nullptr);
  Result wait(Step message);
  Result pend(Step message);
  Result finish_until(std::size_t remaining);
  Result copy(const Buffer& from, const Buffer& to);
  Result reduce(const Operation& operation, const Buffer& in, const Buffer& inout);
  Result allocate(std::size_t bytes, std::byte*& at);
  /// The call uses an area (shared/exchange.h): its steps come after those that are recorded now, and begin at its turn.
  AreaCall& use_area(Area& area, const Description& description, std::uint64_t numbers);
  /// The call, of one chunk, has taken this number in its area and has published what it has to. Before use_area().
  void go_on(std::uint64_t number) { begun_ = number; }
  /// Records a step of the area's call: runs act(), which returns a Result, as soon as ready() is true.
  template <class Ready, class Act>
  void attempt(Ready ready, Act act) {
    if (executes_ && executed(ready, act)) return;
    add_attempt(place<AttemptOf<Ready, Act>>(ready, act), false);
  }
  /// A step that may also be done before its turn, if the schedule has to wait for an earlier one, but not before the
  /// early step before it.
  template <class Ready, class Act>
  void attempt_early(Ready ready, Act act) {
    if (executes_ && executed(ready, act)) return;
    add_attempt(place<AttemptOf<Ready, Act>>(ready, act), true);
  }
  /// Keeps the types of what is recorded by attempts. Their operations are predefined ones.
  void keep(const Call& call, int size);
  /// Keeps the area of a persistent call.
  void keep(std::unique_ptr<AreaExtension> area);
  /// The area that the ranks have, even if the call consists of messages only: it ends if this rank leaves the call.
  void set_area(Area& area, const Description& call);

  // Running, by the progress engine (p2p/request.h).
  /// Goes back to the first step.
  Result begin() override;
  /// Runs steps until one has to wait. After a failure the messages under way are cancelled first.
  bool advance(p2p::Completion& completion) override;
  bool watches_memory() const override { return area_call_ != nullptr; }
  bool may_advance() const override;
  /// Ends a call that has begun, and for whose rest there is no memory: tells the other ranks what this one will not publish or
  /// send, and cancels its messages, whose buffers the caller may free. Waits only for those that cannot be cancelled any more.
  void leave() override;
  std::string_view sentence() const override { return sentence_; }

private:
  enum class Kind : std::uint8_t { send, receive, started, wait, copy, reduce, attempt };
  /// For objects in the arena.
  struct Destroy {
    template <class T>
    void operator()(T* object) const {
      object->~T();
    }
  };
  template <class T, class... Arguments>
  T* place(Arguments&&... arguments) {
    return new (arena_.allocate(sizeof(T), alignof(T))) T(std::forward<Arguments>(arguments)...);
  }
  struct Attempt {
    virtual ~Attempt() = default;
    virtual bool ready() = 0;
    virtual Result act() = 0;
  };
  template <class Ready, class Act>
  struct AttemptOf final : Attempt {
    AttemptOf(Ready ready, Act act) : ready_(std::move(ready)), act_(std::move(act)) {}
    bool ready() override { return ready_(); }
    Result act() override { return act_(); }
    Ready ready_;
    Act act_;
  };
  struct Entry {
    Kind kind;
    int peer = 0, tag = 0;
    Step message = 0; ///< wait: which
    Buffer a{}, b{};  ///< send, receive: a; copy: from a to b; reduce: b = a op b
    Communicator* communicator = nullptr;
    const bool* condition = nullptr; ///< receive; null: always
    const Operation* operation = nullptr;
    p2p::Request* request = nullptr; ///< send, receive, started: while under way
    std::unique_ptr<Attempt, Destroy> attempt{};
    bool done = false; ///< attempt
  };
  Step add(Entry entry);
  Step add_message(Entry entry);
  Result add_local(Entry entry);
  /// Whether it need not wait, and so has been done. Otherwise nothing more is executed before the progress engine runs this.
  template <class Ready, class Act>
  bool executed(Ready& ready, Act& act) {
    executes_ = ready();
    if (!executes_) return false;
    note_executed(act());
    return true;
  }
  bool may_attempt_early() const;
  void look_for_mismatch();
  void add_attempt(Attempt* attempt, bool early);
  bool attempted(Entry& entry);
  void attempt_next_early();
  void keep_type(Datatype* type);
  Result run(Entry& entry);
  static void reduce_recorded(const Entry& entry) noexcept;
  Result started(Result result);
  bool finished(Entry& entry);
  void note(Result result);
  void note_executed(Result result);
  void stop_executing();
  void give_up();

  /// A call of this many steps needs no memory but the schedule's own.
  static constexpr std::size_t usual_steps = 20, usual_bytes = 6 << 10;
  alignas(std::max_align_t) std::byte usual_[usual_bytes]; // not initialised
  std::pmr::monotonic_buffer_resource arena_{usual_, usual_bytes};
  std::pmr::vector<Entry> steps_{&arena_};
  std::pmr::vector<Step> early_{&arena_}; ///< steps that may be done before their turn
  std::size_t next_early_ = 0;
  bool executes_;                            ///< what is recorded is done at once
  bool under_way_;                           ///< begun while it was recorded, and not over
  std::uint64_t begun_ = 0;                  ///< the number of go_on(); 0: none
  Step turn_ = 0;                            ///< the step that waits for the turn of the call in its area
  std::unique_ptr<AreaExtension> own_area_;  ///< of a persistent call
  Area* area_ = nullptr;                     ///< of all ranks, if they have one
  const Description* description_ = nullptr; ///< of the call, there
  std::unique_ptr<AreaCall, Destroy> area_call_;
  std::vector<Step> pending_; ///< while recording: started, not yet waited for
  std::size_t next_ = 0;
  bool lacks_message_ = false; ///< one could not be started
  Result outcome_;
  std::string sentence_;
  std::vector<Datatype*> types_;
  std::vector<Operation*> operations_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

} // namespace near::coll
