// Accumulates (MPI_Accumulate, MPI_Get_accumulate, MPI_Fetch_and_op) and compare-and-swap: the data is read, changed
// and written under the target's element lock.
// Source: MPI 5.0, section 12.3.4.
#include "base/kill_point.h"
#include "rma/access.h"
#include "rma/elements.h"

#include <cstring>
#include <vector>

namespace near::rma {

namespace {

/// Describes the buffer as contiguous elements. Returns false if they are not contiguous.
bool as_elements(Buffer& buffer, Datatype& element) {
  if (buffer.type == &element && element.contiguous) return true; // without a division
  if (!buffer.type->contiguous || !element.contiguous)
    return buffer.type->basic == element.basic && element.basic != datatype::Basic::none;
  buffer = {buffer.contiguous_start(), buffer.bytes() / element.size, &element, buffer.kind};
  return true;
}

/// Both sides of an operation that computes must consist of one predefined datatype for which the operation is defined.
Result check_elements(const Operation& operation, const Buffer& origin, const Target& target) {
  const Datatype* element = target.type->element;
  if (element == nullptr)
    return base::fail(MPI_ERR_TYPE, "{} consists of several predefined datatypes, and {} needs one",
                      datatype::describe(*target.type), datatype::describe(operation));
  NEAR_TRY(datatype::check_accumulate(operation, *element));
  const Datatype* sent = origin.type->element;
  if (sent == nullptr || sent->basic != element->basic || sent->size != element->size)
    return base::fail(MPI_ERR_TYPE,
                      "{} here and {} at the target: both must consist of one predefined datatype",
                      datatype::describe(*origin.type), datatype::describe(*target.type));
  return {};
}

/// Hands an accumulate to its target.
Result hand_over(const Buffer& origin, const Buffer* before, const Target& target, const Operation& operation,
                 const TargetMemory& memory, Window& window, const Pending* pending, bool& handed) {
  Handing call{.kind = HandedKind::accumulate, .there = buffer_of(memory, target), .into = before};
  call.operation = handle_of(operation);
  if (operation.builtin != datatype::Builtin::no_op) call.operands[call.operand_count++] = origin;
  if (operation.builtin != datatype::Builtin::replace && call.operand_count != 0) {
    call.element = handle_of(*target.type->element);
    call.elements_have_gaps = !target.type->element->contiguous;
  }
  return hand_over(call, target.rank, window, pending, handed);
}

/// Lets fast.h carry out calls with this operation and type, if it can.
void allow_fast(const Operation& operation, const Buffer& origin, Datatype& type, LastAccumulate& last) {
  const MPI_Datatype handle = public_handle(type);
  if ((last.operation == public_handle(operation) && last.type == handle) || origin.type != &type ||
      datatype::predefined_contiguous_size(handle) == 0)
    return;
  if (const datatype::Kernel kernel = datatype::find_kernel(operation.builtin, type.basic))
    last = {public_handle(operation), handle, kernel};
}

} // namespace

Result accumulate(const Buffer& origin, const Buffer* before, const Target& target,
                  const Operation& operation, Window& window, Pending* pending) {
  bool changes = operation.builtin != datatype::Builtin::no_op;
  bool replaces = operation.builtin == datatype::Builtin::replace || !changes;
  Datatype* element = target.type->element;
  if (operation.builtin == datatype::Builtin::user)
    NEAR_TRY(datatype::check_accumulate(operation, *target.type));
  if (!changes && before == nullptr)
    return base::fail(MPI_ERR_OP, "MPI_NO_OP changes nothing: it is for calls that return what was there");
  if (changes) NEAR_TRY(datatype::check_copyable(origin));
  if (before != nullptr) NEAR_TRY(datatype::check_copyable(*before));
  TargetMemory memory;
  bool nothing = true;
  MPI_Count bytes = changes ? origin.bytes() : before != nullptr ? before->bytes() : 0;
  NEAR_TRY(prepare(target, bytes, window, nothing, memory));
  if (changes && before != nullptr && before->bytes() != bytes)
    return base::fail(MPI_ERR_COUNT,
                      "{} bytes of results and {} at the target: a one-sided call moves as many",
                      before->bytes(), bytes);
  if (nothing) return {};
  if (before != nullptr)
    note_read(state_of(window), target.rank, memory.address);
  else
    note_write(state_of(window));
  if (!replaces) {
    NEAR_TRY(check_elements(operation, origin, target));
    if (memory.here != nullptr) allow_fast(operation, origin, *target.type, state_of(window).last_accumulate);
  }
  if (memory.remote != nullptr)
    return begin_remote(window, target.rank, memory, pending, [&](const Pending& made) {
      return memory.remote->accumulate(origin, before, target.rank, buffer_of(memory, target), operation,
                                       made);
    });
  bool handed = false;
  if (memory.peer != nullptr)
    NEAR_TRY(hand_over(origin, before, target, operation, memory, window, pending, handed));
  if (handed) return {};
  const Member& member = state_of(window).members[static_cast<std::size_t>(target.rank)];

  // Memory is allocated before the lock is taken.
  std::vector<std::byte> mine_memory, theirs_memory;
  Buffer mine = origin, theirs = buffer_of(memory, target);
  bool direct = false;
  if (!replaces) {
    if (!as_elements(mine, *element)) {
      NEAR_TRY(scratch_for(bytes / element->size, *element, mine_memory, mine));
      datatype::copy(origin, mine, bytes);
    }
    direct = memory.peer == nullptr && as_elements(theirs, *element);
    if (!direct) NEAR_TRY(scratch_for(bytes / element->size, *element, theirs_memory, theirs));
  }

  ElementLock lock(member);
  NEAR_KILL_POINT("accumulate-locked");
  if (before != nullptr) {
    NEAR_TRY(load(*before, memory, target));
    note_found(state_of(window), *before);
  }
  if (!changes) return {};
  if (replaces) return store(origin, memory, target);
  if (!direct) NEAR_TRY(load(theirs, memory, target));
  datatype::reduce(operation, mine.address, theirs.address, theirs.count, *element);
  return direct ? Result() : store(theirs, memory, target);
}

Result compare_and_swap(const void* origin, const void* compare, void* before, const Target& target,
                        Window& window) {
  using datatype::Family;
  Datatype& type = *target.type;
  bool fits = type.family == Family::c_integer || type.family == Family::fortran_integer ||
              type.family == Family::logical || type.family == Family::multi_language ||
              type.family == Family::byte;
  if (!fits)
    return base::fail(MPI_ERR_TYPE, "{} is not an integer, logical, multi-language or byte type",
                      datatype::describe(type));
  state_of(window).last_swapped = datatype::predefined_contiguous_size(public_handle(type)) != 0
                                      ? public_handle(type)
                                      : MPI_DATATYPE_NULL;
  TargetMemory memory;
  bool nothing = true;
  NEAR_TRY(prepare(target, type.size, window, nothing, memory));
  if (nothing) return {};
  note_read(state_of(window), target.rank, memory.address);
  if (memory.remote != nullptr)
    return begin_remote(window, target.rank, memory, nullptr, [&](const Pending& made) {
      return memory.remote->compare_and_swap(origin, compare, before, target.rank, buffer_of(memory, target),
                                             made);
    });
  Buffer result{before, 1, &type};
  const Buffer element{const_cast<void*>(origin), 1, &type}, expected{const_cast<void*>(compare), 1, &type};
  bool handed = false;
  if (memory.peer != nullptr)
    NEAR_TRY(hand_over({.kind = HandedKind::compare_and_swap,
                        .there = buffer_of(memory, target),
                        .operands = {element, expected},
                        .operand_count = 2,
                        .into = &result},
                       target.rank, window, nullptr, handed));
  if (handed) return {};
  const ElementLock lock(state_of(window).members[static_cast<std::size_t>(target.rank)]);
  NEAR_TRY(load(result, memory, target));
  note_found(state_of(window), result);
  if (std::memcmp(before, compare, static_cast<std::size_t>(type.size)) != 0) return {};
  return store(element, memory, target);
}

} // namespace near::rma
