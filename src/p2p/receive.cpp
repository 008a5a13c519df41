// Receives: take an unexpected message, else post the receive. Source: MPI 5.0, sections 3.2 and 3.7.
#include "p2p/engine.h"

#include "p2p/fast.h"

namespace near::p2p {

bool receive_unexpected(EngineRequest& receive) {
  while (Unexpected* message = find_unexpected(receive.context, receive.rank, receive.tag)) {
    take(*message);
    if (consume(*message, receive)) return true;
  }
  return false;
}

Result begin_from_nobody(EngineRequest& receive) {
  receive.completion = Completion{};
  receive.completion.source = MPI_PROC_NULL;
  complete(receive);
  return {};
}

Result begin_without_memory(EngineRequest& receive) {
  receive.active = false;
  return base::fail(MPI_ERR_NO_MEM, "no memory to post a receive");
}

bool withdraw(EngineRequest& receive) {
  if (receive.stage != Stage::posted) return false;
  matching().remove(receive);
  receive.stage = Stage::idle;
  return true;
}

/// Receives a message that has arrived completely, without posting the receive, if no other receive and no unexpected
/// message is pending.
static bool receive_at_once(const Buffer& buffer, int source, int tag, const Communicator& communicator,
                            Completion& completion, Channel channel) {
  if (source < 0 || object::unknown_process == nullptr || !matching().idle() || !copy::can_copy(buffer.kind))
    return false;
  transport::ReceiveState& receive_state = states_of(communicator, source).receive;
  if (receive_state.peer == nullptr) [[unlikely]] {
    transport::find_peer(communicator, source);
    return false;
  }
  const auto* message = arrives(receive_state, context_of(communicator, channel), tag,
                                static_cast<std::uint64_t>(buffer.bytes()));
  if (message == nullptr) return false;
  completion = Completion{source, message->envelope.tag, MPI_SUCCESS, false,
                          static_cast<MPI_Count>(message->envelope.bytes)};
  receive_whole(receive_state, *message, buffer);
  return true;
}

Result receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Completion& completion,
               Channel channel) {
  if (receive_at_once(buffer, source, tag, communicator, completion, channel)) return {};
  NEAR_TRY(datatype::check_copyable(buffer));
  EngineRequest request;
  request.what = RequestKind::receive;
  request.buffer = buffer;
  request.aim(source, tag, communicator, channel);
  NEAR_TRY(begin_receive(request));
  if (!request.complete) wait_until([&] { return request.complete; });
  completion = request.completion;
  return outcome(request);
}

Result start_receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Request*& made,
                     Channel channel) {
  return start_receive_inline(buffer, source, tag, communicator, made, channel);
}

Result make_receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Request*& made) {
  EngineRequest* receive = nullptr;
  NEAR_TRY(make_request(RequestKind::receive, &communicator, buffer, receive));
  receive->aim(source, tag, communicator, Channel::user);
  receive->persistent = true;
  made = receive;
  return {};
}

} // namespace near::p2p
