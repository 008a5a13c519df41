// Sends: eager if the transport takes the message at once; otherwise by an RTS; otherwise deferred.
//
// A send is deferred if all descriptors for RTS messages are in use, so a program may start any number of
// sends. While a send to a peer is deferred, all later ones to this peer queue up behind it, so they stay in
// order. Source: MPI 5.0, sections 3.4 and 3.7.
#include "p2p/early.h"

#include "base/log.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace near::p2p {

namespace {

/// The deferred sends to one peer, oldest first. Needed only if a program has very many unmatched sends.
struct Fifo {
  Link list{&list, &list}; ///< uses the links by which a posted receive is in its list
  EngineRequest& first() const { return static_cast<EngineRequest&>(*static_cast<PostedLink*>(list.next)); }
};
auto& deferred = *new std::unordered_map<Peer*, Fifo>; // never destroyed

auto forget(decltype(deferred.begin()) fifo) {
  --background;
  transport::hold_back(*fifo->first, false);
  return deferred.erase(fifo);
}

void send_done(transport::Transfer& transfer, int error) {
  EngineRequest& send = *static_cast<OwnedTransfer&>(transfer).owner;
  send.completion.error = error;
  complete(send);
}

void finish_eager(EngineRequest& send) {
  send.completion.bytes = 0;
  complete(send);
}

/// Warns once that sends wait for memory. This may be the only hint as to why a program makes no progress.
[[gnu::cold]] void tell_of_missing_memory() {
  static bool told = false;
  if (std::exchange(told, true)) return;
  base::log(base::Level::warning,
            "{}; from now on sends leave when earlier ones have been received, so a program that receives a "
            "later one first would wait for ever",
            std::string(base::failure_text()));
}

/// Sends the message eagerly or as an RTS. Returns false with `result` ok if no descriptor is free.
bool put_on_wire(EngineRequest& send, Result& result) {
  result = {};
  send.transfer.owner = &send;
  send.transfer.done = send_done;
  send.transfer.may_come_early = send.mode != SendMode::synchronous;
  if (send.mode != SendMode::synchronous && send.envelope.bytes <= transport::longest_eager()) {
    transport::Eager sent = transport::send_eager(*send.peer, send.envelope, send.buffer, &send.transfer);
    if (sent == transport::Eager::left) finish_eager(send);
    if (sent == transport::Eager::waits) send.stage = Stage::moving;
    if (sent != transport::Eager::refused) return true;
  }
  Stage before = send.stage;
  send.stage = Stage::rendezvous;
  Result sent = transport::send_rts(*send.peer, send.envelope, send.buffer, send.transfer);
  if (sent.ok()) return true;
  send.stage = before;
  if (sent.code() != MPI_ERR_NO_MEM && !sent.is(base::Code::no_memory))
    result = sent;
  else
    tell_of_missing_memory();
  return false;
}

[[gnu::cold]] void defer(EngineRequest& send) {
  send.stage = Stage::deferred;
  Fifo& fifo = deferred[send.peer];
  if (is_empty(fifo.list)) {
    ++background;
    transport::hold_back(*send.peer, true);
  }
  link_last(fifo.list, send);
}

Result launch(EngineRequest& send) {
  Result result;
  if (may_overtake_nothing(*send.peer) && put_on_wire(send, result)) return {};
  if (!result.ok()) {
    send.active = false;
    return result;
  }
  defer(send);
  return {};
}

/// Makes progress if a lane has been requested: a program that only sends would never learn that it was granted.
/// Library functions make progress when they wait.
void look_for_answers(SendMode mode, Channel channel) {
  if (mode == SendMode::standard && channel == Channel::user && transport::expects_answer()) [[unlikely]]
    progress();
}

bool leaves_at_once(SendMode mode) { return mode == SendMode::standard || mode == SendMode::ready; }

[[gnu::noinline]] Result send_and_wait(EngineRequest& send) {
  NEAR_TRY(begin_send(send));
  wait_until([&] { return send.complete; });
  return outcome(send);
}

Result make_send_request(const Buffer& buffer, int destination, int tag, Communicator& communicator,
                         SendMode mode, Channel channel, EngineRequest*& made) {
  NEAR_TRY(make_request(RequestKind::send, &communicator, buffer, made));
  made->aim(destination, tag, communicator, channel);
  made->mode = mode;
  return {};
}

} // namespace

