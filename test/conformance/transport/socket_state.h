// Declarations shared by the files of the plain transport. See socket_transport.h.
#pragma once

#include "socket_transport.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace near::test::sockets {

using transport::Arrival;
using transport::Buffer;
using transport::Eager;
using transport::Envelope;
using transport::Handler;
using transport::HandlerFunction;
using transport::Result;
using transport::RtsHeader;
using transport::Transfer;

enum class What : std::uint32_t { eager, credit, rts, cts, data, closed, put, get, atomic, answer };

/// Precedes `payload` bytes on the stream. The cookies are addresses of transfers in their owners' processes.
struct Frame {
  What what = What::eager;
  std::uint32_t payload = 0;
  Envelope envelope = {};
  std::uint64_t sender_cookie = 0, receiver_cookie = 0;
};

/// A get, put or atomic operation that the peer has not answered.
struct AccessUnderWay {
  transport::Access* access = nullptr; ///< null: a put, which is done once it is packed
  std::vector<os::Run> into;           ///< destination of the answer
};

struct Peer : transport::Peer {
  int descriptor = -1;
  std::uint32_t credits_left = 32;
  std::deque<std::byte> out; ///< not written yet
  /// Each is done when that many bytes in all have been written.
  std::deque<std::pair<std::uint64_t, Transfer*>> waiters;
  std::uint64_t queued = 0, written = 0;
  std::vector<std::byte> in;       ///< the received part of an incomplete frame
  Transfer* sends = nullptr;       ///< announced but not finished; linked by previous and next
  std::vector<Transfer*> receives; ///< accepted, but the data has not arrived
  bool closed = false;             ///< it has announced that it receives no more
  bool deaf = false;               ///< it cannot be written to; its earlier messages can still be read
  bool gone = false;               ///< it is deaf, and all its messages have been read
  // Access to its memory (socket_memory.cpp).
  std::map<std::uint64_t, AccessUnderWay> accesses; ///< not answered yet; by number
  std::uint64_t next_access = 1;
  int late_error = MPI_SUCCESS; ///< error of a put that failed after its done()
};

struct State {
  Peer peer;
  object::ProcessId other;
  HandlerFunction handlers[static_cast<int>(Handler::count_upper)] = {};
  std::unordered_map<std::uint64_t, std::unique_ptr<std::byte[]>> kept;
  std::uint64_t next_packet = 1;
  bool receives_no_more = false;
  std::map<std::uint64_t, os::Run> registered; ///< memory of this process, by number
  std::uint64_t next_registration = 1;
};
/// The only State of this process. It is never destroyed.
State& state();

inline Peer& own(transport::Peer& peer) { return static_cast<Peer&>(peer); }

/// Queues a frame and `frame.payload` bytes, which come from the buffer or from `payload`.
void put_frame(Peer& peer, const Frame& frame, const Buffer* buffer = nullptr);
void put_frame(Peer& peer, const Frame& frame, const std::vector<std::byte>& payload);
/// Writes as many queued bytes as the socket accepts.
void write_out(Peer& peer);

// The operations on memory.
Result register_memory(void* address, std::size_t bytes, copy::MemoryKind kind,
                       transport::Registration& made);
void deregister_memory(const transport::Registration& registration);
transport::Capabilities capabilities(transport::Peer& peer, const transport::MemoryKey& key);
void get(transport::Peer& peer, const transport::MemoryKey& key, std::span<os::Run> theirs,
         std::span<os::Run> mine, transport::Access& access);
void put(transport::Peer& peer, const transport::MemoryKey& key, std::span<os::Run> theirs,
         std::span<os::Run> mine, transport::Access& access);
void apply_atomic(transport::Peer& peer, const transport::MemoryKey& key, std::uint64_t address,
                  const transport::AtomicOperation& operation, transport::Access& access);
bool flush(transport::Peer& peer, int& error);
/// Carries out a request of the peer, or completes an access to its memory.
void handle_memory(Peer& peer, const Frame& frame, const std::byte* payload);
/// Fails every access to the peer's memory that is under way.
void abandon_accesses(Peer& peer);

} // namespace near::test::sockets
