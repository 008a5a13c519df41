// Communicator data. Nothing here communicates: creation that needs messages lives in comm/.
#pragma once

#include "object/attribute.h"
#include "object/context.h"
#include "object/error_handler.h"
#include "object/group.h"
#include "object/info.h"

#include <memory>
#include <string>

namespace near::object {

enum class Channel : std::uint64_t {
  user = 0,       ///< point-to-point calls of the program
  collective = 1, ///< blocking and nonblocking collectives
  internal = 2,   ///< communicator creation and other bookkeeping
  partitioned = 3,
  tagged = 3, ///< communicator creation under a tag that the program gave
};

/// A process topology attached to a communicator. Source: MPI 5.0, chapter 8.
struct Topology {
  int kind = MPI_UNDEFINED; ///< MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH
  // Cartesian: `dims[i]` processes in dimension i, row-major ranks.
  std::vector<int> dims, periods, coords;
  // Graph: the standard's cumulative `index` and `edges`.
  std::vector<int> index, edges;
  // All kinds: the neighbours of this process in the order of the standard (section 8.6). A grid has two for each
  // dimension, at -1 and at +1; MPI_PROC_NULL represents a neighbour beyond an edge of the grid.
  std::vector<int> sources, destinations;
  // Distributed graph: the weights of the edges from and to these neighbours, if `weighted`.
  std::vector<int> source_weights, destination_weights;
  bool weighted = false;
};

/// Anything that a higher layer stores per communicator (collective plans, for example).
struct CommunicatorExtension {
  virtual ~CommunicatorExtension() = default;
};

struct Communicator : Object {
  std::uint64_t context = 0; ///< agreed by every member; low four bits zero
  Group* group = nullptr;    ///< local group; owned
  Group* remote = nullptr;   ///< intercommunicators: the other group; owned. Null on an intracommunicator
  int rank = 0;              ///< this process in `group`
  int size = 0;              ///< of `group`
  int peers = 0; ///< processes that p2p calls name by rank: `remote`'s size if it exists, otherwise `size`
  const ProcessId* process_ids = nullptr;  ///< of those processes, by rank
  mutable std::vector<Process*> processes; ///< the same, as known to the transport; by rank, filled in by it
  Communicator* local = nullptr; ///< intercommunicators: one on `group`, made when first needed; owned
  ErrorHandler* error_handler = nullptr; ///< owned reference
  AttributeSet attributes;
  std::string name;
  Info* info = nullptr; ///< hints in force; owned, may be null
  std::unique_ptr<Topology> topology;
  std::unique_ptr<CommunicatorExtension> extension;
  std::uint32_t collective_sequence = 0; ///< tag of the next collective; advances alike on every member
  bool is_inter() const { return remote != nullptr; }
};

/// Adds an owner. Every request is an owner while it exists; requests are made and freed under the engine
/// lock, so this takes no locked instruction.
inline Communicator* keep(Communicator* communicator) {
  communicator->references.bump_relaxed(1);
  return communicator;
}

/// In the header, so that entry points find a communicator without a function call.
struct Communicators {
  Communicator *world = nullptr, *self = nullptr;
  Pool<Communicator, Kind::communicator> pool;
};
extern constinit Immortal<Communicators> communicator_storage;
inline Pool<Communicator, Kind::communicator>& communicators() { return communicator_storage.value.pool; }
inline Communicator* world() { return communicator_storage.value.world; }
inline Communicator* self() { return communicator_storage.value.self; }
/// Returns the live communicator with this handle, predefined or not; nullptr for MPI_COMM_NULL and any other value.
[[gnu::always_inline]] inline Communicator* find_communicator(MPI_Comm handle) {
  if (handle == MPI_COMM_WORLD) [[likely]]
    return world();
  if (handle == MPI_COMM_SELF) return self();
  return communicators().find(reinterpret_cast<std::uintptr_t>(handle));
}
/// Builds MPI_COMM_WORLD and MPI_COMM_SELF. Takes over the reference to `world_group`. Call
/// set_own_process() first.
Result make_predefined_communicators(Group* world_group);
/// For finalisation: releases the names and error handlers of the predefined communicators. Their attributes
/// have been deleted before.
void drop_predefined_communicators();

/// Makes a communicator on `group` with this context, which inherits only the error handler of `parent`.
/// Takes over the reference to `group`, even on failure; returns nullptr if memory or handles are exhausted.
/// Such groups are never given to the program (MPI_Comm_group makes a copy), so a group that is freed twice
/// cannot be one that a communicator needs.
Communicator* make_communicator(Communicator& parent, Group* group, std::uint64_t context);
/// make_communicator() for an intercommunicator, with references to both groups.
Communicator* make_intercommunicator(Communicator& parent, Group* local, Group* remote,
                                     std::uint64_t context);
/// Whether the local group of an intercommunicator is the one that decides when the two must agree. Exactly
/// one of them is.
bool decides(const Communicator& inter);
/// The intracommunicator that an intercommunicator keeps on its local group. It is made, without
/// communication, when first needed. Returns nullptr if there is no memory.
Communicator* local_communicator(Communicator& inter);
/// Destroys a communicator that has no owner left. Has no effect on predefined ones.
[[gnu::cold]] void let_go(Communicator* communicator);
/// Drops one reference; the last one destroys the communicator. The caller has deleted its attributes.
inline void release(Communicator* communicator) {
  communicator->references.bump_relaxed(-1);
  if (communicator->references.load_relaxed() == 0) [[unlikely]]
    let_go(communicator);
}

/// Describes the communicator in messages: "MPI_COMM_WORLD", the user's name, or "communicator 0x44000001".
std::string describe(const Communicator& communicator);

inline MPI_Comm public_handle(const Communicator& communicator) {
  return reinterpret_cast<MPI_Comm>(static_cast<std::uintptr_t>(communicator.handle));
}

} // namespace near::object
