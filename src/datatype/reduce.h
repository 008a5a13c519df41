// The loops behind the predefined operations, one for each operation and each basic type on which it is defined.
#pragma once

#include "datatype/operation.h"
#include "datatype/scalar.h"

#include <type_traits>

namespace near::datatype {

// find_kernel() (operation.h) calls each of these.
Kernel arithmetic_kernel(Builtin builtin, Basic basic); ///< sum, product, minimum, maximum
Kernel bit_kernel(Builtin builtin, Basic basic);        ///< bitwise and logical operations

/// The kernel of minimum_location or maximum_location on a predefined type of pairs.
Kernel pair_kernel(Builtin builtin, const PairIndex& pair);

/// Whether vector instructions can compute with the type.
template <class T>
inline constexpr bool has_vectors =
    (std::is_integral_v<T> && sizeof(T) <= 8) || std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
inline constexpr bool has_vectors<Complex<T>> = has_vectors<T>;
/// Products of complex numbers: with AVX-512 the compiler fuses multiplication and addition, which changes the last bit.
template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<Complex<T>> = true;

/// The instruction sets for which kernels are compiled. The compiler generates the vector code, so each kernel is one
/// loop for all sets.
enum class InstructionSet { baseline, avx2, avx512 };
/// The best instruction set that this processor and the operating system support.
InstructionSet best_instruction_set();
/// For tests: uses an instruction set that is not better than the best one. Affects only kernels found afterwards.
void use_instruction_set(InstructionSet set);
InstructionSet used_instruction_set();

// The loops load and store by memcpy, so they assume no alignment; compilers still vectorise them. Iterations are
// independent of one another, which the compiler cannot know, since `out` may be `second`.
#if defined(__clang__)
#define NEAR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define NEAR_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define NEAR_EACH_ELEMENT                                                                                    \
  const char *one = static_cast<const char*>(first), *two = static_cast<const char*>(second);                \
  char* to = static_cast<char*>(out);                                                                        \
  NEAR_INDEPENDENT                                                                                           \
  for (MPI_Count i = 0; i < n; ++i) {                                                                        \
    const MPI_Count at = i * static_cast<MPI_Count>(sizeof(T));                                              \
    store(to + at, Combine::of(load<T>(one + at), load<T>(two + at)));                                       \
  }

template <class T, class Combine>
void each_element(const void* first, const void* second, void* out, MPI_Count n) {
  NEAR_EACH_ELEMENT
}
#if defined(__x86_64__)
template <class T, class Combine>
[[gnu::target("avx2")]] void each_element_avx2(const void* first, const void* second, void* out,
                                               MPI_Count n) {
  NEAR_EACH_ELEMENT
}
template <class T, class Combine>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void
each_element_avx512(const void* first, const void* second, void* out, MPI_Count n) {
  NEAR_EACH_ELEMENT
}
#endif

/// The kernel of Combine::of(T, T), which must be inlined everywhere. Types that vector instructions cannot compute with
/// have only one version.
template <class T, class Combine>
Kernel kernel_of() {
#if defined(__x86_64__)
  if constexpr (has_vectors<T>) {
    if constexpr (!is_complex<T>)
      if (used_instruction_set() == InstructionSet::avx512) return each_element_avx512<T, Combine>;
    if (used_instruction_set() != InstructionSet::baseline) return each_element_avx2<T, Combine>;
  }
#endif
  return each_element<T, Combine>;
}

} // namespace near::datatype
