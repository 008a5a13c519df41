// Arriving messages, and the memory of unexpected ones.
//
// An unexpected eager message keeps the sender's packet, or a copy of a short payload. Either way it holds
// credits of its sender, so the credits that this process has granted bound the memory of unexpected
// eager messages. An unexpected RTS keeps only its header and no data, unless it stands for a message that has left
// (transport::longest_eager()): the transport keeps that in the sender's packets, or in memory bounded by the sender's credits.
// early.cpp takes both kinds into this process's memory if senders would otherwise wait for ever.
#include "p2p/early.h"

#include "base/log.h"
#include "copy/raw.h"
#include "copy/small.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace near::p2p {

constinit object::Immortal<Matching> matching_storage;

namespace {

constexpr std::size_t small_bytes = 128; ///< up to this size an inlined copy is faster than a call

Unexpected* free_records = nullptr;
std::size_t record_count = 0;

[[noreturn]] [[gnu::cold]] [[gnu::noinline]] void give_up_for_memory() {
  base::log(base::Level::error, "no memory to record an arriving message ({} are waiting for their receives)",
            matching().unexpected());
  std::abort();
}

/// Frees the records of withdrawn RTS messages; allocates more records if that does not free enough.
[[gnu::cold]] [[gnu::noinline]] void more_records() {
  std::size_t withdrawn = 0;
  matching().each_unexpected([&](UnexpectedEntry& entry) {
    auto& message = static_cast<Unexpected&>(entry);
    if (message.is_rts && !transport::rts_is_live(*message.from, message.rts)) {
      take(message);
      discard(message);
      ++withdrawn;
    }
  });
  // If only a few were freed, they would soon be used up and all messages would be searched again.
  if (withdrawn > record_count / 4) return;
  std::size_t more = std::max<std::size_t>(64, record_count);
  auto* records = new (std::nothrow) Unexpected[more];
  if (records == nullptr) {
    if (free_records == nullptr) give_up_for_memory();
    return;
  }
  for (std::size_t i = more; i-- > 0;) {
    records[i].next_free = free_records;
    free_records = &records[i];
  }
  record_count += more;
}

Unexpected& new_record(const transport::Arrival& arrival) {
  if (free_records == nullptr) [[unlikely]]
    more_records();
  transport::count_unexpected();
  Unexpected* record = free_records;
  free_records = record->next_free;
  record->from = arrival.from;
  record->envelope = arrival.envelope;
  record->payload = nullptr;
  record->packet = 0;
  record->is_rts = record->has_credit = record->is_taken = false;
  record->error = MPI_SUCCESS;
  return *record;
}

void set_completion(EngineRequest& receive, const Envelope& envelope) {
  auto capacity = static_cast<std::uint64_t>(receive.buffer.bytes());
  Completion& completion = receive.completion;
  completion = {envelope.source, envelope.tag, MPI_SUCCESS, false, static_cast<MPI_Count>(envelope.bytes)};
  if (envelope.bytes > capacity) [[unlikely]] {
    receive.envelope = envelope; // for the error message
    completion.bytes = static_cast<MPI_Count>(capacity);
    completion.error = MPI_ERR_TRUNCATE;
  }
}

inline void deliver(EngineRequest& receive, const Envelope& envelope, const std::byte* payload) {
  set_completion(receive, envelope);
  auto bytes = static_cast<std::size_t>(receive.completion.bytes);
  if (receive.buffer.type->contiguous && bytes <= small_bytes)
    copy::small(receive.buffer.contiguous_start(), payload, bytes);
  else
    datatype::unpack_arrived(receive.buffer, 0, payload, receive.completion.bytes);
  complete(receive);
}

void receive_done(transport::Transfer& transfer, int error) {
  --receives_under_way;
  EngineRequest& receive = *static_cast<OwnedTransfer&>(transfer).owner;
  if (error != MPI_SUCCESS && receive.completion.error == MPI_SUCCESS) receive.completion.error = error;
  complete(receive);
}

/// Returns false if the sender has withdrawn the RTS; the receive is then unchanged.
bool accept(EngineRequest& receive, Peer& peer, const transport::RtsHeader& rts, const Envelope& envelope) {
  Stage before = receive.stage;
  set_completion(receive, envelope);
  receive.transfer.owner = &receive;
  receive.transfer.done = receive_done;
  receive.stage = Stage::moving;
  ++receives_under_way;
  try {
    if (transport::accept(peer, rts, envelope.bytes, receive.buffer, receive.transfer)) return true;
  } catch (...) {
    --receives_under_way;
    throw;
  }
  --receives_under_way;
  receive.stage = before;
  receive.completion = Completion{};
  return false;
}

[[gnu::noinline]] void note(transport::Arrival& arrival) {
  Unexpected& record = new_record(arrival);
  if (arrival.packet != 0) {
    record.packet = arrival.packet; // now, since keep_packet() clears it in the arrival
    transport::keep_packet(arrival);
    record.payload = arrival.payload;
  } else {
    std::byte* copy = record.copy;
    if (arrival.payload_bytes > Unexpected::inline_bytes) {
      copy = new (std::nothrow) std::byte[arrival.payload_bytes];
      if (copy == nullptr) give_up_for_memory();
    }
    if (arrival.payload_bytes != 0) copy::raw(copy, arrival.payload, arrival.payload_bytes);
    record.payload = copy;
  }
  record.has_credit = true;
  add_waiting(record);
  if (!matching().add(record)) give_up_for_memory();
}

void on_eager(transport::Arrival& arrival) {
  if (Posted* posted = matching().match(arrival.envelope); posted != nullptr) [[likely]] {
    note_match();
    deliver(static_cast<EngineRequest&>(*posted), arrival.envelope, arrival.payload);
    transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
  } else {
    note(arrival);
  }
}

void on_rts(transport::Arrival& arrival) {
  transport::RtsHeader rts = arrival.rts();
  if (Posted* posted = matching().match(arrival.envelope); posted != nullptr) {
    note_match();
    if (accept(static_cast<EngineRequest&>(*posted), *arrival.from, rts, arrival.envelope)) return;
    if (!matching().repost(*posted)) give_up_for_memory();
    return;
  }
  Unexpected& record = new_record(arrival);
  record.is_rts = true;
  record.rts = rts;
  if (rts.may_come_early != 0) add_waiting(record);
  if (!matching().add(record)) give_up_for_memory();
}

} // namespace

