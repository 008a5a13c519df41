// Offers: the sender says where the data is, the receiver fetches it over the first provider that can.
//
//   sender                         descriptor word            receiver
//   offer -> (g, offered)  ------- p2p_offer ------------->   matched against a receive
//                          (g, offered) -> (g, matched)       accept: compare-and-swap
//   cancel: (g, offered) -> (g, cancelled), local             accept fails, the receiver looks for another
//   message
//          <------ finished (pulled) or cts -------
//   (g + 1, free)
#include "transport/provider.h"

#include "base/kill_point.h"
#include "base/knob.h"
#include "os/clock.h"
#include "os/memory.h"
#include "transport/memory.h"

#include <algorithm>

namespace near::transport {

namespace {

constexpr int no_memory = MPI_ERR_NO_MEM;
/// In OfferTicket::flags, on the receiver's side only: the descriptor is matched already.
constexpr std::uint32_t ticket_claimed = 1;

/// More descriptors, from our arena: as many pages as there are already, within bounds, since to make one
/// page costs as much as many messages. They are never given back, so an old ticket always reads one.
Result grow_offers(std::size_t size) {
  Engine& self = engine();
  void* made = nullptr;
  constexpr std::size_t most = 16;
  std::size_t pages = std::clamp<std::size_t>(self.offer_pages[size], 1, most);
  Result grown = allocate_pages(pages, made);
  if (!grown.ok() && pages > 1) grown = allocate_pages(pages = 1, made);
  if (!grown.ok())
    return base::fail(no_memory, "no memory for more than the {} messages that are under way to others: {}",
                      self.offers_out, std::string(base::failure_text()));
  self.offer_pages[size] += pages;
  for (std::size_t at = pages * os::page_size(); at >= offer_sizes[size];) {
    at -= offer_sizes[size];
    self.free_offers[size].push_back(new (static_cast<std::byte*>(made) + at) OfferDescriptor);
  }
  return {};
}

/// A free descriptor of this size, or of the other one while there is no memory; `size` becomes its own.
Result take_offer(std::size_t& size, OfferDescriptor*& taken) {
  auto& free = engine().free_offers;
  if (free[size].empty()) {
    Result grown = grow_offers(size);
    if (!grown.ok()) {
      size = 1 - size;
      if (free[size].empty()) return grown;
    }
  }
  taken = free[size].back();
  free[size].pop_back();
  return {};
}

/// Copies a short message behind its descriptor: the receiver then loads it, and makes no system call for a
/// few bytes. So short ones come here when credits are used up, or by MPI_Ssend.
void copy_into_room(OfferDescriptor& descriptor, std::size_t size, const View& view, OfferTicket& ticket,
                    std::uint64_t bytes) {
  if (bytes == 0 || bytes > offer_room(size)) return;
  auto* room = reinterpret_cast<std::byte*>(&descriptor + 1);
  datatype::pack(view, 0, room, static_cast<MPI_Count>(bytes));
  ticket.shared = engine().segment.offset_of(room);
}

/// What NEAR_COPY names; nullptr: the choice is free.
const Provider* named_provider() {
  static const Provider* const named = [] {
    for (const Provider& provider : ladder())
      if (base::knobs().copy.text == provider.name) return &provider;
    return static_cast<const Provider*>(nullptr);
  }();
  return named;
}

const Provider& provider_of(Way way) {
  for (const Provider& provider : ladder())
    if (provider.way == way) return provider;
  return ladder().back();
}

/// Of the possible ways the one with the least to do for a few bytes.
Way smallest_overhead(Choice::Mask possible) {
  for (Way way : {Way::direct, Way::cma})
    if ((possible & Choice::bit(way)) != 0) return way;
  return Way::pipelined;
}

/// Starts the transfer over the named, else the best provider; one that refuses this message is passed over.
const Provider* pull(Peer& peer, const OfferTicket& ticket, Transfer& transfer, Pulled& outcome) {
  Choice::Mask possible = 0;
  for (const Provider& provider : ladder()) {
    if (!provider.possible(peer, ticket)) continue;
    if (provider.way == Way::count) {
      drop_head(peer, ticket);
      outcome = provider.pull(peer, ticket, transfer);
      return &provider;
    }
    possible |= Choice::bit(provider.way);
  }
  const Provider* named = named_provider();
  if (peer.choice == nullptr) {
    const segment::Priors& priors = engine().segment.header().priors;
    peer.choice = std::make_unique<Choice>(figures_of(peer), &priors_of(peer), priors.basis);
  }
  for (;;) {
    const Provider* provider = named;
    if (named != nullptr && (possible & Choice::bit(named->way)) != 0)
      peer.choice->take(named->way, transfer.bytes);
    else if (transfer.bytes < worth_timing)
      provider = &provider_of(smallest_overhead(possible));
    else
      provider = &provider_of(peer.choice->choose(transfer.bytes, possible));
    transfer.way = static_cast<std::uint8_t>(provider->way);
    transfer.began_ns = os::monotonic_ns();
    if (ticket.head != 0 && provider->way != Way::pipelined) drop_head(peer, ticket);
    outcome = provider->pull(peer, ticket, transfer);
    if (outcome != Pulled::refused) return provider;
    possible &= ~Choice::bit(provider->way);
  }
}

} // namespace

OfferTicket Arrival::ticket() const {
  OfferTicket copy;
  std::memcpy(&copy, payload, sizeof copy);
  return copy;
}

Result reserve_offers() { return grow_offers(0); }

Result offer(Peer& peer, const Envelope& envelope, const View& view, Transfer& transfer) {
  Engine& self = engine();
  std::size_t size = envelope.bytes > offer_room(0) && envelope.bytes <= offer_room(1) ? 1 : 0;
  OfferDescriptor* taken = nullptr;
  NEAR_TRY(take_offer(size, taken));
  OfferDescriptor& descriptor = *taken;
  transfer.peer = &peer;
  transfer.view = view;
  transfer.bytes = envelope.bytes;
  transfer.position = 0;
  transfer.head = wants_head_start(peer, envelope.bytes) ? ++peer.heads : 0;
  transfer.descriptor = self.segment.offset_of(&descriptor);
  transfer.size = static_cast<std::uint8_t>(size);
  transfer.busy = true;
  transfer.previous = nullptr;
  transfer.next = peer.offers_out;
  if (peer.offers_out != nullptr) peer.offers_out->previous = &transfer;
  peer.offers_out = &transfer;
  peer.may_withdraw = true;
  ++self.offers_out;
  OfferTicket ticket{};
  ticket.descriptor = transfer.descriptor;
  ticket.cookie = reinterpret_cast<std::uint64_t>(&transfer);
  ticket.generation = descriptor.announce();
  ticket.head = transfer.head;
  if (view.is_dense() && envelope.bytes != 0) {
    ticket.address = reinterpret_cast<std::uint64_t>(view.dense_start());
    if (self.segment.contains(view.dense_start())) ticket.shared = self.segment.offset_of(view.dense_start());
  }
  if (ticket.shared == 0 && peer.slot != self.slot)
    copy_into_room(descriptor, size, view, ticket, envelope.bytes);
  static_assert(sizeof ticket <= inline_bytes);
  NEAR_KILL_POINT("offer-made");
  post_control(peer, static_cast<std::uint8_t>(Handler::p2p_offer), envelope, &ticket, sizeof ticket);
  NEAR_KILL_POINT("offer-posted");
  if (transfer.head != 0) send_head(peer, transfer);
  return {};
}

void retire_offer(Transfer& transfer) {
  if (transfer.peer->head_out == &transfer) transfer.peer->head_out = nullptr;
  std::erase_if(engine().helped, [&](const Helped& helped) { return helped.transfer == &transfer; });
  OfferDescriptor& descriptor = descriptor_of(transfer.descriptor);
  descriptor.retire();
  NEAR_KILL_POINT("offer-retired");
  Engine& self = engine();
  self.free_offers[transfer.size].push_back(&descriptor);
  (transfer.previous != nullptr ? transfer.previous->next : transfer.peer->offers_out) = transfer.next;
  if (transfer.next != nullptr) transfer.next->previous = transfer.previous;
  --self.offers_out;
}

bool cancel_offer(Transfer& transfer) {
  if (!descriptor_of(transfer.descriptor).cancel()) return false;
  NEAR_KILL_POINT("offer-cancelled");
  transfer.busy = false;
  retire_offer(transfer);
  return true;
}

bool offer_is_live(const OfferTicket& ticket) {
  return descriptor_of(ticket.descriptor).is_live(ticket.generation);
}

bool claim_offer(OfferTicket& ticket) {
  if (!descriptor_of(ticket.descriptor).accept(ticket.generation)) return false;
  NEAR_KILL_POINT("offer-matched");
  ticket.flags |= ticket_claimed;
  return true;
}

bool accept(Peer& peer, const OfferTicket& ticket, std::uint64_t offered_bytes, const View& view,
            Transfer& transfer) {
  OfferTicket own = ticket;
  if ((ticket.flags & ticket_claimed) == 0 && !claim_offer(own)) return false;
  transfer.peer = &peer;
  transfer.view = view;
  transfer.bytes = std::min<std::uint64_t>(offered_bytes, static_cast<std::uint64_t>(view.bytes()));
  segment::Path path = segment::Path::direct;
  if (transfer.bytes == 0) drop_head(peer, ticket);
  if (transfer.bytes != 0) {
    Pulled outcome = Pulled::refused;
    path = pull(peer, ticket, transfer, outcome)->path;
    if (outcome == Pulled::started) return true;
    if (path != segment::Path::direct || peer.slot != engine().slot) transfer_arrived(transfer);
  }
  NEAR_KILL_POINT("offer-taken");
  Finished message{ticket.cookie, transfer.bytes, static_cast<std::uint32_t>(path)};
  post_control(peer, static_cast<std::uint8_t>(InternalHandler::finished), {}, &message, sizeof message);
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
  return true;
}

void transfer_arrived(Transfer& transfer) {
  if (transfer.bytes < worth_timing) return;
  transfer.peer->choice->learn(static_cast<Way>(transfer.way), transfer.bytes, transfer.began_ns,
                               os::monotonic_ns());
}

void handle_finished(Arrival& arrival) {
  const auto& message = *reinterpret_cast<const Finished*>(arrival.payload);
  auto& transfer = *reinterpret_cast<Transfer*>(message.cookie);
  NEAR_KILL_POINT("finished-read");
  count_sent(*arrival.from, static_cast<segment::Path>(message.path), message.bytes);
  end_head_start(transfer, -1);
  retire_offer(transfer);
  transfer.busy = false;
  transfer.done(transfer, MPI_SUCCESS);
}

} // namespace near::transport
