// Bitwise and logical operations. A logical value is true if it is not zero; results are 0 or 1.
#include "datatype/reduce.h"

namespace near::datatype {
namespace {

// Inlined everywhere: a function of its own would be compiled for one instruction set.
struct BitwiseAnd {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct LogicalAnd {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};
struct LogicalOr {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return static_cast<T>((a != 0) | (b != 0));
  }
};
struct LogicalXor {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

template <class T>
Kernel bits(Builtin builtin) {
  switch (builtin) {
  case Builtin::bitwise_and: return kernel_of<T, BitwiseAnd>();
  case Builtin::bitwise_or: return kernel_of<T, BitwiseOr>();
  case Builtin::bitwise_xor: return kernel_of<T, BitwiseXor>();
  case Builtin::logical_and: return kernel_of<T, LogicalAnd>();
  case Builtin::logical_or: return kernel_of<T, LogicalOr>();
  case Builtin::logical_xor: return kernel_of<T, LogicalXor>();
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
