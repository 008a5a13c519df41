// MPI_MINLOC and MPI_MAXLOC: the lesser (greater) value; for equal values, the lesser index.
// Source: MPI 5.0, section 6.9.4.
#include "datatype/reduce.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace near::datatype {
namespace {

/// The types of pairs have the layout of such structs.
template <class Value, class Index>
struct Located {
  Value value;
  Index index;
};

/// Whether value and index have the same size, so that pairs have no gaps and vectors can compare them.
template <class Value, class Index>
constexpr bool is_even = has_vectors<Value> && sizeof(Value) == sizeof(Index) && sizeof(Value) >= 4;

constexpr std::size_t vector_bytes = 32;

/// Reduces such pairs by vectors, and returns how many. Less than a vector of them is left. Inlined, so that it is compiled for the
/// instruction set of its caller.
template <class Value, class Index, bool least>
[[gnu::always_inline]] inline MPI_Count reduce_even_pairs(const char* one, const char* two, char* to,
                                                          MPI_Count n) {
  using Lane = std::conditional_t<sizeof(Value) == 4, std::int32_t, std::int64_t>;
  using Values [[gnu::vector_size(vector_bytes)]] = Value;
  using Indices [[gnu::vector_size(vector_bytes)]] = Index;
  using Bits [[gnu::vector_size(vector_bytes)]] = Lane;
  constexpr MPI_Count in_vector = vector_bytes / (2 * sizeof(Value));
  MPI_Count done = 0;
  for (; done + in_vector <= n; done += in_vector) {
    const MPI_Count at = done * static_cast<MPI_Count>(2 * sizeof(Value));
    Bits x, y;
    std::memcpy(&x, one + at, sizeof x);
    std::memcpy(&y, two + at, sizeof y);
    const Values x_value = reinterpret_cast<Values>(x), y_value = reinterpret_cast<Values>(y);
    const Indices x_index = reinterpret_cast<Indices>(x), y_index = reinterpret_cast<Indices>(y);
    const Bits less = x_value < y_value, greater = y_value < x_value, lower = x_index < y_index;
    const Bits wins = least ? less : greater, equal = ~(less | greater);
    // Both lanes of each pair receive the result for its value.
    Bits pair_wins, index_wins;
    if constexpr (sizeof(Value) == 4) {
      pair_wins = __builtin_shufflevector(wins, wins, 0, 0, 2, 2, 4, 4, 6, 6);
      index_wins = __builtin_shufflevector(equal, equal, 0, 0, 2, 2, 4, 4, 6, 6) & lower &
                   Bits{0, -1, 0, -1, 0, -1, 0, -1};
    } else {
      pair_wins = __builtin_shufflevector(wins, wins, 0, 0, 2, 2);
      index_wins = __builtin_shufflevector(equal, equal, 0, 0, 2, 2) & lower & Bits{0, -1, 0, -1};
    }
    const Bits takes_x = pair_wins | index_wins, taken = (x & takes_x) | (y & ~takes_x);
    std::memcpy(to + at, &taken, sizeof taken);
  }
  return done;
}

/// Has no branches, because it is unpredictable which value wins. Values that are neither less nor greater, such as NaNs, count as
/// equal. The bytes between value and index, and between pairs, are not written.
#define NEAR_EACH_PAIR                                                                                       \
  using Pair = Located<Value, Index>;                                                                        \
  const char *one = static_cast<const char*>(first), *two = static_cast<const char*>(second);                \
  char* to = static_cast<char*>(out);                                                                        \
  MPI_Count i = 0;                                                                                           \
  if constexpr (is_even<Value, Index>) i = reduce_even_pairs<Value, Index, least>(one, two, to, n);          \
  NEAR_INDEPENDENT                                                                                           \
  for (; i < n; ++i) {                                                                                       \
    const MPI_Count at = i * static_cast<MPI_Count>(sizeof(Pair)),                                           \
                    at_index = at + static_cast<MPI_Count>(offsetof(Pair, index));                           \
    const Value x = load<Value>(one + at), y = load<Value>(two + at);                                        \
    const Index of_x = load<Index>(one + at_index), of_y = load<Index>(two + at_index);                      \
    const int less = x < y, greater = y < x, lower = of_x < of_y, wins = least ? less : greater;             \
    store(to + at, wins ? x : y);                                                                            \
    store(to + at_index, wins | (lower & ~(less | greater)) ? of_x : of_y);                                  \
  }

template <class Value, class Index, bool least>
void each_pair(const void* first, const void* second, void* out, MPI_Count n) {
  NEAR_EACH_PAIR
}
#if defined(__x86_64__)
template <class Value, class Index, bool least>
[[gnu::target("avx2")]] void each_pair_avx2(const void* first, const void* second, void* out, MPI_Count n) {
  NEAR_EACH_PAIR
}
#endif

template <class Value, class Index, bool least>
Kernel kernel_for_instruction_set() {
#if defined(__x86_64__)
  if constexpr (has_vectors<Value>)
    if (used_instruction_set() != InstructionSet::baseline) return each_pair_avx2<Value, Index, least>;
#endif
  return each_pair<Value, Index, least>;
}

template <class Value, class Index>
Kernel kernel_of_pair(Builtin builtin) {
  return builtin == Builtin::minimum_location ? kernel_for_instruction_set<Value, Index, true>()
                                              : kernel_for_instruction_set<Value, Index, false>();
}

} // namespace

Kernel pair_kernel(Builtin builtin, const PairIndex& pair) {
  if (pair.index == Basic::float32) return kernel_of_pair<float, float>(builtin);
  if (pair.index == Basic::float64) return kernel_of_pair<double, double>(builtin);
  switch (pair.value) {
  case Basic::int16: return kernel_of_pair<std::int16_t, std::int32_t>(builtin);
  case Basic::int32: return kernel_of_pair<std::int32_t, std::int32_t>(builtin);
  case Basic::int64: return kernel_of_pair<std::int64_t, std::int32_t>(builtin);
  case Basic::float32: return kernel_of_pair<float, std::int32_t>(builtin);
  case Basic::float64: return kernel_of_pair<double, std::int32_t>(builtin);
  default: return kernel_of_pair<long double, std::int32_t>(builtin);
  }
}

} // namespace near::datatype
