// Memory for the elements of accumulates, and the reduction of packed ones. See accumulate.cpp.
#pragma once

#include "datatype/operation.h"

#include <span>
#include <vector>

namespace near::rma {

using datatype::Buffer;
using datatype::Datatype;
using object::Result;

/// The bits of a predefined object's public handle, which mean the same in every process.
template <class Object>
object::HandleBits handle_of(const Object& object) {
  return static_cast<object::HandleBits>(reinterpret_cast<std::uintptr_t>(public_handle(object)));
}

/// Makes a buffer for `count` elements of a predefined type in `memory`.
Result scratch_for(MPI_Count count, Datatype& element, std::vector<std::byte>& memory, Buffer& buffer);

/// Combines packed elements. Elements with gaps are first unpacked into memory that prepare() allocates.
class Reduction {
public:
  /// `operands` are packed elements, which must stay where they are. The handles name the predefined operation and
  /// datatype. Fails if no such objects exist, if the operation is not defined on the datatype, or if there is no memory.
  Result prepare(object::HandleBits operation, object::HandleBits element,
                 std::span<const std::byte> operands);
  /// Returns `operands op old[i]`, packed; `old` has as many bytes as the operands. The result lies in memory of this
  /// object and is valid until the next call.
  const std::byte* apply(const std::byte* old);

private:
  const datatype::Operation* operation_ = nullptr;
  Datatype* element_ = nullptr;
  MPI_Count count_ = 0;
  Buffer operands_, result_;
  std::vector<std::byte> operands_memory_, result_memory_, packed_;
};

} // namespace near::rma
