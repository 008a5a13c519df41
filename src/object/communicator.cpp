// Communicator data: the predefined ones, construction and destruction.
#include "object/communicator.h"

#include "segment/segment.h"

namespace near::object {

constinit Immortal<Communicators> communicator_storage;

namespace {

// MPI_COMM_SELF has the same context in every process: no other process can send on it.
constexpr std::uint64_t world_context = segment::world_context, self_context = 2u << 4;

std::uint64_t bits_of(MPI_Comm handle) { return reinterpret_cast<std::uintptr_t>(handle); }

void adopt_groups(Communicator& communicator, Group* local, Group* remote) {
  communicator.group = local;
  communicator.remote = remote;
  communicator.rank = local->rank;
  communicator.size = local->size();
  const Group& named = remote != nullptr ? *remote : *local;
  communicator.peers = named.size();
  communicator.process_ids = named.members.data();
  communicator.processes.assign(named.members.size(), unknown_process);
}

Communicator* make_predefined(MPI_Comm handle, const char* name, Group* group, std::uint64_t context) {
  auto* made = new Communicator;
  made->kind = Kind::communicator;
  made->predefined = true;
  made->handle = static_cast<HandleBits>(bits_of(handle));
  made->name = name;
  made->context = context;
  made->error_handler = errors_are_fatal();
  adopt_groups(*made, group, nullptr);
  return made;
}

void drop_parts(Communicator& communicator) {
  if (communicator.local != nullptr) release(communicator.local);
  release(communicator.group);
  if (communicator.remote != nullptr) release(communicator.remote);
  if (communicator.error_handler != nullptr) release(communicator.error_handler);
  if (communicator.info != nullptr) release(communicator.info);
}

Communicator* make(Communicator& parent, Group* local, Group* remote, std::uint64_t context) {
  Communicator* made = communicators().make();
  if (made == nullptr) {
    release(local);
    if (remote != nullptr) release(remote);
    return nullptr;
  }
  made->context = context;
  made->error_handler = keep(parent.error_handler);
  adopt_groups(*made, local, remote);
  return made;
}

} // namespace

Result make_predefined_communicators(Group* world_group) {
  Group* alone = make_group({own_process()});
  if (alone == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for the group of MPI_COMM_SELF");
  auto& all = communicator_storage.value;
  all.world = make_predefined(MPI_COMM_WORLD, "MPI_COMM_WORLD", world_group, world_context);
  all.self = make_predefined(MPI_COMM_SELF, "MPI_COMM_SELF", alone, self_context);
  return {};
}

void drop_predefined_communicators() {
  auto& all = communicator_storage.value;
  for (Communicator** communicator : {&all.world, &all.self}) {
    if (*communicator == nullptr) continue;
    drop_parts(**communicator);
    delete *communicator;
    *communicator = nullptr;
  }
}

Communicator* make_communicator(Communicator& parent, Group* group, std::uint64_t context) {
  return make(parent, group, nullptr, context);
}

Communicator* make_intercommunicator(Communicator& parent, Group* local, Group* remote,
                                     std::uint64_t context) {
  return make(parent, local, remote, context);
}

void let_go(Communicator* communicator) {
  // The predefined ones end with drop_predefined_communicators(), even if requests still refer to them.
  if (communicator->predefined) return;
  drop_parts(*communicator);
  communicators().destroy(communicator);
}

std::string describe(const Communicator& communicator) {
  if (!communicator.name.empty()) return communicator.name;
  return base::format("communicator {:#x}", communicator.handle & ~retired_bit);
}

bool decides(const Communicator& inter) {
  auto number = [](ProcessId process) { return std::uint64_t{process.job} << 32 | process.rank; };
  return number(inter.group->members[0]) < number(inter.remote->members[0]);
}

Communicator* local_communicator(Communicator& inter) {
  if (inter.local == nullptr) {
    // Both sides' contexts follow from the intercommunicator's, so no message is needed.
    std::uint64_t context = inter.context + (decides(inter) ? 4 : 8);
    inter.local = make_communicator(inter, keep(inter.group), context);
  }
  return inter.local;
}

} // namespace near::object
