// The origin's side of one-sided operations on processes on other machines.
//
//   long puts, gets of few pieces  the network writes or reads registered memory, where the transport offers that
//   everything else                messages (wire.h), which the target carries out when it makes progress (server.h)
//
// Memory is bounded: a call waits while too many messages and answers are under way, or too large ones.
#pragma once

#include "rma/agent.h"
#include "rma/direct.h"
#include "rma/server.h"

#include <deque>
#include <memory>
#include <vector>

namespace near::rma {

class Remote final : public RemoteAccess {
public:
  explicit Remote(Window& window);
  /// Begins to serve the other processes.
  Result start() { return agent_.start(); }

  bool reaches(int rank) const override;
  Result put(const Buffer& from, int rank, const Buffer& there, const Pending& operation) override;
  Result get(const Buffer& into, int rank, const Buffer& there, const Pending& operation) override;
  Result accumulate(const Buffer& from, const Buffer* before, int rank, const Buffer& there,
                    const Operation& how, const Pending& operation) override;
  Result compare_and_swap(const void* origin, const void* compare, void* before, int rank,
                          const Buffer& there, const Pending& operation) override;
  Result check(int rank, const Buffer& there) override;
  void expect(int rank) override;
  void expect_no_more(int rank) override;
  Result lock(int rank, bool exclusive) override;
  Result unlock(int rank, bool exclusive) override;
  Result try_all_shared(bool& taken, std::size_t& missing) override;
  Result unlock_all_shared() override;
  void stop() override;

  /// Advances everything under way. Called from the progress engine.
  void advance();

private:
  /// A target with this many operations of unknown state is asked about them even if no call waits.
  static constexpr std::size_t most_unanswered = 1024;

  /// A message of this process: head, runs, space for data.
  struct Message {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::byte* data = nullptr;
  };
  struct Sending {
    Message message;
    p2p::Request* request = nullptr;
  };
  /// An operation whose answers come in several messages.
  struct Parts {
    Pending operation;
    int left = 0;
    int error = MPI_SUCCESS;
  };
  /// Data that a target sends.
  struct Fetch {
    p2p::Request* request = nullptr;
    std::unique_ptr<std::byte[]> packed; ///< unless they arrive in the program's buffer
    Buffer into;
    MPI_Count at = 0, bytes = 0;
    std::shared_ptr<Parts> parts;
  };
  struct Target {
    std::deque<Sending> sending;
    std::deque<Fetch> fetching;
    std::vector<Pending> unanswered; ///< operations in messages that no flush has followed yet
    std::vector<Pending> flushed;    ///< those before the flush under way; empty if there is none
    p2p::Request* flush = nullptr;   ///< the flush's answer
    Answer flush_answer;
    std::vector<Pending> written; ///< direct puts that are complete here
    std::uint32_t direct = 0;     ///< direct accesses that are not complete here
    int expected = 0;             ///< calls waiting for the target's operations
    bool is_active = false;       ///< listed in `active_`
    bool is_idle() const;
  };

  Target& target(int rank);
  Target& activate(int rank);
  bool is_idle() const;
  std::uint32_t next_tag();
  void make_room(std::size_t bytes);

  static Message make_message(CallHead head, std::span<const Run> runs, std::size_t data_bytes);
  Result send(int rank, Message message);
  template <class Fill>
  Result call(int rank, const Buffer& there, CallHead head, bool has_data, const Buffer* into,
              const Pending& operation, Fill&& fill);
  Result fetch(int rank, std::uint32_t tag, const Buffer& into, const Fragment& fragment, bool whole,
               const std::shared_ptr<Parts>& parts);
  Result ask(int rank, CallHead head, std::span<const Run> runs, Answer& answer);
  Result begin_answer(int rank, std::uint32_t tag, Answer& answer, p2p::Request*& request);
  Result begin(std::unique_ptr<Direct> direct);
  void direct_is_over(Direct& direct, int error);

  static void end_part(Parts& parts, int error);
  void end_sends(Target& target);
  void end_fetches(Target& target);
  void advance_flush(int rank, Target& target);

  Window& window_;
  Server server_;
  std::vector<std::unique_ptr<Target>> targets_; ///< by rank; null until the first operation
  std::vector<int> active_;                      ///< targets with something under way
  std::vector<int> ranks_;                       ///< all ranks that this object reaches
  std::size_t moving_bytes_ = 0, moving_ = 0;    ///< bytes and number of messages and answers under way
  int expected_everywhere_ = 0;
  std::uint32_t next_tag_ = first_answer_tag;
  bool has_ended_ = false; ///< a transfer has, since the last advance()
  Agent<Remote> agent_{*this};
};

/// Begins to serve and to reach the processes of the window on other machines, if there are any.
Result reach_other_machines(Window& window);

} // namespace near::rma
