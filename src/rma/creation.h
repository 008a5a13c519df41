// The steps that the creation of every window takes, whatever memory it is of. See create.cpp.
#pragma once

#include "rma/state.h"

namespace near::rma {

/// The offset of `address` in the segment of this process's job; 0 if it lies elsewhere.
Offset shared_offset(const void* address);

Result check_unit(MPI_Aint size, MPI_Aint unit);
/// Fails with MPI_ERR_COMM if it is an intercommunicator.
Result check_intra(const Communicator& communicator);
/// Whether all its processes are on this machine.
bool is_on_one_machine(const Communicator& communicator);

/// A window on a communicator of its own, with an empty State. Collective.
Result make(Communicator& communicator, int flavor, Window*& made);
/// Makes the page of this process that holds the window's locks, and behind it the memory of so many rings (call_ring.h), which would
/// take much longer to allocate when they are needed.
Result make_shared_part(Window& window, std::size_t rings = 0);
/// Tells every process of this one's part, or that it failed. If any failed, all undo what they did, the
/// window is gone, and each gets an error. `result` is this process's own so far. Collective.
Result agree(Window& window, Member mine, Result result);
/// Gives back the pages that this process has placed in a row of parts. Collective for shared windows: the
/// addresses may end when all have done so.
Result leave_row(Window& window);
/// The last step of every window: keeps its hints, and what its attributes tell; begins to serve other machines.
Result finish(Window& window, const Info* info, void* base);

} // namespace near::rma
