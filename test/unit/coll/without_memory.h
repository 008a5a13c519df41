// What the tests of ranks without memory have in common.
#pragma once

#include "forms.h"

#include <new>
#include <vector>

namespace near::coll::test {

/// What a rank passes to the calls: blocks of `count` integers for each rank.
struct Arguments {
  Arguments(int size, MPI_Count elements)
      : count(elements), out(static_cast<std::size_t>(elements * size)), in(out.size()),
        counts(static_cast<std::size_t>(size), elements) {
    for (int rank = 0; rank < size; ++rank) displacements.push_back(rank * elements);
  }
  Buffer sent() { return {out.data(), count, &type}; }
  Buffer received() { return {in.data(), count, &type}; }
  Blocks blocks(std::vector<int>& of) {
    return {.address = of.data(),
            .counts = Counts(counts.data()),
            .displacements = Counts(displacements.data()),
            .type = &type};
  }
  MPI_Count count;
  Datatype& type = *datatype::find_datatype(MPI_INT);
  std::vector<int> out, in;
  std::vector<MPI_Count> counts, displacements;
};

inline const datatype::Operation& summing() { return *datatype::find_operation(MPI_SUM); }

/// Begins it, or does all of it if it is blocking. An exception is the entry points' MPI_ERR_NO_MEM.
inline Result begin(const Call& call, object::Communicator& c, bool later, p2p::Request*& request) {
  try {
    return later ? start(call, c, request) : run(call, c);
  } catch (const std::bad_alloc&) { return Result(MPI_ERR_NO_MEM); }
}

inline bool tells_of_memory(Result result) {
  return result.ok() || result.code() == MPI_ERR_NO_MEM || result.code() == MPI_ERR_OTHER;
}

} // namespace near::coll::test
