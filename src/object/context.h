// Context ids keep the messages of different communicators apart. They have 64 bits and are never reused.
//
//   63          40 39                       4  3  2  1  0
//  +--------------+--------------------------+-----+-----+
//  |   process    |         counter          |  i  |  c  |
//  +--------------+--------------------------+-----+-----+
//
//   process  number of the process that made the communicator, plus 1. 0: the predefined communicators. The largest
//            number: contexts that are made from a hash (MPI_Comm_create_from_group).
//   counter  how many contexts that process has made
//   i        0, except in the two communicators that an intercommunicator keeps on its groups
//   c        the channel (object::Channel), so that user messages, collectives and internal messages of one
//            communicator never match each other
//
// Neither number overflows silently: a process whose number does not fit is refused when it starts
// (fits_context()), and new_context() fails when the counter is used up, after 68 billion communicators.
#pragma once

#include "object/group.h"

#include <cstdint>

namespace near::object {

inline constexpr unsigned context_process_bits = 24, context_counter_bits = 36;

/// Whether this process's number fits into a context id.
constexpr bool fits_context(ProcessId process) {
  return process.job == 0 && process.rank < (1u << context_process_bits) - 2;
}
/// Returns a context that no other call in any process of the job returns. Processes of other jobs may make the same
/// one. Throws std::length_error if this process has used up its numbers.
std::uint64_t new_context();
/// Returns the context that belongs to a hash, in a range that new_context() never returns.
constexpr std::uint64_t hashed_context(std::uint64_t hash) {
  constexpr std::uint64_t process = (1u << context_process_bits) - 1;
  return (process << context_counter_bits | hash >> (64 - context_counter_bits)) << 4;
}
/// For tests: continues as if this process had made `count` contexts.
void set_contexts_made(std::uint64_t count);

} // namespace near::object
