// Put and get, for which the origin moves the bytes, and how to reach a target's memory.
// Source: MPI 5.0, section 12.3.
#include "rma/access.h"
#include "base/checked.h"
#include "copy/copy.h"
#include "rma/through_kernel.h"

#include <vector>

namespace near::rma {

namespace {

/// Where the data of a buffer begin and end, in bytes from its address. Returns false if that does not fit in 63 bits.
bool hull(MPI_Count count, const Datatype& type, MPI_Count& low, MPI_Count& high) {
  MPI_Count steps = 0;
  if (!base::checked_multiply(count - 1, type.extent, steps)) return false;
  MPI_Count end = 0;
  if (!base::checked_add(type.true_lb, type.true_extent, end)) return false;
  return base::checked_add(type.true_lb, std::min<MPI_Count>(steps, 0), low) &&
         base::checked_add(end, std::max<MPI_Count>(steps, 0), high);
}

Result out_of_range(const Window& window, const Target& target) {
  return base::fail(MPI_ERR_RMA_RANGE,
                    "{} elements of {} bytes at displacement {} are not within the part of rank {} of {}",
                    target.count, target.type->extent, target.displacement, target.rank,
                    object::describe(window));
}

/// Where attached memory lies in the segment of its owner's job.
struct Attached {
  bool shared = false;          ///< all of it is in the segment,
  std::uint64_t to_segment = 0; ///< at its address plus this
};

/// Whether all memory that the target's data occupy, from `address` on, is attached. Data with gaps may
/// lie in unrelated pieces of memory.
bool find_all_attached(const Member& member, std::uint64_t address, const Target& target, MPI_Count low,
                       MPI_Count high, Attached& found) {
  const Attachments& attached = member.locks->attached;
  const std::uint64_t begin = address + static_cast<std::uint64_t>(low),
                      end = address + static_cast<std::uint64_t>(high);
  AttachedRange range;
  if (begin < end && find_attached(*member.segment, attached, begin, end, range)) {
    found = {range.shared, range.to_segment};
    return true;
  }
  constexpr std::size_t most = 256;
  const Buffer there{reinterpret_cast<void*>(address), target.count, target.type};
  std::vector<datatype::Piece> pieces;
  found.shared = true;
  range = {};
  const MPI_Count bytes = there.bytes();
  for (MPI_Count at = 0; at < bytes;) {
    pieces.clear();
    at += datatype::pieces(there, at, bytes - at, pieces, most);
    for (const auto& piece : pieces) {
      const auto first = reinterpret_cast<std::uint64_t>(piece.address), behind = first + piece.bytes;
      if (first >= range.begin && behind <= range.end && first < behind) continue;
      if (first >= behind || !find_attached(*member.segment, attached, first, behind, range)) return false;
      found = {found.shared && range.shared, range.to_segment};
    }
  }
  return true;
}

/// A put or get between memory that this process can load and store. Calls with a request are not counted: a program may wait for
/// each of them and use the data without ever synchronising.
void move(const Buffer& from, const Buffer& to, Window& window, const Pending* pending) {
  const MPI_Count bytes = to.bytes();
  if (pending == nullptr && static_cast<std::uint64_t>(bytes) >= LongMoves::least && from.is_contiguous() &&
      to.is_contiguous()) {
    std::byte* const at = to.contiguous_start();
    const auto length = static_cast<std::size_t>(bytes);
    if (state_of(window).long_moves.stores(at, length) == copy::Store::streaming)
      return copy::copy(at, from.contiguous_start(), length, copy::Store::streaming);
  }
  datatype::copy(from, to, bytes);
}

} // namespace

bool is_of_own_part(const Window& window, std::span<const Run> runs) {
  const State& state = state_of(window);
  const Member& own = state.members[static_cast<std::size_t>(state.rank)];
  if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return are_inside(runs, own.address, static_cast<std::uint64_t>(own.size));
  AttachedRange range; // the last one found
  return each_piece(runs, [&](std::uint64_t begin, std::uint64_t bytes) {
    const std::uint64_t behind = begin + bytes;
    if (begin >= range.begin && behind <= range.end && begin < behind) return true;
    return begin < behind && find_attached(*own.segment, own.locks->attached, begin, behind, range);
  });
}

Buffer buffer_of(const TargetMemory& memory, const Target& target) {
  bool elsewhere = memory.peer != nullptr || memory.remote != nullptr;
  void* address = elsewhere ? reinterpret_cast<void*>(memory.address) : memory.here;
  return {address, target.count, target.type};
}

Result store(const Buffer& from, const TargetMemory& memory, const Target& target) {
  Buffer there = buffer_of(memory, target);
  if (memory.peer != nullptr) return store_through_kernel(from, there, *memory.peer);
  datatype::copy(from, there, there.bytes());
  return {};
}

Result load(const Buffer& into, const TargetMemory& memory, const Target& target) {
  Buffer there = buffer_of(memory, target);
  if (memory.peer != nullptr) return load_through_kernel(into, there, *memory.peer);
  datatype::copy(there, into, there.bytes());
  return {};
}

Result prepare(const Target& target, MPI_Count bytes, Window& window, bool& nothing, TargetMemory& memory) {
  nothing = true;
  if (target.rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(target.rank, window));
  NEAR_TRY(open_access(target.rank, window));
  MPI_Count there = target.count * target.type->size; // fits: checked by the bindings
  if (bytes != there)
    return base::fail(MPI_ERR_COUNT, "{} bytes here and {} at the target: a one-sided call moves as many",
                      bytes, there);
  if (there == 0) return {};
  nothing = false;
  return find_memory(window, target, memory);
}

Result find_memory(const Window& window, const Target& target, TargetMemory& memory) {
  const State& state = state_of(window);
  const Member& member = state.members[static_cast<std::size_t>(target.rank)];
  MPI_Count low = 0, high = 0, offset = 0;
  if (!hull(target.count, *target.type, low, high)) return out_of_range(window, target);
  // Where this process has mapped the memory. An integer, because with absolute addresses in the datatype it may
  // be any address, and lies in the segment only together with the datatype's displacements.
  bool is_mapped = false;
  std::uintptr_t mapped = 0;
  std::uint64_t address = 0;
  RemoteAccess* remote = remote_access(state, target.rank);
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    address = static_cast<std::uint64_t>(target.displacement);
    Attached attached;
    bool found = false;
    if (remote == nullptr) {
      found = find_all_attached(member, address, target, low, high, attached);
    } else {
      // Only a remote target knows what it has attached. It checks a message before it moves anything.
      constexpr MPI_Count most_in_a_message = 16384;
      const Buffer there{reinterpret_cast<void*>(address), target.count, target.type};
      memory.waits = there.bytes() <= most_in_a_message;
      Result answer = memory.waits ? Result() : remote->check(target.rank, there);
      found = answer.ok();
      if (!found && answer.code() != MPI_ERR_RMA_RANGE) return answer;
    }
    if (!found)
      return base::fail(
          MPI_ERR_RMA_RANGE,
          "rank {} has not attached all of the memory at {:#x} that {} elements of {} bytes take",
          target.rank, address, target.count, target.type->extent);
    is_mapped = attached.shared;
    if (is_mapped)
      mapped = reinterpret_cast<std::uintptr_t>(member.segment->base()) + address + attached.to_segment;
  } else {
    MPI_Count first = 0, behind = 0;
    if (target.displacement < 0)
      return base::fail(MPI_ERR_DISP, "target_disp is {}, but must not be negative", target.displacement);
    if (!base::checked_multiply<MPI_Count>(target.displacement, member.unit, offset) ||
        !base::checked_add(offset, low, first) || !base::checked_add(offset, high, behind) || first < 0 ||
        behind > member.size)
      return out_of_range(window, target);
    address = member.address + static_cast<std::uint64_t>(offset);
    is_mapped = member.here != nullptr;
    mapped = reinterpret_cast<std::uintptr_t>(member.here) + static_cast<std::uint64_t>(offset);
  }
  memory.address = address;
  if (remote != nullptr)
    memory.remote = remote;
  else if (target.rank == state.rank)
    memory.here = reinterpret_cast<std::byte*>(address);
  else if (is_mapped)
    memory.here = reinterpret_cast<std::byte*>(mapped);
  else
    memory.peer = &peer_of(window, target.rank);
  return {};
}

