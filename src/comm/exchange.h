// Steps that the files of this layer share: sending a value to a group, and building the communicator.
#pragma once

#include "comm/comm.h"

#include <array>

namespace near::comm {

/// A buffer of `bytes` bytes of MPI_BYTE.
datatype::Buffer byte_buffer(void* address, std::size_t bytes);

/// The next tag of messages on Channel::internal. All members of `communicator` must take it in the same
/// call.
int next_tag(Communicator& communicator);

/// A binomial tree over the processes `ranks` of `over` (all processes if empty). `position` is the index of
/// this process among them.
struct Tree {
  Communicator& over;
  std::span<const int> ranks;
  int position, count;
  int tag;
  object::Channel channel;
};
Result tell(const Tree& tree, std::uint64_t& value);

/// Makes a new context for a duplicate of `parent`, chosen by one member. Collective; also on intercommunicators.
Result agree_on_context(Communicator& parent, std::uint64_t& context);

using object::decides;

/// Makes a communicator on `group`, and takes over the caller's reference. Fails with MPI_ERR_NO_MEM.
Result build(Communicator& parent, Group* group, std::uint64_t context, Communicator*& made);
Result build_inter(Communicator& parent, Group* local, Group* remote, std::uint64_t context,
                   Communicator*& made);

/// Makes a communicator in which process order[i] of `parent` has rank i. On processes that are not in `order`, `made` stays
/// nullptr.
Result build_in_order(Communicator& parent, std::span<const int> order, Communicator*& made);
/// Makes a communicator on the first `count` processes of `parent`; on the others `made` stays nullptr.
Result build_on_first(Communicator& parent, int count, Communicator*& made);

/// Destroys a communicator whose creation has failed.
void discard(Communicator* communicator);

} // namespace near::comm
