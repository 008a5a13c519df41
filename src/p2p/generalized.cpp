// Generalized requests: operations that the program itself performs behind a request. Source: MPI 5.0,
// section 13.2.
#include "p2p/engine.h"

namespace near::p2p {

/// Every completion call must call this, even with MPI_STATUS_IGNORE.
Result query_generalized(const Generalized& generalized, MPI_Status* status) {
  MPI_Status ignored{};
  MPI_Status* out = status != MPI_STATUS_IGNORE ? status : &ignored;
  int keep_error = out->MPI_ERROR;
  write_empty_status(out);
  int error = generalized.query(generalized.extra_state, out);
  out->MPI_ERROR = keep_error;
  if (error == MPI_SUCCESS) return {};
  return base::fail(error, "the query function of a generalized request returned error {}", error);
}

Result free_generalized(const Generalized& generalized) {
  int error = generalized.free_function(generalized.extra_state);
  if (error == MPI_SUCCESS) return {};
  return base::fail(error, "the free function of a generalized request returned error {}", error);
}

Result cancel_generalized(const Generalized& generalized, bool is_complete) {
  int error = generalized.cancel_function(generalized.extra_state, is_complete ? 1 : 0);
  if (error == MPI_SUCCESS) return {};
  return base::fail(error, "the cancel function of a generalized request returned error {}", error);
}

Result make_generalized(MPI_Grequest_query_function* query_function,
                        MPI_Grequest_free_function* free_function,
                        MPI_Grequest_cancel_function* cancel_function, void* extra_state, Request*& made) {
  EngineRequest* request = nullptr;
  NEAR_TRY(make_request(RequestKind::generalized, nullptr, Buffer{}, request));
  request->owns_more = true;
  request->generalized =
      std::make_unique<Generalized>(Generalized{query_function, free_function, cancel_function, extra_state});
  request->active = true;
  made = request;
  return {};
}

Result complete_generalized(Request& base) {
  EngineRequest& request = engine(base);
  if (request.generalized == nullptr)
    return base::fail(MPI_ERR_REQUEST, "the request is not a generalized one");
  if (request.complete) return base::fail(MPI_ERR_REQUEST, "the generalized request is complete already");
  if (request.freed) {
    Result result = free_generalized(*request.generalized);
    complete(request);
    return result;
  }
  complete(request);
  transport::wake_waiting_threads();
  return {};
}

} // namespace near::p2p
