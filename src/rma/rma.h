// One-sided communication, as the bindings call it. Source: MPI 5.0, chapter 12.
//
// On one machine the origin does everything: what lies in the job's segment it loads and stores; another
// process's private memory it reaches through the kernel (CMA). So every operation is complete, here and at the
// target, when its call returns, whatever the target does meanwhile. Operations on targets behind a
// RemoteAccess may still be under way then: flushes, the ends of epochs and requests wait for them
// (under_way.h). doc/one_sided.md has the whole.
//
// Handles, counts and datatypes are valid already; ranks, displacements, epochs and operations are checked
// here.
#pragma once

#include "comm/comm.h"
#include "datatype/operation.h"
#include "object/window.h"
#include "rma/under_way.h"
#include "transport/memory.h"

namespace near::rma {

using datatype::Buffer;
using datatype::Datatype;
using datatype::Operation;
using object::Communicator;
using object::Group;
using object::Info;
using object::Result;
using object::Window;

// Creation: collective over `communicator`. Without memory, or out of reach, at one process it fails at all
// of them.

/// Of memory that the program has; any of it, at each process as it likes. MPI_ERR_UNSUPPORTED_OPERATION when
/// some of it is private and the kernel lets no process copy from another.
Result create(Communicator& communicator, void* base, MPI_Aint size, MPI_Aint unit, const Info* info,
              Window*& made);
/// Of memory in the segment, whole pages at each process. `base`: this process's part, zeroed; nullptr if
/// empty.
Result allocate(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                const transport::AllocationHints& hints, void*& base, Window*& made);
/// The same for processes that all share memory, else MPI_ERR_RMA_SHARED: one part behind the other, each
/// page placed by the process whose byte is its first; whole pages of its own for each with the hint
/// alloc_shared_noncontig.
Result allocate_shared(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                       const transport::AllocationHints& hints, void*& base, Window*& made);
/// Without memory; displacements are addresses.
Result create_dynamic(Communicator& communicator, const Info* info, Window*& made);

/// MPI_ERR_RMA_ATTACH when it overlaps what is attached already, MPI_ERR_RMA_FLAVOR when the window is not
/// dynamic.
Result attach(Window& window, void* base, MPI_Aint size);
Result detach(Window& window, const void* base);

/// Collective; MPI_ERR_RMA_SYNC inside an epoch. Runs the delete callbacks first; a failing one leaves all as
/// it is.
Result free_window(Window& window);

/// A part of the window in this process's address space; nullptr when it cannot be loaded and stored there.
struct Part {
  void* base = nullptr;
  MPI_Aint size = 0, unit = 1;
};
/// MPI_PROC_NULL: the first part that is not empty. MPI_ERR_RMA_FLAVOR for a dynamic window.
Result find_part(const Window& window, int rank, Part& part);

/// Keeps those hints that mean something and have a valid value; the others are ignored.
Result apply_hints(Window& window, const Info& info);
/// A new info with all hints that NearMPI knows and the values in force. nullptr: no memory.
Info* hints_in_force(const Window& window);

// Synchronization. A call that does not fit the window's epochs is MPI_ERR_RMA_SYNC, an unknown bit of
// `assertion` MPI_ERR_ASSERT.

Result fence(int assertion, Window& window);
Result start(const Group& targets, int assertion, Window& window);
Result complete(Window& window);
Result post(const Group& origins, int assertion, Window& window);
Result wait(Window& window);
Result test(Window& window, bool& over);
/// MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE, else MPI_ERR_LOCKTYPE.
Result lock(int type, int rank, int assertion, Window& window);
Result unlock(int rank, Window& window);
Result lock_all(int assertion, Window& window);
Result unlock_all(Window& window);
/// Waits until the operations on `rank` are complete at the target, or at least at the origin.
Result flush(int rank, Where where, Window& window);
Result flush_all(Where where, Window& window);
Result synchronize(Window& window);

/// Runs the engine for a call with which a program may wait: it reads a word again and again until another
/// rank has changed it, and flushes or unlocks each time. So an operation that read the same place as the
/// last time counts as an empty poll (p2p::poll), and so does a call without any operation before it, since
/// the program may have looked by itself. A program that goes from place to place, or writes, does not wait.
void poll(Window& window);

// Access. `rank` may be MPI_PROC_NULL: nothing happens. What does not lie in the target's part is
// MPI_ERR_RMA_RANGE.

/// Where at the target, and as what.
struct Target {
  int rank;
  MPI_Aint displacement; ///< in the target's units
  MPI_Count count;
  Datatype* type;
};
/// Each of these three sets `pending`, unless that is null, to the operation if it is still under way when the call
/// returns; its buffers are in use until it is complete at the origin.
Result put(const Buffer& origin, const Target& target, Window& window, Pending* pending = nullptr);
Result get(const Buffer& origin, const Target& target, Window& window, Pending* pending = nullptr);
/// target = origin op target, element by element, each atomic with respect to all others of these three
/// calls. `before` (may be null) gets what was there. With MPI_NO_OP `origin` is not looked at.
Result accumulate(const Buffer& origin, const Buffer* before, const Target& target,
                  const Operation& operation, Window& window, Pending* pending = nullptr);
/// One element of a type of integers, logicals or bytes.
Result compare_and_swap(const void* origin, const void* compare, void* before, const Target& target,
                        Window& window);

} // namespace near::rma
