// A recorded collective: the verbs that a collective group was given, run later by the progress engine.
// Nonblocking and persistent collectives are schedules; a persistent one is run again and again.
//
// A schedule is a list of steps that run in order. A send or receive step only starts its message; a wait
// step holds the schedule until one earlier message is finished. So a schedule does exactly what the blocking
// form does, and a verb that would block costs the progress engine one test.
#pragma once

#include "coll/call.h"
#include "p2p/p2p.h"

#include <memory>
#include <string>
#include <vector>

namespace near::coll {

using object::Communicator;

class Schedule final : public p2p::Schedule {
public:
  Schedule() = default;
  ~Schedule() override;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  using Step = std::size_t;

  // Recording. Datatypes and operations are kept alive until the schedule goes.
  Step send(const Buffer& buffer, int to, int tag, Communicator& communicator);
  Step receive(const Buffer& buffer, int from, int tag, Communicator& communicator);
  Result wait(Step message);
  Result pend(Step message);
  Result finish_until(std::size_t remaining);
  Result copy(const Buffer& from, const Buffer& to);
  Result reduce(const Operation& operation, const Buffer& in, const Buffer& inout);
  Result allocate(std::size_t bytes, std::byte*& at);

  // Running, by the progress engine (p2p/request.h).
  /// Goes back to the first step.
  Result begin() override;
  /// Runs steps until one has to wait. After a failure the messages under way are cancelled first.
  bool advance(p2p::Completion& completion) override;
  std::string_view sentence() const override { return sentence_; }

private:
  enum class Kind : std::uint8_t { send, receive, wait, copy, reduce };
  struct Entry {
    Kind kind;
    int peer = 0, tag = 0;
    Step message = 0; ///< wait: which
    Buffer a{}, b{};  ///< send, receive: a; copy: from a to b; reduce: b = a op b
    Communicator* communicator = nullptr;
    const Operation* operation = nullptr;
    p2p::Request* request = nullptr; ///< send, receive: while under way
  };
  Step add(const Entry& entry);
  void keep_type(Datatype* type);
  Result run(Entry& entry);
  bool finished(Entry& entry);
  void note(Result result);

  std::vector<Entry> steps_;
  std::vector<Step> pending_; ///< while recording: started, not yet waited for
  std::size_t next_ = 0;
  Result outcome_;
  std::string sentence_;
  std::vector<Datatype*> types_;
  std::vector<Operation*> operations_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

} // namespace near::coll
