#include "mpi/collective.h"

namespace near::mpi::impl {

Result same_buffer(const char* send_name, const char* receive_name) {
  return base::fail(MPI_ERR_BUFFER,
                    "{} and {} are the same memory; pass MPI_IN_PLACE to use one buffer for both", send_name,
                    receive_name);
}

Result check_aliasing(const Blocks& send, const Blocks& receive, int peers) {
  if (send.address == MPI_IN_PLACE) return {};
  for (int i = 0; i < peers; ++i) NEAR_TRY(check_aliasing(send.at(i), receive.at(i)));
  return {};
}

Result check_aliasing(const Buffer& one, const Blocks& blocks, int peers) {
  if (one.address == MPI_IN_PLACE || blocks.address == MPI_IN_PLACE) return {};
  for (int i = 0; i < peers; ++i) NEAR_TRY(check_aliasing(one, blocks.at(i)));
  return {};
}

Result check_intra(const Communicator& communicator) {
  if (!communicator.is_inter()) [[likely]]
    return {};
  return base::fail(MPI_ERR_COMM,
                    "{} is an intercommunicator, and this collective is defined on one group only",
                    describe(communicator));
}

std::vector<Datatype*> resolve(const MPI_Datatype* handles, int count) {
  std::vector<Datatype*> types(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) types[static_cast<std::size_t>(i)] = datatype::find_datatype(handles[i]);
  return types;
}

} // namespace near::mpi::impl
