// Status fields. Source: MPI 5.0, sections 3.2.5, 3.8.4 and 13.3.
#include "mpi/impl.h"

namespace near::mpi::impl {

Result Test_cancelled(const MPI_Status* status, int* flag) {
  *flag = p2p::status_cancelled(*status) ? 1 : 0;
  return {};
}

Result Status_set_cancelled(MPI_Status* status, int flag) {
  p2p::set_status_cancelled(*status, flag != 0);
  return {};
}

Result Status_get_source(const MPI_Status* status, int* source) {
  *source = status->MPI_SOURCE;
  return {};
}

Result Status_get_tag(const MPI_Status* status, int* tag) {
  *tag = status->MPI_TAG;
  return {};
}

Result Status_get_error(const MPI_Status* status, int* err) {
  *err = status->MPI_ERROR;
  return {};
}

Result Status_set_source(MPI_Status* status, int source) {
  status->MPI_SOURCE = source;
  return {};
}

Result Status_set_tag(MPI_Status* status, int tag) {
  status->MPI_TAG = tag;
  return {};
}

Result Status_set_error(MPI_Status* status, int err) {
  status->MPI_ERROR = err;
  return {};
}

Result Status_set_elements(MPI_Status* status, Datatype& datatype, MPI_Count count) {
  MPI_Count bytes = datatype::bytes_of_elements(datatype, count);
  if (bytes < 0)
    return base::fail(MPI_ERR_ARG, "count is {}, but {} cannot hold this number of basic elements", count,
                      datatype::describe(datatype));
  p2p::set_status_bytes(*status, bytes);
  return {};
}

Result Status_set_elements_x(MPI_Status* status, Datatype& datatype, MPI_Count count) {
  return Status_set_elements(status, datatype, count);
}

} // namespace near::mpi::impl
