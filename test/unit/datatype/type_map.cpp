#include "type_map.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace near::datatype::test {
namespace {

constexpr std::size_t most_entries = 1500;

void must(Result result) { ASSERT_TRUE(result.ok()) << base::failure_text(); }

/// `count` copies of the old map, one extent apart, beginning at `at`.
void add_run(std::vector<Copy>& copies, const TypeMap& old, MPI_Count at, MPI_Count count) {
  for (MPI_Count i = 0; i < count; ++i) copies.push_back({&old, at + i * old.extent()});
}

} // namespace

Both RandomTypes::basic() {
  static const MPI_Datatype choices[] = {
      MPI_CHAR,   MPI_SHORT,     MPI_INT, MPI_DOUBLE, MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
      MPI_C_BOOL, MPI_FLOAT_INT, MPI_INT, MPI_CHAR};
  Both both;
  Datatype* const predefined = find_datatype(choices[pick(0, 10)]);
  if (predefined == nullptr) std::abort(); // never, but the compiler cannot know that
  both.type = object::keep(predefined);
  const Datatype& type = *both.type;
  both.map.ub = type.extent;
  both.map.alignment = type.alignment;
  if (type.basic == Basic::pair) {
    const Datatype* value = type.signature->children[0]->basic;
    both.map.entries = {{value, 0}, {find_datatype(MPI_INT), type.pair.at}};
  } else {
    both.map.entries = {{&type, 0}};
  }
  return both;
}

Both RandomTypes::indexed(const Both& old) {
  Both made;
  auto n = static_cast<std::size_t>(pick(0, 5));
  bool in_bytes = pick(0, 1) == 1, fixed = pick(0, 2) == 0, adjoining = pick(0, 3) == 0;
  std::vector<MPI_Count> lengths, displacements;
  MPI_Count length = pick(0, 3), next = pick(-5, 5);
  MPI_Count unit = in_bytes ? 1 : old.map.extent();
  for (std::size_t i = 0; i < n; ++i) {
    if (!fixed) length = pick(0, 3);
    lengths.push_back(length);
    displacements.push_back(adjoining ? next : in_bytes ? pick(-100, 100) : pick(-6, 6));
    next += in_bytes ? length * old.map.extent() : length;
  }
  must(fixed ? make_indexed_block(length, displacements, in_bytes, *old.type, made.type)
             : make_indexed(lengths, displacements, in_bytes, *old.type, made.type));
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < n; ++i) add_run(copies, old.map, displacements[i] * unit, lengths[i]);
  made.map = assemble(copies);
  return made;
}

Both RandomTypes::structure(int depth) {
  Both made;
  auto n = static_cast<std::size_t>(pick(0, 4));
  std::vector<Both> members;
  std::vector<MPI_Count> lengths, displacements;
  std::vector<Datatype*> types;
  MPI_Count next = 0;
  bool adjoining = pick(0, 1) == 1;
  for (std::size_t i = 0; i < n; ++i) {
    members.push_back(make(depth - 1));
    lengths.push_back(pick(0, 3));
    displacements.push_back(adjoining ? next : pick(-100, 200));
    next += lengths.back() * members.back().map.extent();
    types.push_back(members.back().type);
  }
  must(make_struct(lengths, displacements, types, made.type));
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < n; ++i) { add_run(copies, members[i].map, displacements[i], lengths[i]); }
  made.map = assemble(copies, true);
  for (Both& member : members) release(member.type);
  return made;
}

Both RandomTypes::subarray(const Both& old) {
  Both made;
  auto n = static_cast<std::size_t>(pick(1, 3));
  int order = pick(0, 1) == 1 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  std::vector<MPI_Count> sizes, subsizes, starts;
  for (std::size_t i = 0; i < n; ++i) {
    sizes.push_back(pick(1, 5));
    subsizes.push_back(pick(1, sizes[i]));
    starts.push_back(pick(0, sizes[i] - subsizes[i]));
  }
  must(make_subarray(sizes, subsizes, starts, order, *old.type, made.type));
  // Visits every element of the whole array in memory order and takes those inside the subarray.
  MPI_Count total = 1;
  for (MPI_Count size : sizes) total *= size;
  std::vector<Copy> copies;
  for (MPI_Count element = 0; element < total; ++element) {
    MPI_Count rest = element;
    bool inside = true;
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t i = order == MPI_ORDER_FORTRAN ? k : n - 1 - k;
      MPI_Count index = rest % sizes[i];
      rest /= sizes[i];
      inside &= index >= starts[i] && index < starts[i] + subsizes[i];
    }
    if (inside) copies.push_back({&old.map, element * old.map.extent()});
  }
  made.map = assemble(copies);
  made.map.marked = true;
  made.map.lb = 0;
  made.map.ub = total * old.map.extent();
  return made;
}

