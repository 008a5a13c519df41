// Completion calls for one request: finish, peek, cancel, start, free.
// Source: MPI 5.0, sections 3.7.3, 3.7.6, 3.8.4 and 3.9.
#include "p2p/engine.h"

namespace near::p2p {

void wait_complete(Request& request) {
  if (!request.complete) wait_until([&] { return request.complete; });
}

Result peek(Request& base, MPI_Status* status) {
  EngineRequest& request = engine(base);
  if (request.generalized != nullptr) return query_generalized(*request.generalized, status);
  write_status(status, request.completion, false);
  return {};
}

namespace {

/// The slow path of finish().
[[gnu::noinline]] Result finish_any(MPI_Request& handle, EngineRequest& request, MPI_Status* status,
                                    bool with_error) {
  Result result;
  if (request.generalized != nullptr) {
    result = query_generalized(*request.generalized, status);
    Result freed = free_generalized(*request.generalized);
    if (result.ok()) result = freed;
    if (with_error && status != MPI_STATUS_IGNORE) status->MPI_ERROR = result.code();
  } else {
    result = outcome(request);
    write_status(status, request.completion, with_error);
  }
  if (request.persistent) {
    request.active = false;
    request.complete = false;
    request.stage = Stage::idle;
    return result;
  }
  destroy(request);
  handle = MPI_REQUEST_NULL;
  return result;
}

} // namespace

Result finish(MPI_Request& handle, Request& base, MPI_Status* status, bool with_error) {
  EngineRequest& request = engine(base);
  if (request.what == RequestKind::generalized || request.persistent ||
      request.completion.error != MPI_SUCCESS) [[unlikely]]
    return finish_any(handle, request, status, with_error);
  write_status(status, request.completion, with_error);
  handle = MPI_REQUEST_NULL;
  destroy(request);
  return {};
}

Result cancel(Request& base) {
  EngineRequest& request = engine(base);
  if (request.generalized != nullptr) return cancel_generalized(*request.generalized, request.complete);
  if (request.complete || !request.active) return {};
  if (request.schedule != nullptr) {
    request.schedule->cancel();
    return {};
  }
  bool cancelled = false;
  switch (request.stage) {
  case Stage::posted: cancelled = withdraw(request); break;
  case Stage::rendezvous: cancelled = withdraw_rts(request); break;
  case Stage::deferred:
    withdraw_deferred(request);
    cancelled = true;
    break;
  default: break;
  }
  if (cancelled) {
    request.completion = Completion{};
    request.completion.cancelled = true;
    complete(request);
    transport::wake_waiting_threads();
  }
  return {};
}

Result start(Request& base) {
  EngineRequest& request = engine(base);
  if (!request.persistent)
    return base::fail(MPI_ERR_REQUEST, "the request is not persistent, so it cannot be started");
  if (request.active)
    return base::fail(MPI_ERR_REQUEST,
                      "the persistent request is active: complete it before it is started again");
  if (request.schedule != nullptr) return begin_schedule(request);
  return request.what == RequestKind::send ? begin_send(request) : begin_receive(request);
}

void free_request(MPI_Request& handle, Request& base) {
  EngineRequest& request = engine(base);
  handle = MPI_REQUEST_NULL;
  if (request.active && !request.complete) {
    if (request.generalized != nullptr)
      request.freed = true; // its handle stays valid for MPI_Grequest_complete, which destroys it
    else
      retire(request);
    return;
  }
  if (request.generalized != nullptr) (void)free_generalized(*request.generalized);
  destroy(request);
}

} // namespace near::p2p