Result hand_over(const Handing& operation, int rank, Window& window, const Pending* pending, bool& handed) {
  HandedCalls* calls = state_of(window).handed.get();
  handed = false;
  if (calls == nullptr) return {};
  if (operation.elements_have_gaps) return calls->finish(rank, Where::target);
  NEAR_TRY(calls->hand(rank, operation, handed));
  return handed && pending != nullptr ? calls->finish(rank, Where::origin) : Result();
}

Result await(const Pending& operation, int rank, Window& window) {
  {
    const Expectation expected(state_of(window).remote.get(), rank);
    p2p::wait_until([&] { return operation->is_complete(Where::target); });
  }
  if (operation->error() == MPI_SUCCESS) return {};
  if (operation->error() == MPI_ERR_RMA_RANGE)
    return base::fail(MPI_ERR_RMA_RANGE, "rank {} has not attached all of the memory that the call refers to",
                      rank);
  return base::fail(operation->error(), "an operation on rank {} of {} failed", rank,
                    object::describe(window));
}

Result put(const Buffer& origin, const Target& target, Window& window, Pending* pending) {
  NEAR_TRY(datatype::check_copyable(origin));
  TargetMemory memory;
  bool nothing = true;
  NEAR_TRY(prepare(target, origin.bytes(), window, nothing, memory));
  if (nothing) return {};
  note_write(state_of(window));
  if (memory.remote != nullptr)
    return begin_remote(window, target.rank, memory, pending, [&](const Pending& operation) {
      return memory.remote->put(origin, target.rank, buffer_of(memory, target), operation);
    });
  if (memory.peer == nullptr) {
    move(origin, buffer_of(memory, target), window, pending);
    return {};
  }
  bool handed = false;
  NEAR_TRY(hand_over(
      {.kind = HandedKind::put, .there = buffer_of(memory, target), .operands = {origin}, .operand_count = 1},
      target.rank, window, pending, handed));
  return handed ? Result() : store(origin, memory, target);
}

Result get(const Buffer& origin, const Target& target, Window& window, Pending* pending) {
  NEAR_TRY(datatype::check_copyable(origin));
  TargetMemory memory;
  bool nothing = true;
  NEAR_TRY(prepare(target, origin.bytes(), window, nothing, memory));
  if (nothing) return {};
  note_read(state_of(window), target.rank, memory.address);
  if (memory.remote != nullptr)
    return begin_remote(window, target.rank, memory, pending, [&](const Pending& operation) {
      return memory.remote->get(origin, target.rank, buffer_of(memory, target), operation);
    });
  if (memory.peer == nullptr) {
    move(buffer_of(memory, target), origin, window, pending);
    note_found(state_of(window), origin);
    return {};
  }
  bool handed = false;
  NEAR_TRY(hand_over({.kind = HandedKind::get, .there = buffer_of(memory, target), .into = &origin},
                     target.rank, window, pending, handed));
  if (handed) return {};
  NEAR_TRY(load(origin, memory, target));
  note_found(state_of(window), origin);
  return {};
}

} // namespace near::rma
