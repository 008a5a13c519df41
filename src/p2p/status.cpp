// The status object: the fields that the standard names, and our own in MPI_internal.
//
//   MPI_internal[0..1]  packed bytes, one 64-bit integer (unaligned)
//   MPI_internal[2]     1 if cancelled
//
// Source: MPI 5.0, sections 3.2.5 and 3.7.3, and the ABI's layout of MPI_Status.
#include "p2p/request.h"

#include <cstring>

namespace near::p2p {

static_assert(sizeof(MPI_Status) == 32, "the standard ABI's status");

MPI_Count status_bytes(const MPI_Status& status) {
  std::int64_t bytes = 0;
  std::memcpy(&bytes, &status.MPI_internal[0], sizeof bytes);
  return bytes;
}

bool status_cancelled(const MPI_Status& status) { return status.MPI_internal[2] != 0; }

void write_status(MPI_Status* status, const Completion& completion, bool with_error) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = completion.source;
  status->MPI_TAG = completion.tag;
  if (with_error) status->MPI_ERROR = completion.error;
  set_status_bytes(*status, completion.bytes);
  set_status_cancelled(*status, completion.cancelled);
}

void write_empty_status(MPI_Status* status) { write_status(status, Completion{}, true); }

} // namespace near::p2p
