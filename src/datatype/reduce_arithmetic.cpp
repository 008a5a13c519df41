// Sum, product, minimum and maximum. Signed integers wrap around like
// unsigned ones; their overflow is not undefined.
#include "datatype/reduce.h"

#include <type_traits>

namespace near::datatype {
namespace {

/// The type in which an integer is calculated: unsigned, and not narrower than an unsigned int, because
/// narrower types would be promoted to int, which can overflow.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) <= 4, std::uint32_t,
                                    std::conditional_t<sizeof(T) == 8, std::uint64_t, UnsignedInt128>>;

template <class T>
constexpr bool is_integer = std::is_integral_v<T> || std::is_same_v<T, Int128>;

template <class T>
[[gnu::always_inline]] inline T add(T a, T b) {
  if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  else if constexpr (std::is_same_v<T, Half>)
    return Half::from(float{a} + float{b});
  else
    return a + b;
}

template <class T>
[[gnu::always_inline]] inline T subtract(T a, T b) {
  if constexpr (std::is_same_v<T, Half>)
    return Half::from(float{a} - float{b});
  else
    return a - b;
}

template <class T>
[[gnu::always_inline]] inline T multiply(T a, T b) {
  if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  else if constexpr (std::is_same_v<T, Half>)
    return Half::from(float{a} * float{b});
  else
    return a * b;
}

template <class T>
[[gnu::always_inline]] inline Complex<T> add(Complex<T> a, Complex<T> b) {
  return {add(a.re, b.re), add(a.im, b.im)};
}

template <class T>
[[gnu::always_inline]] inline Complex<T> multiply(Complex<T> a, Complex<T> b) {
  return {subtract(multiply(a.re, b.re), multiply(a.im, b.im)),
          add(multiply(a.re, b.im), multiply(a.im, b.re))};
}

// Inlined everywhere: a function of its own would be compiled for one instruction set.
struct Sum {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return add(a, b);
  }
};
struct Product {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return multiply(a, b);
  }
};
struct Minimum {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a < b ? a : b;
  }
};
struct Maximum {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return b < a ? a : b;
  }
};

template <class T>
Kernel kernel_for_ordered(Builtin builtin) {
  switch (builtin) {
  case Builtin::sum: return kernel_of<T, Sum>();
  case Builtin::product: return kernel_of<T, Product>();
  case Builtin::minimum: return kernel_of<T, Minimum>();
  case Builtin::maximum: return kernel_of<T, Maximum>();
  default: return nullptr;
  }
}

template <class T>
Kernel unordered(Builtin builtin) {
  switch (builtin) {
  case Builtin::sum: return kernel_of<Complex<T>, Sum>();
  case Builtin::product: return kernel_of<Complex<T>, Product>();
  default: return nullptr;
  }
}

} // namespace

Kernel arithmetic_kernel(Builtin builtin, Basic basic) {
  switch (basic) {
  case Basic::int8: return kernel_for_ordered<std::int8_t>(builtin);
  case Basic::int16: return kernel_for_ordered<std::int16_t>(builtin);
  case Basic::int32: return kernel_for_ordered<std::int32_t>(builtin);
  case Basic::int64: return kernel_for_ordered<std::int64_t>(builtin);
  case Basic::int128: return kernel_for_ordered<Int128>(builtin);
  case Basic::uint8: return kernel_for_ordered<std::uint8_t>(builtin);
  case Basic::uint16: return kernel_for_ordered<std::uint16_t>(builtin);
  case Basic::uint32: return kernel_for_ordered<std::uint32_t>(builtin);
  case Basic::uint64: return kernel_for_ordered<std::uint64_t>(builtin);
  case Basic::float16: return kernel_for_ordered<Half>(builtin);
  case Basic::float32: return kernel_for_ordered<float>(builtin);
  case Basic::float64: return kernel_for_ordered<double>(builtin);
  case Basic::float80: return kernel_for_ordered<long double>(builtin);
  case Basic::float128: return kernel_for_ordered<Float128>(builtin);
  case Basic::complex16: return unordered<Half>(builtin);
  case Basic::complex32: return unordered<float>(builtin);
  case Basic::complex64: return unordered<double>(builtin);
  case Basic::complex80: return unordered<long double>(builtin);
  case Basic::complex128: return unordered<Float128>(builtin);
  default: return nullptr;
  }
}

} // namespace near::datatype