void attach() {
  make_sent_request();
  transport::set_handler(transport::Handler::p2p_eager, on_eager);
  transport::set_handler(transport::Handler::p2p_rts, on_rts);
  transport::set_failure_handler(peer_failed);
}

bool consume(Unexpected& message, EngineRequest& receive) {
  bool taken = true;
  note_match();
  if (message.fetch != nullptr) {
    set_completion(receive, message.envelope);
    receive.stage = Stage::moving;
    message.fetch->receive = &receive; // the fetch will call this function again
    return true;
  }
  if (message.is_rts) {
    taken = accept(receive, *message.from, message.rts, message.envelope);
  } else if (message.error != MPI_SUCCESS) {
    receive.completion = {message.envelope.source, message.envelope.tag, message.error, false, 0};
    complete(receive);
  } else {
    deliver(receive, message.envelope, message.payload);
  }
  discard(message);
  return taken;
}

void take(Unexpected& message) { matching().remove(message); }

void discard(Unexpected& message) {
  remove_waiting(message);
  if (!message.is_rts) {
    if (message.packet != 0)
      transport::give_back_packet(*message.from, message.packet);
    else if (message.payload != message.copy)
      delete[] message.payload;
    if (message.has_credit) transport::give_back_credit(*message.from, message.envelope.bytes);
    if (message.is_taken) release_taken(message.envelope.bytes);
  }
  message.next_free = free_records;
  free_records = &message;
}

Unexpected* find_unexpected(std::uint64_t context, int source, int tag) {
  while (UnexpectedEntry* entry = matching().find(context, source, tag)) {
    auto* message = static_cast<Unexpected*>(entry);
    if (!message->is_rts || transport::rts_is_live(*message->from, message->rts)) return message;
    take(*message);
    discard(*message);
  }
  return nullptr;
}

} // namespace near::p2p
