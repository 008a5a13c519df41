// Reduction operations. Source: MPI 5.0, section 6.9.
#pragma once

#include "datatype/datatype.h"

namespace near::datatype {

/// What a predefined operation does; `user` for those of the program.
enum class Builtin : std::uint8_t {
  user,
  sum,
  product,
  minimum,
  maximum,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  logical_and,
  logical_or,
  logical_xor,
  minimum_location,
  maximum_location,
  replace,
  no_op,
};

struct Operation : object::Object {
  Builtin builtin = Builtin::user;
  int user_handles = 1; ///< of the references, those that MPI_Op_free may drop
  bool commutative = true;
  MPI_User_function* function = nullptr;         ///< made by MPI_Op_create
  MPI_User_function_c* function_large = nullptr; ///< made by MPI_Op_create_c
  void* extra_state = nullptr;                   ///< for callers that are not C (Fortran)
  const char* name = "";                         ///< "MPI_SUM"; "" for operations of the program
};

/// out[i] = first[i] op second[i] for n elements; unaligned buffers are fine. `out` may be `second`; other overlaps are
/// not allowed.
using Kernel = void (*)(const void* first, const void* second, void* out, MPI_Count n);

/// Returns the kernel of an operation on a basic type; nullptr if the operation is not defined on it, and for minimum_location and
/// maximum_location.
Kernel find_kernel(Builtin builtin, Basic basic);

Result make_predefined_operations();
object::Pool<Operation, object::Kind::operation>& operations();
/// Returns the live operation with this handle, predefined or not; nullptr for MPI_OP_NULL and any other value.
Operation* find_operation(MPI_Op handle);
/// Makes an operation of the program, with one reference; nullptr if memory or handles are used up. One of the two
/// functions is null.
Operation* make_operation(MPI_User_function* function, MPI_User_function_c* function_large, bool commutative);
/// Drops one reference; the last one destroys the operation. Does nothing to predefined operations.
void release(Operation* operation);
/// Does what MPI_Op_free does: drops one of the program's references. The last of them makes the handle stale at once.
/// The caller refuses predefined operations.
void free_operation(Operation& operation);
/// The name of an operation, such as "MPI_SUM"; "an operation of the program" for `user`.
const char* name_of(Builtin builtin);
/// Describes the operation in messages: "MPI_SUM", or "operation 0x50000001".
std::string describe(const Operation& operation);

/// Fails with MPI_ERR_OP if a predefined operation is not defined on this type (MPI 5.0, section 6.9.2), and for
/// MPI_REPLACE and MPI_NO_OP, which are for one-sided calls only: these use check_accumulate().
Result check_operation(const Operation& operation, const Datatype& type);
/// Checks the operation of an accumulate (MPI_Accumulate, MPI_Get_accumulate, MPI_Fetch_and_op) like
/// check_operation(). It must be predefined; MPI_REPLACE and MPI_NO_OP are allowed on any type.
Result check_accumulate(const Operation& operation, const Datatype& type);

/// inout[i] = in[i] op inout[i] for `count` elements. The caller has checked the pair. User functions are
/// called with the public datatype handle, in pieces when `count` does not fit an int.
void reduce(const Operation& operation, const void* in, void* inout, MPI_Count count, Datatype& type);

/// Like reduce(), with a separate result: out[i] = first[i] op second[i] for `count` elements. `out` may be `second`;
/// other overlaps are not allowed.
void combine(const Operation& operation, const void* first, const void* second, void* out, MPI_Count count,
             Datatype& type);

inline MPI_Op public_handle(const Operation& operation) {
  return reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(operation.handle));
}

} // namespace near::datatype
