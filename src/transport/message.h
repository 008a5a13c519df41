// Messages as the layers above the transports see them.
#pragma once

#include "datatype/datatype.h"
#include "object/communicator.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace near::transport {

using datatype::Buffer;
using object::Result;

struct Peer;

/// The values by which a message is matched. `bytes` is the packed length of the whole message.
struct Envelope {
  std::uint64_t context = 0; ///< communicator context with its channel
  std::int32_t source = 0;   ///< sender's rank in the communicator
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
};

/// The kinds of messages that layers above handle. They register their handlers with set_handler(); these are
/// the only calls upward.
enum class Handler : std::uint8_t {
  p2p_eager = 0, ///< the payload is the whole message
  p2p_rts = 1,   ///< payload is an RtsHeader
  count_upper = 2,
  // 2 and above are each transport's own.
};

/// What an RTS tells the receiver's side of the transport, in the transport's own form. p2p copies it out of the arrival,
/// keeps it until a receive matches, and passes it on.
struct RtsHeader {
  std::uint64_t words[5];
  std::uint32_t kind;
  std::uint32_t may_come_early; ///< the same for all transports: Transfer::may_come_early, 0 or 1
};

/// A message as its handler sees it. Payload and packet are valid only during the call.
struct Arrival {
  Peer* from;
  const Envelope& envelope;
  const std::byte* payload;
  std::size_t payload_bytes;
  /// If nonzero, the payload lies in a packet that may be kept with keep_packet().
  std::uint64_t packet;
  RtsHeader rts() const {
    RtsHeader copy;
    std::memcpy(&copy, payload, sizeof copy);
    return copy;
  }
};
using HandlerFunction = void (*)(Arrival& arrival);

/// Keeps the packet: the payload stays valid until give_back_packet().
inline void keep_packet(Arrival& arrival) { arrival.packet = 0; }

/// What became of an eager message.
enum class Eager : std::uint8_t {
  refused, ///< no credit or no packet: nothing was sent; send an RTS instead
  waits, ///< leaves when progress can send it, perhaps from the buffer itself; `waiter->done` is called then
  left,
};

/// One side of a rendezvous. It is part of p2p's requests or fetches, so the transport does not allocate any. p2p sets `done` and
/// reads `peer`, `buffer` and `bytes`; the rest belongs to the transport.
struct Transfer {
  /// Called from progress (or at once) when this side is finished; `error` is an MPI error class.
  void (*done)(Transfer& transfer, int error) = nullptr;
  Peer* peer = nullptr;
  Buffer buffer;
  std::uint64_t bytes = 0;          ///< packed bytes that move
  std::uint64_t position = 0;       ///< pipelined: packed bytes moved so far
  std::uint64_t fragment_bytes = 0; ///< pipelined: bytes in each packet
  std::uint32_t prefix = 0;         ///< sender: number of its eager prefix; 0 if none
  std::uint64_t footprint = 0;      ///< receiver, pipelined: memory that no other message under way fills
  std::uint64_t began_ns = 0;       ///< receiver: when the protocol was chosen
  std::uint8_t protocol = 0;        ///< receiver: the protocol that was chosen
  bool has_gaps = false;            ///< receiver: the data has gaps here or at the sender
  std::uint8_t size = 0;            ///< sender: the descriptor's
  std::uint64_t cookie = 0;         ///< names this transfer in messages of the transport
  std::uint64_t descriptor = 0;     ///< sender: where the state of its RTS is
  std::uint64_t remote_cookie = 0;
  bool busy = false;
  /// Sender, set by p2p: the send is not synchronous, so it may end before its receive is posted.
  bool may_come_early = false;
  Transfer *previous = nullptr, *next = nullptr; ///< the sender's list of its RTS messages under way
  Transfer* behind = nullptr;                    ///< sender: the next one to send fragments (pipelined)
};

} // namespace near::transport
