// Reduction operations. Source: MPI 5.0, section 6.9.
#pragma once

#include "datatype/datatype.h"

namespace near::datatype {

/// What a predefined operation does; `user` for the program's own operations.
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
  int user_handles = 1; ///< how many of the references MPI_Op_free may drop
  bool commutative = true;
  MPI_User_function* function = nullptr;         ///< made by MPI_Op_create
  MPI_User_function_c* function_large = nullptr; ///< made by MPI_Op_create_c
  void* extra_state = nullptr;                   ///< for callers in other languages (Fortran)
  const char* name = "";                         ///< such as "MPI_SUM"; "" for the program's operations
};

/// Computes out[i] = first[i] op second[i] for n elements. Buffers may be unaligned. `out` may be `second`; other
/// overlaps are not allowed.
using Kernel = void (*)(const void* first, const void* second, void* out, MPI_Count n);

/// Returns the kernel of an operation on a basic type; nullptr if the operation is not defined on it, and for minimum_location and
/// maximum_location.
Kernel find_kernel(Builtin builtin, Basic basic);

Result make_predefined_operations();
object::Pool<Operation, object::Kind::operation>& operations();
/// Returns the live operation with this handle, predefined or not; nullptr for MPI_OP_NULL and any other value.
Operation* find_operation(MPI_Op handle);
/// Makes an operation of the program, with one reference; nullptr if memory or handles are exhausted. One of the
/// two functions is null.
Operation* make_operation(MPI_User_function* function, MPI_User_function_c* function_large, bool commutative);
/// Drops one reference; the last one destroys the operation. Has no effect on predefined operations.
void release(Operation* operation);
/// Implements MPI_Op_free: drops one of the program's references. Dropping the last one invalidates the handle at
/// once. The caller rejects predefined operations.
void free_operation(Operation& operation);
/// The name of an operation, such as "MPI_SUM"; "an operation of the program" for `user`.
const char* name_of(Builtin builtin);
/// Describes the operation in messages: "MPI_SUM", or "operation 0x50000001".
std::string describe(const Operation& operation);

/// Fails with MPI_ERR_OP if a predefined operation is not defined on this type (MPI 5.0, section 6.9.2). Also
/// fails for MPI_REPLACE and MPI_NO_OP, which only one-sided calls may use; these call check_accumulate().
Result check_operation(const Operation& operation, const Datatype& type);
/// Checks the operation of an accumulate (MPI_Accumulate, MPI_Get_accumulate, MPI_Fetch_and_op) like
/// check_operation(). It must be predefined; MPI_REPLACE and MPI_NO_OP are allowed on any type.
Result check_accumulate(const Operation& operation, const Datatype& type);

/// Computes inout[i] = in[i] op inout[i] for `count` elements. The caller has checked that the operation is defined on the
/// type. User functions receive the public datatype handle, and are called in pieces if `count` does not fit in an int.
void reduce(const Operation& operation, const void* in, void* inout, MPI_Count count, Datatype& type);

/// Like reduce(), but with a separate result: out[i] = first[i] op second[i] for `count` elements. `out` may be
/// `second`; other overlaps are not allowed.
void combine(const Operation& operation, const void* first, const void* second, void* out, MPI_Count count,
             Datatype& type);

inline MPI_Op public_handle(const Operation& operation) {
  return reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(operation.handle));
}

} // namespace near::datatype
