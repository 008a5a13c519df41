// Communicators. Source: MPI 5.0, sections 7.4 to 7.6 and 7.8.
#include "comm/comm.h"
#include "mpi/arguments.h"
#include "mpi/impl.h"
#include "mpi/name.h"

namespace near::mpi::impl {

namespace {

/// Makes a copy that the program may free. The communicator keeps its own group.
Result copy_group(const Group& from, Group*& made) {
  made = object::make_group(from.members);
  if (made == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another group");
  return {};
}

Result check_inter(const Communicator& comm) {
  if (comm.is_inter()) return {};
  return base::fail(MPI_ERR_COMM, "{} is not an intercommunicator", object::describe(comm));
}

Result check_part_of(const Group& group, const Communicator& comm) {
  for (int rank = 0; rank < group.size(); ++rank)
    if (object::translate_rank(group, rank, *comm.group) == MPI_UNDEFINED)
      return base::fail(MPI_ERR_GROUP, "rank {} of the group is not a member of {}", rank,
                        object::describe(comm));
  return {};
}

Result check_own_group(const Group& group, const char* name) {
  if (group.rank != MPI_UNDEFINED) return {};
  return base::fail(MPI_ERR_GROUP, "this process is not in {}", name);
}

Result check_leader(int leader, const Group& group, const char* name) {
  if (leader >= 0 && leader < group.size()) return {};
  return base::fail(MPI_ERR_RANK, "{} {} is outside the group of size {}", name, leader, group.size());
}

Result check_string_tag(const char* tag) {
  if (strnlen(tag, MPI_MAX_STRINGTAG_LEN) < MPI_MAX_STRINGTAG_LEN) return {};
  return base::fail(MPI_ERR_ARG, "stringtag has more than {} characters", MPI_MAX_STRINGTAG_LEN - 1);
}

} // namespace

Result Comm_size(Communicator& comm, int* size) {
  *size = comm.size;
  return {};
}

Result Comm_rank(Communicator& comm, int* rank) {
  *rank = comm.rank;
  return {};
}

Result Comm_group(Communicator& comm, Group*& group) { return copy_group(*comm.group, group); }

Result Comm_test_inter(Communicator& comm, int* flag) {
  *flag = comm.is_inter() ? 1 : 0;
  return {};
}

Result Comm_remote_size(Communicator& comm, int* size) {
  NEAR_TRY(check_inter(comm));
  *size = comm.remote->size();
  return {};
}

Result Comm_remote_group(Communicator& comm, Group*& group) {
  NEAR_TRY(check_inter(comm));
  return copy_group(*comm.remote, group);
}

Result Comm_compare(Communicator& comm1, Communicator& comm2, int* result) {
  *result = comm::compare(comm1, comm2);
  return {};
}

Result Comm_dup(Communicator& comm, Communicator*& newcomm) {
  return comm::duplicate(comm, comm.info, newcomm);
}

Result Comm_dup_with_info(Communicator& comm, Info* info, Communicator*& newcomm) {
  return comm::duplicate(comm, info, newcomm);
}

Result Comm_idup(Communicator& comm, Communicator*& newcomm, p2p::Request*& request) {
  return comm::start_duplicate(comm, comm.info, newcomm, request);
}

Result Comm_idup_with_info(Communicator& comm, Info* info, Communicator*& newcomm, p2p::Request*& request) {
  return comm::start_duplicate(comm, info, newcomm, request);
}

Result Comm_create(Communicator& comm, Group& group, Communicator*& newcomm) {
  NEAR_TRY(check_part_of(group, comm));
  return comm::create(comm, group, newcomm);
}

Result Comm_create_group(Communicator& comm, Group& group, int tag, Communicator*& newcomm) {
  NEAR_TRY(check_is_intra(comm));
  NEAR_TRY(check_part_of(group, comm));
  return comm::create_from_group(comm, group, tag, newcomm);
}

Result Comm_create_from_group(Group& group, const char* stringtag, Info* info, ErrorHandler& errhandler,
                              Communicator*& newcomm) {
  if (group.size() == 0) return {};
  NEAR_TRY(check_own_group(group, "group"));
  NEAR_TRY(check_string_tag(stringtag));
  return comm::create_by_string(group, stringtag, info, errhandler, newcomm);
}

Result Comm_split(Communicator& comm, int color, int key, Communicator*& newcomm) {
  return comm::split(comm, color, key, newcomm);
}

Result Comm_split_type(Communicator& comm, int split_type, int key, Info* info, Communicator*& newcomm) {
  return comm::split_by_type(comm, split_type, key, info, newcomm);
}

Result Comm_free(Communicator& comm) { return comm::free_communicator(comm); }

Result Comm_disconnect(Communicator& comm) {
  // The program has completed all communication on it, and messages already sent need no communicator.
  return comm::free_communicator(comm);
}

Result Comm_get_name(Communicator* comm, char* comm_name, int* resultlen) {
  give_name(comm != nullptr ? comm->name : "MPI_COMM_NULL", comm_name, resultlen);
  return {};
}

Result Comm_set_name(Communicator& comm, const char* comm_name) {
  keep_name(comm.name, comm_name);
  return {};
}

Result Comm_get_info(Communicator& comm, Info*& info_used) {
  info_used = comm::hints_in_force(comm);
  if (info_used == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another info");
  return {};
}

Result Comm_set_info(Communicator& comm, Info* info) {
  return info != nullptr ? comm::apply_hints(comm, *info) : Result();
}

Result Intercomm_create(Communicator& local_comm, int local_leader, Communicator* peer_comm,
                        int remote_leader, int tag, Communicator*& newintercomm) {
  NEAR_TRY(check_is_intra(local_comm));
  if (local_comm.rank == local_leader) {
    if (peer_comm == nullptr)
      return base::fail(MPI_ERR_COMM, "peer_comm is not a communicator at rank {}, the local leader",
                        local_leader);
    if (remote_leader < 0 || remote_leader >= peer_comm->peers)
      return base::fail(MPI_ERR_RANK, "remote_leader {} is outside {} of size {}", remote_leader,
                        object::describe(*peer_comm), peer_comm->peers);
  }
  return comm::create_intercommunicator(local_comm, local_leader, peer_comm, remote_leader, tag,
                                        newintercomm);
}

Result Intercomm_create_from_groups(Group& local_group, int local_leader, Group* remote_group,
                                    int remote_leader, const char* stringtag, Info* info,
                                    ErrorHandler& errhandler, Communicator*& newintercomm) {
  NEAR_TRY(check_own_group(local_group, "local_group"));
  NEAR_TRY(check_string_tag(stringtag));
  NEAR_TRY(check_leader(local_leader, local_group, "local_leader"));
  if (local_group.rank == local_leader) {
    if (remote_group == nullptr)
      return base::fail(MPI_ERR_GROUP, "remote_group is not a group at rank {}, the local leader",
                        local_leader);
    NEAR_TRY(check_leader(remote_leader, *remote_group, "remote_leader"));
    if (remote_group->rank != MPI_UNDEFINED)
      return base::fail(MPI_ERR_GROUP, "this process is in remote_group too");
  }
  return comm::create_intercommunicator_by_string(local_group, local_leader, remote_group, remote_leader,
                                                  stringtag, info, errhandler, newintercomm);
}

Result Intercomm_merge(Communicator& intercomm, int high, Communicator*& newintracomm) {
  NEAR_TRY(check_inter(intercomm));
  return comm::merge(intercomm, high != 0, newintracomm);
}

} // namespace near::mpi::impl
