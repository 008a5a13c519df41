// See elements.h.
#include "rma/elements.h"

#include "coll/collective_group.h"

namespace near::rma {

Result scratch_for(MPI_Count count, Datatype& element, std::vector<std::byte>& memory, Buffer& buffer) {
  std::size_t bytes = 0;
  std::ptrdiff_t origin = 0;
  if (!coll::scratch_layout(count, element, bytes, origin))
    return base::fail(MPI_ERR_NO_MEM, "{} elements of {} bytes are more than memory can hold", count,
                      element.size);
  memory.resize(bytes);
  buffer = {memory.data() + origin, count, &element};
  return {};
}

Result Reduction::prepare(object::HandleBits operation, object::HandleBits element,
                          std::span<const std::byte> operands) {
  operation_ = datatype::find_operation(reinterpret_cast<MPI_Op>(std::uintptr_t{operation}));
  element_ = datatype::find_predefined(reinterpret_cast<MPI_Datatype>(std::uintptr_t{element}));
  if (operation_ == nullptr || element_ == nullptr)
    return base::fail(MPI_ERR_OP, "no predefined operation {:#x} and datatype {:#x}", operation, element);
  NEAR_TRY(datatype::check_accumulate(*operation_, *element_));
  const auto bytes = static_cast<MPI_Count>(operands.size());
  if (bytes % element_->size != 0)
    return base::fail(MPI_ERR_COUNT, "{} bytes are not whole elements of {}", bytes, element_->size);
  count_ = bytes / element_->size;
  packed_.resize(operands.size());
  operands_ = {const_cast<std::byte*>(operands.data()), count_, element_};
  if (element_->contiguous) return {};
  const void* packed = operands.data();
  NEAR_TRY(scratch_for(count_, *element_, operands_memory_, operands_));
  NEAR_TRY(scratch_for(count_, *element_, result_memory_, result_));
  datatype::unpack(operands_, 0, packed, bytes);
  return {};
}

const std::byte* Reduction::apply(const std::byte* old) {
  if (element_->contiguous) {
    datatype::combine(*operation_, operands_.address, old, packed_.data(), count_, *element_);
  } else {
    datatype::unpack(result_, 0, old, result_.bytes());
    datatype::reduce(*operation_, operands_.address, result_.address, count_, *element_);
    datatype::pack(result_, 0, packed_.data(), result_.bytes());
  }
  return packed_.data();
}

} // namespace near::rma
