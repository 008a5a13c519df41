// The constructors other than those for arrays of processes: each describes a layout and gives it a handle.
// Source: MPI 5.0, sections 5.1.2 to 5.1.12.
#include "datatype/construct.h"

#include "copy/copy.h"
#include "datatype/walk.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace near::datatype {
namespace {

Result check_count(const char* what, MPI_Count value) {
  if (value >= 0) return {};
  return base::fail(MPI_ERR_COUNT, "{} is {}; it must not be negative", what, value);
}

Result check_block_length(MPI_Count i, MPI_Count length) {
  if (length >= 0) return {};
  return base::fail(MPI_ERR_ARG, "block length {} is {}; it must not be negative", i, length);
}

/// Sets `at` to displacement * unit, the position of a run. Fails with MPI_ERR_ARG if it overflows.
Result find_position(MPI_Count displacement, MPI_Count unit, MPI_Count& at) {
  if (!__builtin_mul_overflow(displacement, unit, &at)) return {};
  return base::fail(MPI_ERR_ARG, "displacement {} times the extent {} does not fit 63 bits", displacement,
                    unit);
}

void choose_functions(Datatype& type) {
  type.gather = copy::gathering(type.grid);
  type.scatter = copy::scattering(type.grid);
}

/// Records the blocks of a walk, up to `most`. Addresses remain numbers, since nothing lies there.
struct BlockSink : BlockByBlock<BlockSink> {
  static constexpr std::size_t most = 32;
  struct Block {
    std::intptr_t at;
    MPI_Count bytes;
  };
  std::array<Block, most> memory;
  std::size_t count = 0;
  std::span<const Block> blocks() const { return {memory.data(), count}; }
  bool block(std::intptr_t address, MPI_Count bytes) {
    if (count != 0 && memory[count - 1].at + memory[count - 1].bytes == address) {
      memory[count - 1].bytes += bytes;
      return true;
    }
    if (count == most) return false;
    memory[count++] = {address, bytes};
    return true;
  }
};

bool are_of_one_length(copy::Blocks blocks) {
  const auto bytes_of = [&](std::size_t i) { return blocks.start[i + 1] - blocks.start[i]; };
  bool equal = true;
  for (std::size_t i = 1; i < blocks.count; ++i) equal &= bytes_of(i) == bytes_of(0);
  return equal;
}

bool is_grid(const Datatype& type) { return type.gather != nullptr && type.grid.at == nullptr; }

/// Whether the element is so small that windows may copy it faster than a grid.
bool may_have_windows(const Datatype& type) {
  return type.size <= static_cast<MPI_Count>(copy::Windows::most * copy::Window::width) &&
         type.grid.count * type.grid.rows <= BlockSink::most && copy::chosen().windows != nullptr;
}

/// Returns the largest count of elements for which these windows are the fastest way; 0 if they never are (doc/adr/0030).
MPI_Count most_by_windows(const Datatype& type, const FewBlocks& few) {
  constexpr MPI_Count any = std::numeric_limits<MPI_Count>::max(), some = 16;
  const copy::Windows& windows = few.windows;
  const bool close = type.extent > 0 && type.extent <= copy::Windows::farthest;
  if (windows.count == 0 || (is_grid(type) && (windows.count > 2 || !close))) return 0;
  if (windows.count > 1 && few.blocks.count <= windows.count && windows.size < 32 * windows.count)
    return windows.count == 2 ? some : 0; // each has a short block
  if (windows.count == 1 && few.blocks.count == 1 && (windows.group == 1 || windows.size <= 16))
    return some * static_cast<MPI_Count>(windows.group); // several are a grid, which has registers of blocks
  return any;
}

/// Lets small elements be copied by windows.
void cut_elements(Datatype& type, FewBlocks& few) {
  copy::Window memory[copy::Windows::most];
  few.windows = copy::cut_into_windows(few.blocks, type.extent, memory);
  const MPI_Count most = most_by_windows(type, few);
  if (most == 0) {
    few.windows = {};
    return;
  }
  few.window_memory.assign(memory, memory + few.windows.count);
  few.windows.all = few.window_memory.data();
  const copy::WindowFunctions functions = copy::functions_for(few.windows);
  type.windows = &few.windows;
  type.most_by_windows = most;
  type.gather_several = functions.gather;
  type.scatter_several = functions.scatter;
}

/// Lists the blocks of an element if they are few, and close enough together for 32 bits.
void list_few_blocks(Datatype& type) {
  constexpr MPI_Count farthest = std::numeric_limits<std::int32_t>::max();
  /// If an element and its packed bytes take at most this many bytes, several elements fit into the first-level cache together.
  constexpr MPI_Count most_by_columns = 4096;
  BlockSink found;
  if (type.size > farthest || !walk(*type.form.form, 0, 0, type.size, found)) return;
  std::vector<std::int32_t> numbers;
  numbers.reserve(2 * found.count + 1);
  for (const auto& block : found.blocks()) {
    if (block.at < -farthest || block.at > farthest) return;
    numbers.push_back(static_cast<std::int32_t>(block.at));
  }
  // The positions are followed by where each block begins in the packed bytes, and where the last one ends.
  numbers.push_back(0);
  for (const auto& block : found.blocks())
    numbers.push_back(numbers.back() + static_cast<std::int32_t>(block.bytes));
  const std::size_t count = found.count;
  const copy::Blocks few{numbers.data(), numbers.data() + count, count};
  const bool by_columns =
      std::max(type.extent, -(type.extent + 1)) <= most_by_columns - type.size && lie_apart(few, type.extent);
  const auto made = std::make_shared<FewBlocks>();
  made->numbers = std::move(numbers);
  made->blocks = few;
  made->by_columns = by_columns;
  if (!are_of_one_length(few)) made->cut = copy::cut(few);
  if (may_have_windows(type)) cut_elements(type, *made);
  if (is_grid(type) && made->windows.count == 0) return;
  type.few = made;
}

/// Lets one element be copied by its list of blocks.
void copy_by_list(Datatype& type) {
  const copy::Blocks& few = type.few->blocks;
  const copy::Moves& moves = type.few->cut.moves;
  type.grid = {.count = few.count, .at = few.at};
  if (are_of_one_length(few))
    type.grid.bytes = static_cast<std::size_t>(few.start[1] - few.start[0]);
  else if (moves.all != nullptr)
    type.grid.moves = &moves;
  else
    type.grid.start = few.start;
  choose_functions(type);
  if (type.few->windows.count != 1) return;
  const copy::WindowFunctions functions = copy::functions_for(type.few->windows);
  type.grid.windows = &type.few->windows;
  type.gather = functions.gather_one;
  type.scatter = functions.scatter_one;
}

/// The parts of a struct whose members are vectors or lists, so that it can be copied without a walk. Empty if it has more
/// than `most` members, since each part takes 104 bytes.
std::vector<Part> parts_of(const NormalForm& form) {
  constexpr std::size_t most = 8;
  std::vector<Part> made;
  if (form.kind != NormalForm::Kind::list || form.children.size() > most) return made;
  made.reserve(form.children.size());
  for (std::size_t i = 0; i < form.children.size(); ++i) {
    const NormalForm& child = *form.children[i];
    const copy::Grid grid = grid_or_list_of(child);
    if (grid.count == 0) return {};
    made.push_back({form.entries[i].at, child.size, grid, copy::gathering(grid), copy::scattering(grid)});
  }
  return made;
}

/// Plans those copies of a committed datatype that its form alone does not describe.
void plan_more(Datatype& type) {
  if (!type.form.form || type.contiguous) return;
  if (!is_grid(type) || may_have_windows(type)) list_few_blocks(type);
  if (is_grid(type)) return;
  if (type.few != nullptr && (type.few->cut.moves.all != nullptr || type.few->windows.count == 1))
    return copy_by_list(type);
  if (type.gather != nullptr) return;
  constexpr std::size_t fewer_than_parts = 8; // this few blocks are faster in one list
  if (type.few == nullptr || type.few->blocks.count > fewer_than_parts)
    type.parts = parts_of(*type.form.form);
  if (type.parts.empty() && type.few != nullptr) copy_by_list(type);
}

} // namespace

