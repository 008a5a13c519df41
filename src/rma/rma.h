// One-sided communication, as the bindings call it. Source: MPI 5.0, chapter 12.
//
// On one machine the origin needs no help: it loads and stores what lies in the job's segment, and reaches
// another process's private memory through the kernel (CMA). Such an operation is complete at the origin and
// at the target when its call returns, whatever the target is doing. Short operations on private memory
// (handed_calls.h), and operations on targets behind a RemoteAccess, may still be under way then: flushes,
// the ends of epochs and requests wait for them (under_way.h). See doc/one_sided.md.
//
// The caller has checked handles, counts and datatypes; ranks, displacements, epochs and operations are
// checked here.
#pragma once

#include "comm/comm.h"
#include "datatype/operation.h"
#include "memory/allocate.h"
#include "object/window.h"
#include "rma/under_way.h"

namespace near::rma {

using datatype::Buffer;
using datatype::Datatype;
using datatype::Operation;
using object::Communicator;
using object::Group;
using object::Info;
using object::Result;
using object::Window;

// Creation is collective over `communicator`. If one process has no memory for its part, or cannot reach another's
// part, creation fails at all of them.

/// Makes a window of existing memory of the program. Fails with MPI_ERR_UNSUPPORTED_OPERATION if some of it is private
/// and the kernel does not let the processes copy from each other.
Result create(Communicator& communicator, void* base, MPI_Aint size, MPI_Aint unit, const Info* info,
              Window*& made);
/// Makes a window of memory in the segment, whole pages for each process. `base` becomes this process's part,
/// zeroed; nullptr if the part is empty.
Result allocate(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                const memory::AllocationHints& hints, void*& base, Window*& made);
/// Makes a window like allocate(), but with its parts one after another; each page is placed by the process to which
/// its first byte belongs. With the hint alloc_shared_noncontig each process has whole pages of its own. Fails with
/// MPI_ERR_RMA_SHARED unless all processes share memory.
Result allocate_shared(Communicator& communicator, MPI_Aint size, MPI_Aint unit, const Info* info,
                       const memory::AllocationHints& hints, void*& base, Window*& made);
/// Makes a window without memory, to which processes attach theirs. Displacements are addresses.
Result create_dynamic(Communicator& communicator, const Info* info, Window*& made);

/// Attaches memory to a dynamic window. Fails with MPI_ERR_RMA_ATTACH if it overlaps attached memory, and with
/// MPI_ERR_RMA_FLAVOR if the window is not dynamic.
Result attach(Window& window, void* base, MPI_Aint size);
Result detach(Window& window, const void* base);

/// Frees a window. Collective. Fails with MPI_ERR_RMA_SYNC inside an epoch. Runs the delete callbacks first;
/// if one fails, the window stays.
Result free_window(Window& window);

/// A process's part of a window, in this process's address space. `base` is nullptr if this process cannot
/// load and store it.
struct Part {
  void* base = nullptr;
  MPI_Aint size = 0, unit = 1;
};
/// Finds the part of `rank`; for MPI_PROC_NULL, the first part that is not empty. Fails with
/// MPI_ERR_RMA_FLAVOR for a dynamic window.
Result find_part(const Window& window, int rank, Part& part);

/// Stores the hints that are known and have a valid value, and ignores the others.
Result apply_hints(Window& window, const Info& info);
/// Makes an info with every hint that NearMPI knows and the value in force. Returns nullptr if there is no memory.
Info* hints_in_force(const Window& window);

// Synchronization. A call that does not fit the window's epochs fails with MPI_ERR_RMA_SYNC, an unknown
// bit of `assertion` with MPI_ERR_ASSERT.

Result fence(int assertion, Window& window);
Result start(const Group& targets, int assertion, Window& window);
Result complete(Window& window);
Result post(const Group& origins, int assertion, Window& window);
Result wait(Window& window);
Result test(Window& window, bool& over);
/// Begins an access epoch at one target. Fails with MPI_ERR_LOCKTYPE unless `type` is MPI_LOCK_SHARED or
/// MPI_LOCK_EXCLUSIVE.
Result lock(int type, int rank, int assertion, Window& window);
Result unlock(int rank, Window& window);
Result lock_all(int assertion, Window& window);
Result unlock_all(Window& window);
/// Waits until the operations on `rank` are complete at the target, or at least at the origin.
Result flush(int rank, Where where, Window& window);
Result flush_all(Where where, Window& window);
Result synchronize(Window& window);

/// Makes progress in a call that a program may use to wait: such a program reads a word again and again until
/// another rank has changed it, and flushes or unlocks each time. So an operation that repeats earlier reads
/// and finds the same values (repeated_reads.h) counts as an empty poll (p2p::poll). So does a call that no
/// operation precedes, since the program may have read the word itself. A program that reads different
/// locations or values, or writes, is not waiting.
void poll(Window& window);

// Access. With the rank MPI_PROC_NULL nothing happens. Data outside the target's part is an
// MPI_ERR_RMA_RANGE.

/// The target's side of an operation: where the data lie, how many elements there are, and their datatype.
struct Target {
  int rank;
  MPI_Aint displacement; ///< in the target's units
  MPI_Count count;
  Datatype* type;
};
/// Copies `origin` to the target's memory. If the operation is still under way on return, put(), get() and accumulate()
/// set `pending` to it unless that is null; its buffers are in use until it is complete at the origin.
Result put(const Buffer& origin, const Target& target, Window& window, Pending* pending = nullptr);
/// Copies the target's memory to `origin`; `pending` is as for put().
Result get(const Buffer& origin, const Target& target, Window& window, Pending* pending = nullptr);
/// target = origin op target, element by element. Each element is updated atomically with respect to all other calls of
/// accumulate() and compare_and_swap(). `before` (may be null) receives the old values. With MPI_NO_OP `origin` is not read.
Result accumulate(const Buffer& origin, const Buffer* before, const Target& target,
                  const Operation& operation, Window& window, Pending* pending = nullptr);
/// Stores `origin` in the target's element if that equals `compare`; `before` receives the old value. The
/// type must consist of integers, logicals or bytes.
Result compare_and_swap(const void* origin, const void* compare, void* before, const Target& target,
                        Window& window);

} // namespace near::rma
