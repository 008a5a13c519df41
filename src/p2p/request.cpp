// The life of requests: how they are made and destroyed. Source: MPI 5.0, section 3.7.
#include "p2p/engine.h"

#include "base/log.h"

#include <utility>

namespace near::p2p {

constinit object::Immortal<RequestPool> request_storage;

namespace {

/// "send of 80 bytes to rank 3 with tag 7"
std::string name_of(const EngineRequest& request) {
  if (request.what == RequestKind::send)
    return base::format("send of {} bytes to rank {} with tag {}", request.envelope.bytes, request.rank,
                        request.tag);
  // Nothing may have arrived, so the completion has no length to show.
  return base::format("receive of up to {} bytes from rank {} with tag {}", request.buffer.bytes(),
                      request.completion.source, request.completion.tag);
}

} // namespace

Request* find_request(MPI_Request handle) {
  return requests().find(reinterpret_cast<std::uintptr_t>(handle));
}

Request* finished_request() { return find_request(sent_request); }

std::size_t live_requests() { return requests().live() - (sent_request != MPI_REQUEST_NULL); }

Result no_request() {
  return base::fail(MPI_ERR_NO_MEM, "no memory for another request ({} are in use)", requests().live());
}

void make_sent_request() {
  EngineRequest* request = nullptr;
  if (sent_request != MPI_REQUEST_NULL || !make_request(RequestKind::send, nullptr, Buffer{}, request).ok())
    return;
  request->shared = request->owns_more = true;
  request->active = true;
  request->completion = Completion{};
  complete(*request);
  sent_request = public_handle(*request);
}

void destroy_with_more(EngineRequest& request) {
  if (request.shared) return;
  if (request.scheduled) discard_schedule(request);
  if (request.schedule != nullptr) request.schedule.reset(); // may still use communicator and datatype
  if (request.generalized != nullptr) request.generalized.reset();
  if (request.store != nullptr) release_block(*std::exchange(request.store, nullptr), request.block);
  if (request.buffer.type != nullptr && !request.buffer.type->predefined)
    datatype::release(request.buffer.type);
  if (request.communicator != nullptr) object::release(request.communicator);
  requests().destroy(&request);
}

void retire(EngineRequest& request) {
  request.freed = true;
  RequestPool::retire(&request);
}

Result failure_of(const EngineRequest& request) {
  const Completion& at = request.completion;
  if (request.schedule != nullptr) return base::fail(at.error, "{}", request.schedule->sentence());
  if (at.error == MPI_ERR_TRUNCATE && request.what == RequestKind::receive)
    return base::fail(
        MPI_ERR_TRUNCATE,
        "message of {} bytes from rank {} with tag {} does not fit the receive buffer of {} bytes",
        request.envelope.bytes, at.source, at.tag, request.buffer.bytes());
  if (at.error == MPI_ERR_PROC_ABORTED)
    return base::fail(at.error, "rank {} has failed, so the {} cannot be finished", request.rank,
                      name_of(request));
  return base::fail(at.error, "the transport could not finish the {}", name_of(request));
}

Result make_completed(Communicator& communicator, const Completion& completion, Request*& made) {
  EngineRequest* request = nullptr;
  NEAR_TRY(make_request(RequestKind::receive, &communicator, Buffer{}, request));
  request->completion = completion;
  request->active = true;
  complete(*request);
  made = request;
  return {};
}

} // namespace near::p2p
