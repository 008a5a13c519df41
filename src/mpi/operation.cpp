// Making operations and applying them locally. Source: MPI 5.0, sections 6.9.5 and 6.9.7.
#include "mpi/impl.h"

namespace near::mpi::impl {

Result Op_create(void* user_fn, int commute, Operation*& op, bool large) {
  auto* function = large ? nullptr : reinterpret_cast<MPI_User_function*>(user_fn);
  auto* function_large = large ? reinterpret_cast<MPI_User_function_c*>(user_fn) : nullptr;
  op = datatype::make_operation(function, function_large, commute != 0);
  if (op == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle is left for an operation");
  return {};
}

Result Op_free(Operation& op) {
  free_operation(op);
  return {};
}

Result Op_commutative(Operation& op, int* commute) {
  *commute = op.commutative ? 1 : 0;
  return {};
}

Result Reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, Datatype& datatype, Operation& op) {
  NEAR_TRY(check_operation(op, datatype));
  if (inbuf == inoutbuf && count != 0 && inbuf != nullptr)
    return base::fail(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same buffer");
  reduce(op, inbuf, inoutbuf, count, datatype);
  return {};
}

} // namespace near::mpi::impl
