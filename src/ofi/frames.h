// The messages that processes exchange over the network.
//
// A message is a frame of 32 bytes and its body. A process receives the messages of all its peers in packets that it has
// posted to the network; credits bound what a peer may send without being asked.
//
// Messages of a peer are handled in the order in which they were sent, although the network may report them in a different
// one: they are numbered, and an early message stays in its packet until its turn. 16 bits suffice, since a process sends at
// most Settings::window messages beyond those that the peer has confirmed, and `received` messages, few of which are under
// way (doc/adr/0038).
//
//   eager      body: the message
//   unasked    body: UnaskedBody. The bytes come next, as a tagged message of the network
//   rts        body: RtsBody. The receiver reads the bytes (fi_read), or answers with a cts
//   cts        body: CtsBody. The sender answers with data messages
//   data       body: DataBody, bytes
//   fin        body: the sender's cookie. The receiver needs nothing more of a message that it was to read
//   credit     body: a number. Returns that many credits; every frame may return a few
//   hello      body: the sender's address: the first message to a peer
//   closed     no body. The sender posts no more receives
//   leaving    no body. The sender has sent everything; it ends once the peers have answered
//   seen       no body. The answer: everything up to `leaving` has arrived
//   withdraw   body: the sender's cookie. Asks whether an announced message may be cancelled
//   withdrawn  body: WithdrawnBody. The answer
//   atomic     body: AtomicBody
//   answer     body: AnswerBody
//   fence      body: a number. Asks whether all writes before it have arrived
//   fenced     body: that number
//   received   body: a number. All messages before the one with this number have been handled
#pragma once

#include "transport/access.h"
#include "transport/message.h"

#include <cstdint>

namespace near::ofi {

using transport::AtomicOperation;
using transport::RtsHeader;

enum class Message : std::uint8_t {
  eager,
  unasked,
  rts,
  cts,
  data,
  fin,
  credit,
  hello,
  closed,
  leaving,
  seen,
  withdraw,
  withdrawn,
  atomic,
  answer,
  fence,
  fenced,
  received
};

/// The head of every message. Little-endian, like all machines on which NearMPI runs.
struct Frame {
  std::uint64_t secret : 48 = 0;   ///< Settings::secret, as many bits as fit
  std::uint64_t sequence : 16 = 0; ///< the messages from one process to another are numbered
  std::uint64_t context = 0;
  std::uint32_t sender = 0; ///< rank in the job
  std::int32_t source = 0;
  std::int32_t tag = 0;
  std::uint16_t body = 0; ///< bytes, modulo 2^16: the network reports the length of a message
  Message message = Message::eager;
  std::uint8_t credits = 0; ///< of the receiver's credits, how many are returned
};
static_assert(sizeof(Frame) == 32, "with the 32 bytes after it, it fits into what most networks inject");

struct RtsBody {
  std::uint64_t bytes = 0;
  RtsHeader rts{}; ///< its words: the sender's cookie, address, key, whether it can be read
};
struct CtsBody {
  std::uint64_t sender_cookie = 0, receiver_cookie = 0, bytes = 0;
};
struct DataBody {
  std::uint64_t receiver_cookie = 0, position = 0;
};
struct UnaskedBody {
  std::uint64_t cookie = 0; ///< the sender's; its low half is in the tag
  std::uint64_t bytes = 0;  ///< of the message
};
struct WithdrawnBody {
  std::uint64_t cookie = 0, cancelled = 0;
};
struct AtomicBody {
  std::uint64_t cookie = 0, key = 0, address = 0;
  AtomicOperation operation;
};
struct AnswerBody {
  std::uint64_t cookie = 0, before = 0;
  std::int32_t error = 0;
  std::int32_t unused = 0;
};

} // namespace near::ofi
