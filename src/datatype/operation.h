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
  const char* name = "";                         ///< "MPI_SUM"; empty for those of the program
};

Result make_predefined_operations();
object::Pool<Operation, object::Kind::operation>& operations();
/// Predefined or dynamic; nullptr for MPI_OP_NULL and any other value.
Operation* find_operation(MPI_Op handle);
/// A new operation with one reference; nullptr when memory or handles are used up. One function is null.
Operation* make_operation(MPI_User_function* function, MPI_User_function_c* function_large, bool commutative);
/// Drops one reference; the last one destroys. Predefined ones stay.
void release(Operation* operation);
/// What MPI_Op_free does: the handle is stale at once. The caller refuses predefined operations.
void free_operation(Operation& operation);
/// "MPI_SUM"; "an operation of the program" for `user`.
const char* name_of(Builtin builtin);
/// "MPI_SUM", or "operation 0x50000001": for messages.
std::string describe(const Operation& operation);

/// MPI_ERR_OP with a sentence when a predefined operation is not defined on this type (MPI 5.0,
/// section 6.9.2), and for MPI_REPLACE and MPI_NO_OP, which are for one-sided calls only; use
/// check_accumulate there.
Result check_operation(const Operation& operation, const Datatype& type);
/// The same for MPI_Accumulate and its kin: predefined operations only, MPI_REPLACE and MPI_NO_OP on any
/// type.
Result check_accumulate(const Operation& operation, const Datatype& type);

/// inout[i] = in[i] op inout[i] for `count` elements. The caller has checked the pair. User functions are
/// called with the public datatype handle, in pieces when `count` does not fit an int.
void reduce(const Operation& operation, const void* in, void* inout, MPI_Count count, Datatype& type);

/// The same with a result of its own: out[i] = first[i] op second[i]. `out` may be `second`; other overlaps are not
/// allowed.
void combine(const Operation& operation, const void* first, const void* second, void* out, MPI_Count count,
             Datatype& type);

inline MPI_Op public_handle(const Operation& operation) {
  return reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(operation.handle));
}

} // namespace near::datatype
