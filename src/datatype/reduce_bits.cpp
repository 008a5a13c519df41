// Bitwise and logical operations. A logical value is true when it is not zero; results are 0 or 1.
#include "datatype/reduce.h"

namespace near::datatype {
namespace {

template <class T>
Kernel bits(Builtin builtin) {
  switch (builtin) {
  case Builtin::bitwise_and:
    return [](const void* in, void* inout, MPI_Count n) {
      each_element<T>(in, inout, n, [](T a, T b) { return static_cast<T>(a & b); });
    };
  case Builtin::bitwise_or:
    return [](const void* in, void* inout, MPI_Count n) {
      each_element<T>(in, inout, n, [](T a, T b) { return static_cast<T>(a | b); });
    };
  case Builtin::bitwise_xor:
    return [](const void* in, void* inout, MPI_Count n) {
      each_element<T>(in, inout, n, [](T a, T b) { return static_cast<T>(a ^ b); });
    };
  case Builtin::logical_and:
    return [](const void* in, void* inout, MPI_Count n) {
      each_element<T>(in, inout, n, [](T a, T b) { return static_cast<T>((a != 0) & (b != 0)); });
    };
  case Builtin::logical_or:
    return [](const void* in, void* inout, MPI_Count n) {
      each_element<T>(in, inout, n, [](T a, T b) { return static_cast<T>((a != 0) | (b != 0)); });
    };
  case Builtin::logical_xor:
    return [](const void* in, void* inout, MPI_Count n) {
      each_element<T>(in, inout, n, [](T a, T b) { return static_cast<T>((a != 0) != (b != 0)); });
    };
  default: return nullptr;
  }
}

} // namespace

Kernel bit_kernel(Builtin builtin, Basic basic) {
  switch (basic) {
  case Basic::int8:
  case Basic::uint8:
  case Basic::byte:
  case Basic::boolean:
  case Basic::logical1: return bits<std::uint8_t>(builtin);
  case Basic::int16:
  case Basic::uint16:
  case Basic::logical2: return bits<std::uint16_t>(builtin);
  case Basic::int32:
  case Basic::uint32:
  case Basic::logical4: return bits<std::uint32_t>(builtin);
  case Basic::int64:
  case Basic::uint64:
  case Basic::logical8: return bits<std::uint64_t>(builtin);
  case Basic::int128:
  case Basic::logical16: return bits<UnsignedInt128>(builtin);
  default: return nullptr;
  }
}

} // namespace near::datatype
