// Partitioned communication. Source: MPI 5.0, chapter 4.
#include "mpi/buffer_argument.h"
#include "mpi/impl.h"

namespace near::mpi::impl {

using p2p::Request;

Result Psend_init(const void* buf, int partitions, MPI_Count count, Datatype& datatype, int dest, int tag,
                  Communicator& comm, Info*, Request*& request) {
  return p2p::make_partitioned_send(buffer_of(buf, count, datatype), partitions, dest, tag, comm, request);
}

Result Precv_init(void* buf, int partitions, MPI_Count count, Datatype& datatype, int source, int tag,
                  Communicator& comm, Info*, Request*& request) {
  if (source == MPI_ANY_SOURCE)
    return base::fail(MPI_ERR_RANK, "source is MPI_ANY_SOURCE, which a partitioned receive cannot take");
  if (tag == MPI_ANY_TAG)
    return base::fail(MPI_ERR_TAG, "tag is MPI_ANY_TAG, which a partitioned receive cannot take");
  return p2p::make_partitioned_receive(buffer_of(buf, count, datatype), partitions, source, tag, comm,
                                       request);
}

Result Pready(int partition, MPI_Request request) {
  return p2p::mark_ready(*p2p::find_request(request), partition);
}

Result Pready_range(int partition_low, int partition_high, MPI_Request request) {
  Request& found = *p2p::find_request(request);
  for (int i = partition_low; i <= partition_high; ++i) NEAR_TRY(p2p::mark_ready(found, i));
  return {};
}

Result Pready_list(int length, const int* array_of_partitions, MPI_Request request) {
  Request& found = *p2p::find_request(request);
  for (int i = 0; i < length; ++i) NEAR_TRY(p2p::mark_ready(found, array_of_partitions[i]));
  return {};
}

Result Parrived(MPI_Request request, int partition, int* flag) {
  Request* found = p2p::find_request(request);
  bool arrived = true;
  if (found != nullptr) NEAR_TRY(p2p::has_arrived(*found, partition, arrived));
  *flag = arrived ? 1 : 0;
  return {};
}

} // namespace near::mpi::impl
