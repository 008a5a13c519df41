// Selects the algorithm of a collective on an intercommunicator.
#include "coll/inter/inter.h"

namespace near::coll {

Result perform_between_groups(const Call& call, Communicator& communicator, Schedule* schedule) {
  Communicator* own = object::local_communicator(communicator);
  if (own == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory for the communicator inside one group of {}",
                      describe(communicator));
  Groups groups{CollectiveGroup(communicator, schedule), CollectiveGroup(*own, schedule)};
  switch (call.collective) {
  case Collective::barrier: return inter_barrier(groups, call);
  case Collective::broadcast: return inter_broadcast(groups, call);
  case Collective::reduce: return inter_reduce(groups, call);
  case Collective::allreduce: return inter_allreduce(groups, call);
  case Collective::gather: return inter_gather(groups, call);
  case Collective::gatherv: return inter_gatherv(groups, call);
  case Collective::scatter: return inter_scatter(groups, call);
  case Collective::scatterv: return inter_scatterv(groups, call);
  case Collective::allgather: return inter_allgather(groups, call);
  case Collective::allgatherv: return inter_allgatherv(groups, call);
  case Collective::alltoall: return inter_alltoall(groups, call);
  case Collective::alltoallv:
  case Collective::alltoallw: return inter_alltoallv(groups, call);
  case Collective::reduce_scatter_block:
  case Collective::reduce_scatter: return inter_reduce_scatter(groups, call);
  case Collective::scan:
  case Collective::exscan:
  case Collective::neighbor_allgather:
  case Collective::neighbor_allgatherv:
  case Collective::neighbor_alltoall:
  case Collective::neighbor_alltoallv:
  case Collective::neighbor_alltoallw:
  case Collective::count: break;
  }
  return base::fail(MPI_ERR_COMM, "this collective is defined on one group only, and {} has two",
                    describe(communicator));
}

} // namespace near::coll