void plan_copies(Datatype& type) {
  type.contiguous = is_contiguous(type);
  if (type.form.form) type.grid = grid_or_list_of(*type.form.form);
  if (type.grid.count != 0) choose_functions(type);
}

Result adopt(Layout layout, Datatype*& made) {
  made = datatypes().make();
  if (made == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory or no handle is left for a datatype; {} live",
                      datatypes().live());
  static_cast<Layout&>(*made) = std::move(layout);
  plan_copies(*made);
  return {};
}

Result make_contiguous(MPI_Count count, Datatype& old, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    NEAR_TRY(check_count("the count", count));
    return copies(old, count, old.extent, layout);
  });
}

Result make_vector(MPI_Count count, MPI_Count block_length, MPI_Count stride, bool stride_in_bytes,
                   Datatype& old, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    NEAR_TRY(check_count("the count", count));
    if (block_length < 0)
      return base::fail(MPI_ERR_ARG, "the block length is {}; it must not be negative", block_length);
    Layout block;
    NEAR_TRY(copies(old, block_length, old.extent, block));
    Int128 step = stride_in_bytes ? Int128{stride} : Int128{stride} * old.extent;
    return copies(block, count, step, layout);
  });
}

Result make_indexed(std::span<const MPI_Count> block_lengths, std::span<const MPI_Count> displacements,
                    bool displacements_in_bytes, Datatype& old, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    std::vector<Run> all;
    all.reserve(block_lengths.size());
    for (std::size_t i = 0; i < block_lengths.size(); ++i) {
      NEAR_TRY(check_block_length(static_cast<MPI_Count>(i), block_lengths[i]));
      if (block_lengths[i] == 0) continue;
      Run run{displacements[i], block_lengths[i]};
      if (!displacements_in_bytes) NEAR_TRY(find_position(displacements[i], old.extent, run.at));
      all.push_back(run);
    }
    return runs(old, all, layout);
  });
}

