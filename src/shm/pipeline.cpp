// The pipelined protocol: the sender copies fragments into its packets while the receiver copies earlier ones
// out. It works for every layout and in every sandbox. Fragments arrive in order, so the receiver only counts.
//
//   receiver                                      sender
//                                        <------  RTS, then the first fragments (eager prefix, see below)
//   pull_pipelined: CTS (bytes) --------------->  handle_cts: puts the message into a fragment queue
//                                                 send_fragments: pack into a packet,
//   handle_fragment: unpack  <------------------  send the fragment, and so on
//
// The sender chooses the stores (Peer::fragment_stores).
//
// Eager prefix: if the receive has probably been posted and the message will probably be pipelined, its first
// fragments follow the RTS at once, with the number of the prefix. A posted receive takes them as they arrive,
// and its CTS reaches the sender while that is still sending. If no receive is posted, they are kept, for at
// most one message from each peer. A receiver that chooses another protocol drops them. In every case the send
// completes only after the receiver has answered, so a synchronous send remains synchronous.
#include "shm/packets.h"
#include "shm/provider.h"

#include "base/kill_point.h"
#include "copy/copy.h"

#include <algorithm>

namespace near::shm {

namespace {

/// The fragment size in bytes. Small fragments let the two copies of a short message overlap. Large ones need
/// fewer headers and, with streaming stores, fewer waits until the stores have drained.
std::uint64_t fragment_bytes_of(const Peer& peer, std::uint64_t bytes) {
  const bool cached = (!peer.kept.empty() && engine().kept_take_cached) || !peer.fragment_stores.streaming();
  const bool short_fragments = bytes <= 64u << 10 && cached;
  return std::min<std::uint64_t>(short_fragments ? 8u << 10 : 16u << 10, engine().packets.packet_bytes());
}

/// The longest eager prefix in bytes. Copying its first fragment takes the receiver longer than answering the
/// RTS.
constexpr std::uint64_t prefix_bytes = 64u << 10;
constexpr int most_trust = 4;
/// Between two polls for messages each of a peer's queues sends so many packets divided by the number of peers, but at least
/// `least_per_round`. Where messages go both ways, copies in a row are faster than copies in turns.
constexpr std::size_t packets_per_round = 16, least_per_round = 4;

/// Sends one fragment of the transfer. Returns in how many packets; 0 if there is no free packet or slot.
std::uint32_t send_fragment(Transfer& transfer) {
  Peer& peer = peer_of(transfer);
  OutgoingPacket packet = take_packet_for_fragment(peer, transfer);
  if (!packet) return 0;
  const std::uint32_t packets = packet.reference.is_run ? PacketPool::run : 1;
  const std::uint64_t bytes = packet.reference.bytes;
  NEAR_KILL_POINT("fragment-taken");
  auto claim = claim_slot(peer);
  if (!claim) {
    put_back(peer, packet);
    return 0;
  }
  pack_into(peer, peer.fragment_stores, packet, transfer.buffer, transfer.position, bytes, packets);
  NEAR_KILL_POINT("fragment-filled");
  bool answered = transfer.remote_cookie != 0;
  MessageHeader& header = header_of(claim);
  header.envelope = {transfer.remote_cookie, 0, static_cast<std::int32_t>(transfer.prefix),
                     transfer.position};
  header.handler =
      static_cast<std::uint8_t>(answered ? InternalHandler::fragment : InternalHandler::prefix_fragment);
  header.in_packet = 1;
  *reinterpret_cast<PacketReference*>(header.payload) = packet.reference;
  send_claimed(peer, std::move(claim));
  NEAR_KILL_POINT("fragment-sent");
  engine().packets.fragment_left(bytes_on_their_way(peer, transfer), packets);
  transfer.position += bytes;
  return packets;
}

/// Receiver: copies a fragment into the receive buffer. An eager prefix may have more bytes than that buffer.
void take_fragment(Transfer& transfer, std::uint64_t position, const std::byte* from, std::uint64_t bytes) {
  Peer& peer = peer_of(transfer);
  bytes = std::min(bytes, transfer.bytes - std::min(position, transfer.bytes));
  if (transfer.buffer.is_contiguous())
    copy::copy(static_cast<std::byte*>(transfer.buffer.contiguous_start()) + position, from, bytes,
               peer.asked_for.stores(bytes));
  else
    datatype::unpack_arrived(transfer.buffer, static_cast<MPI_Count>(position), from,
                             static_cast<MPI_Count>(bytes));
  NEAR_KILL_POINT("fragment-copied");
  transfer.position += bytes;
  if (transfer.position < transfer.bytes) return;
  peer.asked_for.remove(transfer.bytes, transfer.footprint);
  PrefixIn& prefix = peer.prefix_in;
  if (prefix.bound == &transfer) {
    prefix.bound = nullptr;
    prefix.dropped = true; // the buffer has no space for fragments that are still in flight
  }
  transfer_arrived(transfer);
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

bool has_fragments(const Peer& peer) {
  return std::any_of(peer.fragments.begin(), peer.fragments.end(),
                     [](const FragmentQueue& queue) { return queue.first != nullptr; });
}

void enqueue(Transfer& transfer) {
  constexpr std::uint64_t longest_short = 1u << 20;
  Peer& peer = peer_of(transfer);
  if (!peer.on_fragment_list) engine().fragment_peers.push_back(&peer);
  peer.on_fragment_list = true;
  peer.fragments[transfer.bytes > longest_short ? 1 : 0].push(transfer);
}

/// All has been packed, so the buffer belongs to the program again.
void finish_packing(Transfer& transfer) {
  NEAR_KILL_POINT("pipeline-packed");
  count_sent(peer_of(transfer), segment::Path::pipelined, transfer.bytes);
  peer_of(transfer).to_send.remove(transfer.bytes);
  retire_rts(transfer);
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

/// Sends fragments of the queue's first transfers, until they have taken `most` packets. Returns true if it has sent any.
bool send_some(FragmentQueue& queue, std::size_t most) {
  bool moved = false;
  for (std::size_t sent = 0; sent < most && queue.first != nullptr;) {
    Transfer& transfer = *queue.first;
    if (transfer.position < transfer.bytes) {
      const std::uint32_t packets = send_fragment(transfer);
      if (packets == 0) break;
      moved = true;
      sent += packets;
    }
    if (transfer.position < transfer.bytes) continue;
    queue.pop();
    finish_packing(transfer);
  }
  return moved;
}

} // namespace

bool wants_eager_prefix(const Peer& peer, std::uint64_t bytes) {
  return peer.prefix_out == nullptr && peer.prefix_trust > 0 && bytes >= worth_timing &&
         peer.row != engine().row;
}

void send_prefix(Peer& peer, Transfer& transfer) {
  peer.prefix_out = &transfer;
  transfer.remote_cookie = 0;
  transfer.fragment_bytes = fragment_bytes_of(peer, transfer.bytes);
  while (transfer.position < std::min(transfer.bytes, prefix_bytes) && send_fragment(transfer) != 0) {}
  NEAR_KILL_POINT("prefix-sent");
}

void end_eager_prefix(Transfer& transfer, int trust) {
  Peer& peer = peer_of(transfer);
  if (peer.prefix_out == &transfer) peer.prefix_out = nullptr;
  peer.prefix_trust = std::clamp(peer.prefix_trust + trust, -most_trust, most_trust);
}

void drop_prefix(Peer& peer, const NodeRts& rts) {
  if (rts.prefix == 0) return;
  NEAR_KILL_POINT("prefix-dropped");
  peer.prefix_in.kept.clear();
  peer.prefix_in = {rts.prefix, true, nullptr, std::move(peer.prefix_in.kept)};
}

Pulled pull_pipelined(Peer& peer, const NodeRts& rts, Transfer& transfer) {
  transfer.position = 0;
  transfer.busy = true;
  transfer.footprint =
      peer.asked_for.add(transfer.buffer.contiguous_start(), transfer.bytes, transfer.began_ns);
  PrefixIn& prefix = peer.prefix_in;
  bool unexpected = rts.prefix != 0 && prefix.number == rts.prefix;
  Cts message{rts.cookie, reinterpret_cast<std::uint64_t>(&transfer), transfer.bytes, unexpected};
  post_control(peer, static_cast<std::uint8_t>(InternalHandler::cts), {}, &message, sizeof message);
  NEAR_KILL_POINT("pipeline-asked");
  if (rts.prefix == 0) return Pulled::started;
  if (!unexpected) {
    prefix.number = rts.prefix;
    prefix.kept.clear();
  }
  prefix.dropped = false;
  prefix.bound = &transfer;
  NEAR_KILL_POINT("prefix-bound");
  if (!prefix.kept.empty()) take_fragment(transfer, 0, prefix.kept.data(), prefix.kept.size());
  return Pulled::started;
}

void handle_prefix_fragment(Arrival& arrival) {
  PrefixIn& prefix = sender_of(arrival).prefix_in;
  auto number = static_cast<std::uint32_t>(arrival.envelope.tag);
  if (prefix.number != number) {
    prefix.kept.clear();
    prefix.number = number;
    prefix.dropped = false;
    prefix.bound = nullptr;
  }
  NEAR_KILL_POINT("prefix-arrived");
  if (prefix.dropped) return;
  if (prefix.bound != nullptr)
    take_fragment(*prefix.bound, arrival.envelope.bytes, arrival.payload, arrival.payload_bytes);
  else
    prefix.kept.insert(prefix.kept.end(), arrival.payload, arrival.payload + arrival.payload_bytes);
}

void handle_cts(Arrival& arrival) {
  const auto& request = *reinterpret_cast<const Cts*>(arrival.payload);
  auto& transfer = *reinterpret_cast<Transfer*>(request.sender_cookie);
  transfer.remote_cookie = request.receiver_cookie;
  transfer.bytes = request.bytes;
  peer_of(transfer).to_send.add(transfer.bytes);
  note_its_choice(transfer, Protocol::pipelined);
  if (transfer.prefix == 0) transfer.fragment_bytes = fragment_bytes_of(peer_of(transfer), transfer.bytes);
  end_eager_prefix(transfer, request.unexpected != 0 ? -2 : 1);
  enqueue(transfer);
  engine().deferred_work = true;
  NEAR_KILL_POINT("pipeline-begun");
}

bool send_fragments() {
  auto& peers = engine().fragment_peers;
  const std::size_t most =
      std::max(packets_per_round / std::max<std::size_t>(peers.size(), 1), least_per_round);
  bool moved = false;
  for (std::size_t i = 0; i < peers.size();) {
    Peer& peer = *peers[i];
    // The queues begin in turn, since the first one may take all packets that have returned.
    peer.long_first = !peer.long_first;
    for (std::size_t turn : {0u, 1u})
      moved |= send_some(peer.fragments[turn ^ (peer.long_first ? 1u : 0u)], most);
    if (has_fragments(peer)) {
      ++i;
      continue;
    }
    peer.on_fragment_list = false;
    return_kept_runs(peer);
    peers[i] = peers.back();
    peers.pop_back();
  }
  // So do the peers.
  if (peers.size() > 1) std::rotate(peers.begin(), peers.begin() + 1, peers.end());
  return moved;
}

void handle_fragment(Arrival& arrival) {
  NEAR_KILL_POINT("fragment-arrived");
  auto& transfer = *reinterpret_cast<Transfer*>(arrival.envelope.context);
  // The sender has answered the CTS that followed the failed probe, so it was alive.
  if (sender_of(arrival).cma == CmaState::doubtful) [[unlikely]]
    confirm_refusal(sender_of(arrival));
  take_fragment(transfer, arrival.envelope.bytes, arrival.payload, arrival.payload_bytes);
}

} // namespace near::shm
