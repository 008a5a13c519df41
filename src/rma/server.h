// The target's side of one-sided operations that arrive as messages (wire.h): this process carries them out on its own
// part of a window whenever it makes progress. It never waits: a call that needs a lock stays first in its queue.
#pragma once

#include "p2p/p2p.h"
#include "rma/state.h"
#include "rma/wire.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace near::rma {

class Server {
public:
  explicit Server(Window& window) : window_(window) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Receives and carries out a bounded number of calls. Called from the progress engine.
  void advance();
  /// Whether no work is left for the calls received so far: no process waits for a lock or holds one.
  bool is_idle() const;

private:
  struct Incoming {
    int origin = 0;
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
    p2p::Request* request = nullptr;
  };
  /// A call, as laid out in its message.
  struct Received {
    int origin;
    CallHead head;
    std::span<const Run> runs;
    std::span<const std::byte> data;
  };
  struct LockCall {
    int origin;
    bool exclusive;
    std::uint32_t answer_tag;
  };
  struct Outgoing {
    std::unique_ptr<std::byte[]> data;
    p2p::Request* request = nullptr;
  };

  bool receive();
  bool serve_first();
  bool carry_out(const Received& call);
  bool accumulate(const Received& call);
  bool is_whole(const Received& call) const;
  void refuse(const Received& call);
  void answer(const Received& call, Answer answer);
  void send(int origin, std::uint32_t tag, std::unique_ptr<std::byte[]> data, std::size_t bytes);
  void try_lock(const Received& call);
  void unlock(int origin, bool exclusive);
  void grant_locks();
  void forget_failed();
  void end_answers();

  Window& window_;
  std::deque<Incoming> incoming_; ///< in order of arrival
  std::size_t incoming_bytes_ = 0;
  std::deque<LockCall> wanted_;   ///< locks that processes wait for, oldest first
  std::vector<LockCall> granted_; ///< locks that processes hold
  std::deque<Outgoing> outgoing_;
  std::map<int, int> errors_; ///< by origin: the first error since the origin's last flush
  /// Set while the first call, or the first of `wanted_`, waits for a lock that a process on this machine holds.
  std::optional<transport::AwaitedLock> awaits_elements_, awaits_epoch_;
};

} // namespace near::rma
