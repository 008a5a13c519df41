// See call_ring.h.
#include "rma/call_ring.h"

#include "copy/raw.h"
#include "datatype/operation.h"

#include <cstring>

namespace near::rma {

namespace {

template <class Handle>
Handle handle_from(object::HandleBits bits) {
  return reinterpret_cast<Handle>(std::uintptr_t{bits});
}

} // namespace

bool change_elements(const HandedCall& call, const std::byte* operands, std::byte* memory,
                     std::size_t bytes) {
  if (call.kind == HandedKind::compare_and_swap) {
    if (std::memcmp(memory, operands + bytes, bytes) != 0) return false;
    copy::raw(memory, operands, bytes);
    return true;
  }
  const datatype::Operation* operation = datatype::find_operation(handle_from<MPI_Op>(call.operation));
  if (call.operands == 0 || operation == nullptr || operation->builtin == datatype::Builtin::no_op)
    return false;
  if (operation->builtin == datatype::Builtin::replace) {
    copy::raw(memory, operands, bytes);
    return true;
  }
  datatype::Datatype* element = datatype::find_predefined(handle_from<MPI_Datatype>(call.element));
  if (element == nullptr) return false;
  datatype::reduce(*operation, operands, memory, static_cast<MPI_Count>(bytes) / element->size, *element);
  return true;
}

} // namespace near::rma