bool send_at_once(const Buffer& buffer, int destination, int tag, const Communicator& communicator,
                  Channel channel) {
  Peer& peer = transport::peer_of(communicator, destination);
  Envelope envelope{context_of(communicator, channel), communicator.rank, tag,
                    static_cast<std::uint64_t>(buffer.bytes())};
  return envelope.bytes <= transport::longest_eager() && copy::can_copy(buffer.kind) &&
         may_overtake_nothing(peer) && transport::try_send_eager(peer, envelope, buffer);
}

bool may_overtake_nothing(Peer& peer) { return deferred.empty() || !deferred.contains(&peer); }

bool has_deferred() { return !deferred.empty(); }

bool move_deferred() {
  bool moved = false;
  for (auto at = deferred.begin(); at != deferred.end();) {
    Fifo& fifo = at->second;
    while (!is_empty(fifo.list)) {
      EngineRequest& send = fifo.first();
      Link* next = send.next; // read first: the request may be gone once its message has left
      Result result;
      if (!put_on_wire(send, result)) {
        if (result.ok()) break;
        send.completion.error = object::error_class(result);
        complete(send);
      }
      moved = true;
      fifo.list.next = next;
      next->previous = &fifo.list;
    }
    if (!is_empty(fifo.list))
      ++at;
    else
      at = forget(at);
  }
  return moved;
}

bool withdraw_rts(EngineRequest& send) { return transport::cancel_rts(send.transfer); }

void withdraw_deferred(EngineRequest& send) {
  auto at = deferred.find(send.peer);
  unlink(send);
  if (is_empty(at->second.list)) forget(at);
}

Result begin_send(EngineRequest& send) {
  send.active = true;
  send.complete = false;
  send.completion = Completion{};
  if (send.rank == MPI_PROC_NULL) {
    complete(send);
    return {};
  }
  Communicator& communicator = *send.communicator;
  send.peer = &transport::peer_of(communicator, send.rank);
  send.envelope =
      Envelope{send.context, communicator.rank, send.tag, static_cast<std::uint64_t>(send.buffer.bytes())};
  if (send.mode == SendMode::buffered) {
    if (Result buffered = send_buffered(send.buffer, *send.peer, send.envelope, communicator);
        !buffered.ok()) {
      send.active = false;
      return buffered;
    }
    complete(send);
    return {};
  }
  return launch(send);
}

Result begin_detached_send(EngineRequest& send, Peer& peer, const Envelope& envelope) {
  send.peer = &peer;
  send.mode = SendMode::standard;
  send.envelope = envelope;
  send.active = true;
  send.freed = true;
  Result launched = launch(send);
  if (!launched.ok()) destroy(send);
  return launched;
}

Result send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
            Channel channel) {
  if (destination == MPI_PROC_NULL) [[unlikely]]
    return {};
  if (leaves_at_once(mode) && send_at_once(buffer, destination, tag, communicator, channel)) [[likely]] {
    look_for_answers(mode, channel);
    return {};
  }
  NEAR_TRY(datatype::check_copyable(buffer));
  EngineRequest request;
  request.what = RequestKind::send;
  request.buffer = buffer;
  request.aim(destination, tag, communicator, channel);
  request.mode = mode;
  return send_and_wait(request);
}

Result start_send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
                  Request*& made, Channel channel) {
  if (destination != MPI_PROC_NULL && leaves_at_once(mode) &&
      send_at_once(buffer, destination, tag, communicator, channel)) {
    made = finished_request();
    look_for_answers(mode, channel);
    return {};
  }
  EngineRequest* send = nullptr;
  NEAR_TRY(make_send_request(buffer, destination, tag, communicator, mode, channel, send));
  if (Result begun = begin_send(*send); !begun.ok()) {
    destroy(*send);
    return begun;
  }
  made = send;
  look_for_answers(mode, channel);
  return {};
}

Result make_send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
                 Request*& made) {
  EngineRequest* send = nullptr;
  NEAR_TRY(make_send_request(buffer, destination, tag, communicator, mode, Channel::user, send));
  send->persistent = true;
  made = send;
  return {};
}

void drain() {
  // Otherwise a sender would wait for this process to read the rest of a message.
  end_taking();
  wait_until([] { return !is_fetching(); });
  transport::receive_no_more();
  wait_until([] {
    // Messages to peers that receive nothing more need no descriptor.
    for (auto at = deferred.begin(); at != deferred.end();)
      at = transport::has_ended(*at->first) ? forget(at) : std::next(at);
    return deferred.empty() && transport::sends_settled();
  });
}

} // namespace near::p2p
