// What the files of this layer share: telling a value to a group, and building the object.
#pragma once

#include "comm/comm.h"

#include <array>

namespace near::comm {

/// `bytes` bytes as MPI_BYTE.
datatype::Buffer byte_buffer(void* address, std::size_t bytes);

/// The next tag of messages on Channel::internal; every member of `communicator` takes it in the same call.
int next_tag(Communicator& communicator);

/// Binomial tree over the processes `ranks` of `over` (all of it when empty): the first one's `value` reaches
/// the others. `position` is this process's place among them.
struct Tree {
  Communicator& over;
  std::span<const int> ranks;
  int position, count;
  int tag;
  object::Channel channel;
};
Result tell(const Tree& tree, std::uint64_t& value);

/// A fresh context for a duplicate of `parent`, made by one member. Collective; also on intercommunicators.
Result agree_on_context(Communicator& parent, std::uint64_t& context);

using object::decides;

/// A communicator on `group` (reference taken) or MPI_ERR_NO_MEM.
Result build(Communicator& parent, Group* group, std::uint64_t context, Communicator*& made);
Result build_inter(Communicator& parent, Group* local, Group* remote, std::uint64_t context,
                   Communicator*& made);

/// A communicator on the first `count` processes of `parent`, of which this one may be none: nullptr.
Result build_on_first(Communicator& parent, int count, Communicator*& made);

/// Takes a communicator back that could not be finished.
void discard(Communicator* communicator);

} // namespace near::comm