Result make_indexed_block(MPI_Count block_length, std::span<const MPI_Count> displacements,
                          bool displacements_in_bytes, Datatype& old, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    if (block_length < 0)
      return base::fail(MPI_ERR_ARG, "the block length is {}; it must not be negative", block_length);
    if (block_length == 0) return {};
    std::vector<Run> all;
    all.reserve(displacements.size());
    for (MPI_Count displacement : displacements) {
      Run run{displacement, block_length};
      if (!displacements_in_bytes) NEAR_TRY(find_position(displacement, old.extent, run.at));
      all.push_back(run);
    }
    return runs(old, all, layout);
  });
}

Result make_struct(std::span<const MPI_Count> block_lengths, std::span<const MPI_Count> displacements,
                   std::span<Datatype* const> types, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    std::vector<Member> members;
    members.reserve(block_lengths.size());
    for (std::size_t i = 0; i < block_lengths.size(); ++i) {
      NEAR_TRY(check_block_length(static_cast<MPI_Count>(i), block_lengths[i]));
      members.push_back({types[i], displacements[i], block_lengths[i]});
    }
    return join(members, true, layout);
  });
}

Result make_resized(Datatype& old, MPI_Count lb, MPI_Count extent, Datatype*& made) {
  return construct(made, [&](Layout& layout) -> Result {
    layout = old;
    return mark(layout, lb, extent);
  });
}

Result make_duplicate(Datatype& old, Datatype*& made) {
  NEAR_TRY(construct(made, [&](Layout& layout) -> Result {
    layout = old;
    return {};
  }));
  made->committed = old.committed;
  made->grid = old.grid; // if it points to a list, the form or `few` owns that
  made->gather = old.gather;
  made->scatter = old.scatter;
  made->few = old.few;
  made->windows = old.windows;
  made->most_by_windows = old.most_by_windows;
  made->gather_several = old.gather_several;
  made->scatter_several = old.scatter_several;
  made->parts = old.parts;
  made->basic = old.basic;
  made->family = old.family;
  made->pair = old.pair;
  return {};
}

Result commit(Datatype& type) {
  if (!type.committed) plan_more(type);
  type.committed = true;
  return {};
}

void record_envelope(Datatype& type, int combiner, bool large, std::vector<int> integers,
                     std::vector<MPI_Aint> addresses, std::vector<MPI_Count> counts,
                     std::span<Datatype* const> types) {
  Envelope& envelope = type.envelope;
  envelope.combiner = combiner;
  envelope.large = large;
  envelope.integers = std::move(integers);
  envelope.addresses = std::move(addresses);
  envelope.counts = std::move(counts);
  envelope.types.reserve(types.size());
  for (Datatype* old : types) envelope.types.push_back(object::keep(old));
}

} // namespace near::datatype
