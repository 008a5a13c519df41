// The wait and test families. Source: MPI 5.0, sections 3.7.3 to 3.7.6.
//
// MPI_REQUEST_NULL and inactive persistent requests count as complete and give the empty status. The array
// forms return MPI_ERR_IN_STATUS if an operation failed; only then do they write the MPI_ERROR fields.
// MPI_Waitall completes the other operations even then, so none is left with MPI_ERR_PENDING.
#include "mpi/error.h"
#include "mpi/impl.h"

#include <string>

namespace near::mpi::impl {

using p2p::Request;

namespace {

/// nullptr for the null request and for inactive ones.
Request* active(MPI_Request handle) {
  Request* request = p2p::find_request(handle);
  return request != nullptr && request->active ? request : nullptr;
}

MPI_Status* element(MPI_Status* statuses, int i) {
  return statuses != MPI_STATUSES_IGNORE ? statuses + i : MPI_STATUS_IGNORE;
}

/// Finishes requests, writes consecutive statuses and collects the errors.
class Finisher {
public:
  explicit Finisher(MPI_Status* statuses) : statuses_(statuses) {}

  void finish(MPI_Request& handle, Request& request, int index) {
    MPI_Status* status = element(statuses_, done_);
    note(p2p::finish(handle, request, status, false), index);
  }
  void finish_empty(int index) {
    p2p::write_empty_status(element(statuses_, done_));
    note({}, index);
  }
  Result result() const {
    if (failed_ == 0) return {};
    return base::fail(MPI_ERR_IN_STATUS, "{} of {} operations failed; the first is number {}: {}", failed_,
                      done_, first_, sentence_);
  }

private:
  void note(Result result, int index) {
    if (!result.ok() || failed_ != 0) [[unlikely]]
      note_errors(result, index);
    ++done_;
  }
  [[gnu::cold]] [[gnu::noinline]] void note_errors(Result result, int index) {
    if (!result.ok() && failed_++ == 0) {
      first_ = index;
      sentence_ = base::failure_text();
      mpi::note_first_in_statuses(object::error_class(result));
      for (int i = 0; i < done_; ++i) set_error(i, MPI_SUCCESS);
    }
    set_error(done_, result.ok() ? MPI_SUCCESS : object::error_class(result));
  }
  void set_error(int i, int error) {
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[i].MPI_ERROR = error;
  }

