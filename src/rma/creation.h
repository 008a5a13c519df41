// The steps that the creation of every window takes, whatever its memory. See create.cpp.
#pragma once

#include "rma/state.h"

namespace near::rma {

/// The offset of `address` in the segment of this process's job; 0 if it lies elsewhere.
Offset shared_offset(const void* address);

Result check_unit(MPI_Aint size, MPI_Aint unit);
/// Fails with MPI_ERR_COMM if the communicator is an intercommunicator.
Result check_intra(const Communicator& communicator);
/// Whether all processes of the communicator are on this machine.
bool is_on_one_machine(const Communicator& communicator);

/// Makes a window with a communicator of its own and an empty State. Collective.
Result make(Communicator& communicator, int flavor, Window*& made);
/// Allocates this process's page with the window's locks, followed by memory for `rings` rings (call_ring.h). Allocating the rings
/// only when they are needed would take much longer.
Result make_shared_part(Window& window, std::size_t rings = 0);
/// Tells every process about this one's part, or that it failed. If any process failed, all undo what they
/// did, the window is gone, and each gets an error. `result` is this process's own result so far. Collective.
Result agree(Window& window, Member mine, Result result);
/// Returns the pages that this process has placed in a row of parts. Collective for shared windows: the
/// addresses may become invalid once all have done so.
Result leave_row(Window& window);
/// The last step for every window: stores its hints and the values of its attributes, and begins to serve other machines.
Result finish(Window& window, const Info* info, void* base);

} // namespace near::rma
