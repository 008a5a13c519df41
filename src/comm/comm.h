// Communicator creation: everything that needs agreement. Source: MPI 5.0, sections 7.4 and 8.5.
// A context is made by one member (rank 0 of the new group) and told to the others along with what they
// exchange anyway, so no allreduce is needed and none is ever reused.
#pragma once

#include "coll/coll.h"

namespace near::comm {

using object::Communicator;
using object::Group;
using object::Info;
using object::Result;

/// Collective over `parent`. Attributes are copied by their callbacks; topology and info hints too.
Result duplicate(Communicator& parent, Info* info, Communicator*& made);
/// Collective over `parent`; `made` stays nullptr on processes outside `group`.
Result create(Communicator& parent, Group& group, Communicator*& made);
/// Collective over `group` alone.
Result create_from_group(Communicator& parent, Group& group, int tag, Communicator*& made);
/// `color` MPI_UNDEFINED gives nullptr.
Result split(Communicator& parent, int color, int key, Communicator*& made);
/// MPI_COMM_TYPE_SHARED, and the hardware types where the machine's description allows.
Result split_by_type(Communicator& parent, int type, int key, Info* info, Communicator*& made);
/// MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL; local.
int compare(const Communicator& a, const Communicator& b);

/// Cartesian topologies; processes beyond the grid get nullptr.
Result create_cartesian(Communicator& parent, std::span<const int> dims, std::span<const int> periods,
                        bool reorder, Communicator*& made);
Result cartesian_sub(Communicator& parent, std::span<const int> remain, Communicator*& made);
/// MPI_Dims_create: fills the zeros of `dims` with a balanced factorisation, in non-increasing order.
Result choose_dims(int processes, std::span<int> dims);

} // namespace near::comm