  MPI_Status* statuses_;
  int done_ = 0, failed_ = 0, first_ = 0;
  std::string sentence_;
};

struct Completions {
  bool any_active = false;
  int complete = MPI_UNDEFINED; ///< index of the first complete request
};
Completions find_complete(int count, const MPI_Request* requests) {
  Completions found;
  for (int i = 0; i < count; ++i)
    if (Request* request = active(requests[i]); request != nullptr) {
      found.any_active = true;
      if (request->complete) {
        found.complete = i;
        break;
      }
    }
  return found;
}

/// Like find_complete(); if nothing is complete yet, makes progress and checks again.
Completions poll(int count, const MPI_Request* requests) {
  Completions found = find_complete(count, requests);
  if (found.any_active && found.complete == MPI_UNDEFINED) {
    p2p::poll(requests, count);
    found = find_complete(count, requests);
  }
  return found;
}

bool all_complete(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (Request* request = active(requests[i]); request != nullptr && !request->complete) return false;
  return true;
}

bool all_complete_twice(int count, const MPI_Request* requests) {
  if (all_complete(count, requests)) return true;
  p2p::poll(requests, count);
  return all_complete(count, requests);
}

Result finish_all(int count, MPI_Request* requests, MPI_Status* statuses) {
  Finisher finisher(statuses);
  for (int i = 0; i < count; ++i) {
    if (Request* request = active(requests[i]); request != nullptr)
      finisher.finish(requests[i], *request, i);
    else
      finisher.finish_empty(i);
  }
  return finisher.result();
}

/// Finishes all complete requests of an array in which at least one is active.
Result finish_some(int count, MPI_Request* requests, int* outcount, int* indices, MPI_Status* statuses) {
  Finisher finisher(statuses);
  *outcount = 0;
  for (int i = 0; i < count; ++i)
    if (Request* request = active(requests[i]); request != nullptr && request->complete) {
      finisher.finish(requests[i], *request, i);
      indices[(*outcount)++] = i;
    }
  return finisher.result();
}

Result finish_one(MPI_Request& handle, Request& request, MPI_Status* status) {
  return p2p::finish(handle, request, status, false);
}

} // namespace

Result Wait(MPI_Request& request, MPI_Status* status) {
  Request* found = active(request);
  if (found == nullptr) {
    p2p::write_empty_status(status);
    return {};
  }
  p2p::wait_complete(*found);
  return finish_one(request, *found, status);
}

Result Test(MPI_Request& request, int* flag, MPI_Status* status) {
  Request* found = active(request);
  if (found == nullptr) {
    *flag = 1;
    p2p::write_empty_status(status);
    return {};
  }
  if (!found->complete) p2p::poll(found);
  *flag = found->complete ? 1 : 0;
  return found->complete ? finish_one(request, *found, status) : Result();
}

Result Waitany(int count, MPI_Request* array_of_requests, int* index, MPI_Status* status) {
  Completions found = find_complete(count, array_of_requests);
  if (!found.any_active) {
    *index = MPI_UNDEFINED;
    p2p::write_empty_status(status);
    return {};
  }
  if (found.complete == MPI_UNDEFINED)
    p2p::wait_until([&] {
      found = find_complete(count, array_of_requests);
      return found.complete != MPI_UNDEFINED;
    });
  *index = found.complete;
  MPI_Request& handle = array_of_requests[found.complete];
  return finish_one(handle, *p2p::find_request(handle), status);
}

Result Testany(int count, MPI_Request* array_of_requests, int* index, int* flag, MPI_Status* status) {
  Completions found = poll(count, array_of_requests);
  *index = found.complete;
  *flag = !found.any_active || found.complete != MPI_UNDEFINED ? 1 : 0;
  if (!found.any_active) p2p::write_empty_status(status);
  if (found.complete == MPI_UNDEFINED) return {};
  MPI_Request& handle = array_of_requests[found.complete];
  return finish_one(handle, *p2p::find_request(handle), status);
}

Result Waitall(int count, MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  Finisher finisher(array_of_statuses);
  for (int i = 0; i < count; ++i) {
    Request* request = active(array_of_requests[i]);
    if (request == nullptr) {
      finisher.finish_empty(i);
      continue;
    }
    p2p::wait_complete(*request);
    finisher.finish(array_of_requests[i], *request, i);
  }
  return finisher.result();
}

Result Testall(int count, MPI_Request* array_of_requests, int* flag, MPI_Status* array_of_statuses) {
  bool all = all_complete_twice(count, array_of_requests);
  *flag = all ? 1 : 0;
  return all ? finish_all(count, array_of_requests, array_of_statuses) : Result();
}

Result Waitsome(int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                MPI_Status* array_of_statuses) {
  Completions found = find_complete(incount, array_of_requests);
  if (!found.any_active) {
    *outcount = MPI_UNDEFINED;
    return {};
  }
  if (found.complete == MPI_UNDEFINED)
    p2p::wait_until([&] { return find_complete(incount, array_of_requests).complete != MPI_UNDEFINED; });
  return finish_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

Result Testsome(int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                MPI_Status* array_of_statuses) {
  if (!poll(incount, array_of_requests).any_active) {
    *outcount = MPI_UNDEFINED;
    return {};
  }
  return finish_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

Result Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Request* found = active(request);
  if (found == nullptr) {
    *flag = 1;
    p2p::write_empty_status(status);
    return {};
  }
  if (!found->complete) p2p::poll(found);
  *flag = found->complete ? 1 : 0;
  return found->complete ? p2p::peek(*found, status) : Result();
}

Result Request_get_status_any(int count, const MPI_Request* array_of_requests, int* index, int* flag,
                              MPI_Status* status) {
  Completions found = poll(count, array_of_requests);
  *index = found.complete;
  *flag = !found.any_active || found.complete != MPI_UNDEFINED ? 1 : 0;
  if (!found.any_active) p2p::write_empty_status(status);
  if (found.complete == MPI_UNDEFINED) return {};
  return p2p::peek(*p2p::find_request(array_of_requests[found.complete]), status);
}

Result Request_get_status_all(int count, const MPI_Request* array_of_requests, int* flag,
                              MPI_Status* array_of_statuses) {
  bool all = all_complete_twice(count, array_of_requests);
  *flag = all ? 1 : 0;
  if (!all) return {};
  for (int i = 0; i < count; ++i) {
    MPI_Status* status = element(array_of_statuses, i);
    if (Request* request = active(array_of_requests[i]); request != nullptr)
      NEAR_TRY(p2p::peek(*request, status));
    else
      p2p::write_empty_status(status);
  }
  return {};
}

Result Request_get_status_some(int incount, const MPI_Request* array_of_requests, int* outcount,
                               int* array_of_indices, MPI_Status* array_of_statuses) {
  if (!poll(incount, array_of_requests).any_active) {
    *outcount = MPI_UNDEFINED;
    return {};
  }
  *outcount = 0;
  for (int i = 0; i < incount; ++i)
    if (Request* request = active(array_of_requests[i]); request != nullptr && request->complete) {
      NEAR_TRY(p2p::peek(*request, element(array_of_statuses, *outcount)));
      array_of_indices[(*outcount)++] = i;
    }
  return {};
}

} // namespace near::mpi::impl
