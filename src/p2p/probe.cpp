// Probe and matched probe. Source: MPI 5.0, section 3.8.
#include "p2p/engine.h"

namespace near::p2p {

namespace {

object::Immortal<object::Pool<Message, object::Kind::message>> messages;

Unexpected* find_unexpected(int source, int tag, Communicator& communicator) {
  return p2p::find_unexpected(context_of(communicator, Channel::user), source, tag);
}

Completion envelope_of(const Unexpected& message) {
  Completion envelope;
  envelope.source = message.envelope.source;
  envelope.tag = message.envelope.tag;
  envelope.bytes = static_cast<MPI_Count>(message.envelope.bytes);
  return envelope;
}

Completion no_process() {
  Completion envelope;
  envelope.source = MPI_PROC_NULL;
  return envelope;
}

/// Returns the message's record and destroys the handle's object.
Unexpected& open(Message& message) {
  auto& arrived = *static_cast<Unexpected*>(message.arrival);
  object::release(message.communicator);
  messages.value.destroy(&message);
  return arrived;
}

} // namespace

Message* find_message(MPI_Message handle) {
  return messages.value.find(reinterpret_cast<std::uintptr_t>(handle));
}

bool probe(int source, int tag, Communicator& communicator, Completion& envelope) {
  if (source == MPI_PROC_NULL) {
    envelope = no_process();
    return true;
  }
  Unexpected* message = find_unexpected(source, tag, communicator);
  if (message == nullptr) return false;
  envelope = envelope_of(*message);
  return true;
}

Result probe_matched(int source, int tag, Communicator& communicator, bool& found, Message*& made,
                     Completion& envelope) {
  made = nullptr;
  found = true;
  if (source == MPI_PROC_NULL) {
    envelope = no_process();
    return {};
  }
  Unexpected* arrived = find_unexpected(source, tag, communicator);
  found = arrived != nullptr;
  if (!found) return {};
  Message* message = messages.value.make();
  if (message == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for another matched message");
  // Claim an RTS, so that its sender can no longer cancel it. If the sender was faster, try the next message.
  while (arrived != nullptr && arrived->is_rts && !transport::claim_rts(*arrived->from, arrived->rts))
    arrived = find_unexpected(source, tag, communicator);
  found = arrived != nullptr;
  if (!found) {
    messages.value.destroy(message);
    return {};
  }
  take(*arrived);
  envelope = envelope_of(*arrived);
  message->communicator = object::keep(&communicator);
  message->arrival = arrived;
  message->envelope = envelope;
  made = message;
  return {};
}

/// Receives a matched message. Its sender can no longer withdraw it, but may have failed.
static void consume_claimed(Message& message, EngineRequest& request) {
  if (consume(open(message), request)) return;
  request.completion.error = MPI_ERR_PROC_ABORTED;
  complete(request);
}

Result receive_matched(Message& message, const Buffer& buffer, Completion& completion) {
  NEAR_TRY(datatype::check_copyable(buffer));
  EngineRequest request;
  request.what = RequestKind::receive;
  request.buffer = buffer;
  consume_claimed(message, request);
  wait_complete(request);
  completion = request.completion;
  return outcome(request);
}

Result start_receive_matched(Message& message, const Buffer& buffer, Request*& made) {
  EngineRequest* request = nullptr;
  NEAR_TRY(make_request(RequestKind::receive, message.communicator, buffer, request));
  request->active = true;
  consume_claimed(message, *request);
  made = request;
  return {};
}

} // namespace near::p2p