Both RandomTypes::darray(const Both& old) {
  Both made;
  auto n = static_cast<std::size_t>(pick(1, 3));
  int order = pick(0, 1) == 1 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  std::vector<MPI_Count> sizes;
  std::vector<int> distributions, arguments, grid;
  int processes = 1;
  for (std::size_t i = 0; i < n; ++i) {
    sizes.push_back(pick(1, 6));
    static const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    distributions.push_back(kinds[pick(0, 2)]);
    grid.push_back(distributions[i] == MPI_DISTRIBUTE_NONE ? 1 : static_cast<int>(pick(1, 3)));
    int least = 1;
    if (distributions[i] == MPI_DISTRIBUTE_BLOCK)
      least = static_cast<int>((sizes[i] + grid[i] - 1) / grid[i]);
    arguments.push_back(pick(0, 1) == 1 ? MPI_DISTRIBUTE_DFLT_DARG
                                        : static_cast<int>(pick(least, least + 2)));
    processes *= grid[i];
  }
  int rank = static_cast<int>(pick(0, processes - 1));
  must(make_darray(processes, rank, sizes, distributions, arguments, grid, order, *old.type, made.type));
  // Which process owns an element follows from the definition of the distributions.
  MPI_Count total = 1;
  for (MPI_Count size : sizes) total *= size;
  std::vector<Copy> copies;
  for (MPI_Count element = 0; element < total; ++element) {
    std::vector<MPI_Count> owner(n);
    MPI_Count rest = element;
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t i = order == MPI_ORDER_FORTRAN ? k : n - 1 - k;
      MPI_Count index = rest % sizes[i];
      rest /= sizes[i];
      MPI_Count block = arguments[i];
      if (arguments[i] == MPI_DISTRIBUTE_DFLT_DARG)
        block = distributions[i] == MPI_DISTRIBUTE_BLOCK ? (sizes[i] + grid[i] - 1) / grid[i] : 1;
      owner[i] = distributions[i] == MPI_DISTRIBUTE_NONE ? 0 : index / block % grid[i];
    }
    MPI_Count owner_rank = 0;
    for (std::size_t i = 0; i < n; ++i) owner_rank = owner_rank * grid[i] + owner[i];
    if (owner_rank == rank) copies.push_back({&old.map, element * old.map.extent()});
  }
  made.map = assemble(copies);
  made.map.marked = true;
  made.map.lb = 0;
  made.map.ub = total * old.map.extent();
  return made;
}

Both RandomTypes::make(int depth) {
  if (depth == 0) return basic();
  MPI_Count kind = pick(-2, 8);
  if (kind <= 0) return structure(depth);
  Both old = make(depth - 1), made;
  if (old.map.entries.size() * 40 > most_entries) kind = pick(6, 8);
  std::vector<Copy> copies;
  switch (kind) {
  case 1: {
    MPI_Count count = pick(0, 4);
    must(make_contiguous(count, *old.type, made.type));
    add_run(copies, old.map, 0, count);
    made.map = assemble(copies);
    break;
  }
  case 2: {
    MPI_Count count = pick(0, 4), length = pick(0, 3), stride = pick(-5, 5);
    bool in_bytes = pick(0, 1) == 1;
    if (in_bytes) stride = pick(-60, 60);
    must(make_vector(count, length, stride, in_bytes, *old.type, made.type));
    MPI_Count step = in_bytes ? stride : stride * old.map.extent();
    for (MPI_Count i = 0; i < count; ++i) add_run(copies, old.map, i * step, length);
    made.map = assemble(copies);
    break;
  }
  case 3: made = indexed(old); break;
  case 4: made = subarray(old); break;
  case 5: made = darray(old); break;
  case 6: {
    must(make_duplicate(*old.type, made.type));
    made.map = old.map;
    break;
  }
  case 7: {
    MPI_Count lb = pick(-20, 20), extent = pick(-10, 60);
    must(make_resized(*old.type, lb, extent, made.type));
    made.map = old.map;
    made.map.marked = true;
    made.map.lb = lb;
    made.map.ub = lb + extent;
    break;
  }
  default: return old;
  }
  release(old.type);
  return made;
}

} // namespace near::datatype::test
