// Reduction operations. Source: MPI 5.0, section 6.9.
#pragma once

#include "datatype/datatype.h"

namespace near::datatype {

struct Operation : object::Object {
  bool commutative = true;
  MPI_User_function* function = nullptr;         ///< made by MPI_Op_create
  MPI_User_function_c* function_large = nullptr; ///< made by MPI_Op_create_c
  void* extra_state = nullptr;                   ///< for callers that are not C (Fortran)
  std::string name;
};

Result make_predefined_operations();
object::Pool<Operation, object::Kind::operation>& operations();
/// Predefined or dynamic; nullptr for MPI_OP_NULL and anything that is no operation.
Operation* find_operation(MPI_Op handle);
void release(Operation* operation);

/// MPI_ERR_OP with a sentence when a predefined operation is not defined on this type (MPI 5.0, table 6.3).
Result check_operation(const Operation& operation, const Datatype& type);

/// inout[i] = in[i] op inout[i] for `count` elements. The caller has checked the pair. User functions are
/// called with the public datatype handle, in pieces when `count` does not fit an int.
void reduce(const Operation& operation, const void* in, void* inout, MPI_Count count, Datatype& type);

inline MPI_Op public_handle(const Operation& operation) {
  return reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(operation.handle));
}

} // namespace near::datatype
