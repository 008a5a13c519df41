// Declarations shared by the files of the network transport.
#pragma once

#include "ofi/frames.h"
#include "ofi/ofi.h"
#include "ofi/posted_count.h"

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace near::ofi {

using transport::Access;
using transport::Arrival;
using transport::Buffer;
using transport::Eager;
using transport::Envelope;
using transport::Handler;
using transport::HandlerFunction;
using transport::MemoryKey;
using transport::Transfer;

/// The longest eager message.
std::size_t longest_body();
/// A packet holds one message of any kind.
inline std::size_t packet_bytes() { return sizeof(Frame) + longest_body(); }
/// The body of a data message.
inline constexpr std::size_t piece_bytes = 16384;
/// What a peer may send without being asked, until it is released, is counted in credits of this many bytes each. Half of them are
/// returned at a time. Some are reserved for messages that take only one.
inline constexpr std::uint64_t credit_bytes = 4096;
inline constexpr std::uint32_t all_credits = 2048, reserved_credits = 256;
/// The most `received` messages that may be under way beyond Settings::window: a few, since each of them follows half a
/// window of others.
inline constexpr std::uint16_t beyond_window = 64;

/// Bodies of at least this size may be kept in their packet; the layer above copies shorter ones.
inline std::size_t kept_from() { return longest_body() / 4; }
/// The credits that a message takes: for its bytes, or for the packet that may be kept for it.
std::uint32_t credits_for(std::uint64_t bytes);

struct Peer;
/// Whether a message that takes this many credits may be sent.
bool affords(const Peer& peer, std::uint32_t credits);

struct Packet : Operation {
  Peer* peer = nullptr;      ///< to which it is sent
  std::size_t bytes = 0;     ///< in the message
  void* local = nullptr;     ///< the endpoint's key of the memory
  std::byte* data = nullptr; ///< packet_bytes(), unless it is short
  const std::byte* elsewhere =
      nullptr; ///< where the payload is, if not after the frame: in the program's buffer, or in `packed`
  std::byte* packed = nullptr; ///< memory that belongs to this packet
  Transfer* transfer =
      nullptr; ///< what ends once the network has sent the packet; always set if the payload is elsewhere
  std::uint64_t network_tag = 0;
  bool is_tagged = false; ///< sent without its frame, as a tagged message of the network
  bool under_way = false; ///< the network has it
  bool is_short =
      false; ///< the packet has memory of its own, only as large as its message, and waits in Peer::out
  Frame& frame() { return *reinterpret_cast<Frame*>(data); }
  std::byte* body() { return data + sizeof(Frame); }
  std::size_t body_bytes() const { return bytes - sizeof(Frame); }
};

/// Packets of this process, in memory of whole pages.
class PacketPool {
public:
  /// Throws std::bad_alloc.
  Packet* take();
  /// Makes room for this many take() that do not throw. Throws std::bad_alloc.
  void reserve(std::size_t count);
  void give_back(Packet* packet) { free_.push_back(packet); }
  /// Call before the first take(): makes room, and allocates the pages of the `count` packets that are taken first, unless the
  /// kernel refuses. Throws std::bad_alloc.
  void populate(std::size_t count);

private:
  void grow();
  std::vector<Packet*> free_;
};

/// A peer's message whose bytes arrive without having been requested (unasked.cpp).
struct TaggedReceive : Operation {
  enum class Bytes : std::uint8_t {
    announced,
    coming,
    here
  }; ///< `coming` once the network knows where to put them
  Peer* peer = nullptr;                ///< null once the peer has failed
  std::uint64_t cookie = 0, bytes = 0; ///< the sender's; how many arrive
  std::uint32_t credits = 0;           ///< spent by the sender
  Transfer* transfer = nullptr;        ///< the receiver's, once it has matched the message
  std::unique_ptr<std::byte[]> stage;  ///< where the bytes go if they cannot go into the receiver's buffer
  Bytes bytes_are = Bytes::announced;
};

struct Peer : transport::Peer {
  std::unordered_set<std::uint64_t> announced; ///< cookies of its messages that are not yet matched here
  std::unordered_map<std::uint64_t, std::unique_ptr<TaggedReceive>> tagged; ///< from it, by cookie
  std::uint32_t unasked_credits = 0;                                        ///< taken by these messages
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::uint32_t credits_left = all_credits;
  std::uint64_t widest_credit = 0;        ///< the most bytes per credit since all credits were back
  std::uint32_t credits_due = 0;          ///< the peer's credits, not yet returned
  std::deque<Packet*> out;                ///< messages for which the network has no space yet, in order
  std::uint16_t next_sequence = 0;        ///< of our next message to the peer
  std::uint16_t confirmed = 0;            ///< the peer has handled all messages before this one
  std::uint16_t expected = 0;             ///< number of the peer's message whose turn it is
  std::uint16_t reported = 0;             ///< the last number reported to the peer
  std::map<std::uint16_t, Packet*> early; ///< messages that have arrived before their turn, by number
  std::uint32_t unsent = 0;               ///< packets to it that the network is sending
  std::unordered_set<Packet*> awaited;    ///< packets to it that have a transfer
  std::uint32_t accesses = 0;             ///< reads, writes and atomic operations under way
  std::uint64_t writes = 0;               ///< writes to its memory so far,
  std::uint64_t writes_fenced = 0;        ///< how many of them a `fence` follows,
  std::uint64_t writes_arrived = 0;       ///< and how many are known to have arrived

  bool reached = false; ///< a message has got through, from the peer or to it
  bool closed = false;  ///< the peer posts no more receives
  bool leaves = false;  ///< the peer has sent everything, and needs nothing
  bool seen = false;    ///< the peer has received everything, up to our `leaving`
  bool lost = false;    ///< unreachable or dead: the peer fails once the network has released all buffers
  bool failed = false;  ///< transport::fail() was called
  std::uint64_t releasing_since = 0; ///< when it was first found lost while the network used buffers for it
  std::uint32_t releasing_looks = 0; ///< how many polls have found that
  /// Whether the peer accepts nothing more.
  bool is_gone() const { return leaves || failed; }
};

/// An announced message of this process.
struct Sending {
  Transfer* transfer = nullptr;
  fid_mr* memory = nullptr; ///< exposed to the receiver
  bool withdraws = false;   ///< the receiver has been asked whether the message may be cancelled
  bool refused = false;     ///< and has said no
  bool cancelled = false;   ///< or yes
  // Once the receiver has asked for the bytes:
  bool asked = false;
  std::uint64_t receiver_cookie = 0, wanted = 0, position = 0;
};

/// A message that this process receives in pieces.
struct Receiving {
  Transfer* transfer = nullptr;
  std::uint64_t left = 0; ///< bytes
};

/// A read of a message or an access to memory, in pieces; ends when all pieces have ended.
struct Copy {
  struct Piece : Operation {
    Copy* copy = nullptr;
    std::byte* mine = nullptr;
    std::uint64_t theirs = 0, bytes = 0;
    fid_mr* local = nullptr;
  };
  Peer* peer = nullptr;
  std::uint64_t key = 0;
  bool writes = false;
  std::vector<Piece> pieces;
  std::size_t begun = 0, ended = 0;
  int error = MPI_SUCCESS;
  // Its purpose: one of these, or neither if its peer has failed.
  Access* access = nullptr;
  Transfer* transfer = nullptr;
  std::uint64_t sender_cookie = 0;
};

/// An atomic operation to which its target has not replied.
struct AtomicUnderWay {
  Peer* peer = nullptr;
  Access* access = nullptr;
  void* before = nullptr; ///< where the old value goes; may be null
  std::uint8_t bytes = 8;
};

struct State {
  Endpoint endpoint;
  Settings settings;
  HandlerFunction handlers[static_cast<std::size_t>(Handler::count_upper)] = {};
  PacketPool packets;
  std::unordered_map<std::uint32_t, std::unique_ptr<Peer>> peers;           ///< by rank
  std::unordered_map<std::uint32_t, std::vector<std::byte>> told_addresses; ///< from `hello`
  std::vector<Peer*> waiting;                                               ///< peers with messages in `out`
  std::deque<Completion> over;      ///< operations that have completed but are not handled yet, in order
  std::uint32_t posted = 0;         ///< packets in which messages can arrive
  PostedCount posted_count;         ///< how many there should be
  std::uint32_t arrivals = 0;       ///< messages that the present poll of the network has found
  std::uint32_t unsent = 0;         ///< packets that the network is sending, except to peers that have failed
  std::deque<std::uint64_t> pushed; ///< cookies of messages that are being sent in pieces
  std::deque<Copy*> unbegun;        ///< copies with pieces that have not begun
  std::uint64_t next_cookie = 1;
  std::unordered_map<std::uint64_t, Sending> sends;
  bool some_will_not_be_received = false; ///< sends_settled() looks for such messages among `sends`
  std::unordered_map<std::uint64_t, Receiving> receives;
  std::uint64_t tagged_bytes =
      0; ///< of messages sent or received without an RTS: not yet taken by the network, or not yet arrived
  std::vector<std::unique_ptr<TaggedReceive>>
      given_up; ///< of failed peers; the network may still write to them
  bool some_not_received =
      false; ///< a tagged message has been announced, but there was no memory to receive it
  std::unordered_map<std::uint64_t, AtomicUnderWay> atomics;
  std::unordered_map<Copy*, std::unique_ptr<Copy>> copies;
  std::map<std::uint64_t, os::Run> registered; ///< memory of this process, by key
  std::uint32_t deaths = 0;                    ///< reported by the directory so far
  std::uint32_t quiet = 0;                     ///< how many polls in a row have found nothing
  std::uint64_t looked_ns = 0;                 ///< when the last of them polled the network
  bool receives_no_more = false, leaving_told = false;
  bool looks_for_deaths = false; ///< a peer may have died
};
/// The only State of this process. It is never destroyed.
State& state();

/// Whether the network can read bytes directly from the buffer, or write them there.
inline bool is_in_place(const Buffer& buffer) {
  return buffer.is_contiguous() && copy::can_copy(buffer.kind);
}
inline Peer& own(transport::Peer& peer) { return static_cast<Peer&>(peer); }

// messages.cpp
/// Sends a message with this body, after all earlier ones to the peer. Throws std::bad_alloc.
void send(Peer& peer, Message message, const void* body = nullptr, std::size_t bytes = 0);
/// Sends a packet whose frame and body, of this many bytes, are ready.
void send(Peer& peer, Packet& packet, std::size_t bytes);
/// Whether another message may be sent before the peer confirms more.
inline bool is_open(const Peer& peer) {
  return static_cast<std::uint16_t>(peer.next_sequence - peer.confirmed) < state().settings.window;
}
/// Fills in the frame of a message to the peer.
void fill(Frame& frame, Peer& peer, Message message, std::size_t bytes);
/// Passes waiting messages to the network; returns true if any were sent.
bool send_waiting();
/// Drops what has not been passed to the network, and what arrived before its turn.
void drop_waiting(Peer& peer);
/// Ends a transfer, with MPI_SUCCESS or an error class: its buffer may be used again.
inline void finish(Transfer& transfer, int error) {
  transfer.busy = false;
  transfer.done(transfer, error);
}
/// Makes the packet available for another message.
void give_back(Packet& packet);
/// Called when the network has finished with a message of this process, or has failed to send it.
void sent(Packet& packet, int error);
/// Called when a message has arrived, or when its packet comes back empty because of an error.
void arrived(Packet& packet, std::size_t bytes, int error);
void give_back_packet(std::uint64_t packet);
void give_back_credit(transport::Peer& peer, std::uint64_t bytes);

// posted.cpp
/// Makes this packet, whose message has been handled, wait for another one, or frees it.
void post_again(Packet& packet);
/// Posts packets until enough are posted.
void post_packets();
/// post_packets() for the start.
void post_first_packets();
/// Call after each poll of the network, so that as many packets wait as messages arrive at once.
void note_arrivals();

// eager.cpp
Eager send_eager(transport::Peer& to, const Envelope& envelope, const Buffer& buffer, Transfer* waiter);
/// Takes the credits for a message that is being sent, and counts it.
void spend_credits(Peer& peer, const Envelope& envelope);
/// Whether the network is sending a message to this peer from a buffer of the program.
bool sends_from_buffers(const Peer& peer);
/// Ends the messages to a failed peer that are sent without being requested and that somebody waits for.
void abandon_awaited(Peer& peer);

// unasked.cpp
/// The longest message that is sent without an RTS.
std::uint64_t longest_without_rts();
Eager send_unasked(Peer& peer, const Envelope& envelope, const Buffer& buffer, Transfer* waiter);
/// Handles the announcement of such a message. Returns false if it is invalid.
bool take_unasked(Peer& peer, const Envelope& envelope, const UnaskedBody& body);
/// Tries again to receive those for which there was no memory; returns true if there is memory for any.
bool receive_waiting();
/// Called when the network has received the bytes of such a message, or has failed to.
void bytes_are_here(TaggedReceive& message, std::uint64_t bytes, int error);
/// Receives the bytes of a message of a failed peer, so that its connection reaches its end. Throws std::bad_alloc.
void drain_unasked(Peer& peer, const UnaskedBody& body);
/// Receives a message into the buffer of `transfer`, now or when it has arrived; ends `transfer` with an error if the peer fails
/// before. Returns false if there is none with this cookie.
bool accept_unasked(Peer& peer, std::uint64_t cookie, Transfer& transfer);
/// Whether the network may still write such a message from this peer into a buffer of the program.
bool fills_buffers(const Peer& peer);
/// Ends the receives of messages from this peer that have not begun to arrive.
void cancel_unasked(Peer& peer);
/// Drops the messages of a failed peer that have not arrived completely. Returns the transfers that were receiving.
std::vector<Transfer*> abandon_tagged(Peer& peer);

// transport.cpp
/// The peer with this rank, mapped if necessary; nullptr if this transport does not reach it.
Peer* peer_with(std::uint32_t rank);
/// Handles the loss of a peer by the network: the peer fails at one of the next polls, unless it ended as it should.
void settle_lost(Peer& peer);

// rendezvous.cpp
Result send_rts(transport::Peer& to, const Envelope& envelope, const Buffer& buffer, Transfer& transfer);
bool accept(transport::Peer& from, const RtsHeader& rts, std::uint64_t message_bytes, const Buffer& buffer,
            Transfer& transfer);
bool cancel_rts(Transfer& transfer);
bool claim_rts(transport::Peer& from, RtsHeader& rts);
bool rts_is_live(const transport::Peer& from, const RtsHeader& rts);
/// Hands the layer above an RTS, or the announcement of a message that arrives without an RTS.
void announce(Peer& peer, const Envelope& envelope, RtsHeader rts);
void announce_unasked(Peer& peer, const Envelope& envelope, std::uint64_t cookie);
void handle_withdraw(Peer& peer, std::uint64_t cookie);
void handle_withdrawn(Peer& peer, const WithdrawnBody& body);
void handle_cts(Peer& peer, const CtsBody& body);
void handle_data(Peer& peer, const DataBody& head, const std::byte* bytes, std::size_t count);
void handle_fin(Peer& peer, std::uint64_t cookie);
/// Sends more of the messages that receivers have asked for; returns true if any piece was sent.
bool push();
/// Called when the bytes of a message have been read.
void message_was_read(Copy& copy);
bool sends_settled();
/// Ends every message under way with the peer.
void abandon_messages(Peer& peer);

// memory.cpp
Result register_memory(void* address, std::size_t bytes, copy::MemoryKind kind,
                       transport::Registration& made);
void deregister_memory(const transport::Registration& registration);
transport::Capabilities capabilities(transport::Peer& peer, const MemoryKey& key);
void get(transport::Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access);
void put(transport::Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access);
void apply_atomic(transport::Peer& peer, const MemoryKey& key, std::uint64_t address,
                  const AtomicOperation& operation, Access& access);
bool flush(transport::Peer& peer, int& error);
void handle_fenced(Peer& peer, std::uint64_t writes);
void handle_atomic(Peer& peer, const AtomicBody& body);
void handle_answer(Peer& peer, const AnswerBody& body);
/// Ends every access to the peer's memory.
void abandon_accesses(Peer& peer);

// copies.cpp
/// Begins the pieces of a copy as the network gets space for them. Takes ownership of the copy.
void begin(std::unique_ptr<Copy> copy);
/// Begins pieces that had to wait; returns true if any began.
bool begin_waiting();
/// Called when a piece has ended.
void piece_is_over(Copy::Piece& piece, int error);

} // namespace near::ofi
