// The kernels of all instruction sets produce the same bits as the plain ones, at any length and alignment.
#include "datatype/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace near::datatype {
namespace {

constexpr MPI_Count counts[] = {1, 2, 3, 7, 15, 16, 31, 33, 64, 65, 200};

/// Random bits for integers, random numbers without NaNs for floating-point types.
void fill(std::vector<std::byte>& bytes, std::mt19937& random, Basic basic) {
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  auto numbers = [&]<class T>(T) {
    std::uniform_real_distribution<double> any(-100, 100);
    for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T))
      store(bytes.data() + at, static_cast<T>(any(random)));
  };
  if (basic == Basic::float32 || basic == Basic::complex32) numbers(float{});
  if (basic == Basic::float64 || basic == Basic::complex64) numbers(double{});
}

TEST(InstructionSets, every_instruction_set_gives_the_same_bits) {
  std::mt19937 random(20);
  int compared = 0;
  for (InstructionSet vectors : {InstructionSet::avx2, InstructionSet::avx512}) {
    if (vectors > best_instruction_set()) continue;
    for (Basic basic :
         {Basic::int8, Basic::int16, Basic::int32, Basic::int64, Basic::uint8, Basic::uint16, Basic::uint32,
          Basic::uint64, Basic::float32, Basic::float64, Basic::complex32, Basic::complex64, Basic::byte})
      for (int operation = 1; operation <= static_cast<int>(Builtin::logical_xor); ++operation) {
        use_instruction_set(InstructionSet::baseline);
        Kernel plain = find_kernel(static_cast<Builtin>(operation), basic);
        use_instruction_set(vectors);
        Kernel wide = find_kernel(static_cast<Builtin>(operation), basic);
        if (plain == nullptr) continue;
        EXPECT_NE(plain, wide);
        for (MPI_Count count : counts)
          for (std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{24}}) {
            const std::size_t bytes = static_cast<std::size_t>(count) * 16, all = bytes + 2 * shift;
            std::vector<std::byte> first(bytes), second(bytes);
            fill(first, random, basic);
            fill(second, random, basic);
            std::vector<std::byte> in(all), expected(all), apart(all), within(all);
            std::memcpy(in.data() + shift, first.data(), bytes);
            std::memcpy(within.data() + shift, second.data(), bytes);
            std::memcpy(expected.data() + shift, second.data(), bytes);
            std::memcpy(apart.data() + shift, second.data(), bytes);
            plain(in.data() + shift, expected.data() + shift, expected.data() + shift, count);
            wide(in.data() + shift, within.data() + shift, within.data() + shift, count);
            wide(in.data() + shift, second.data(), apart.data() + shift, count);
            ASSERT_EQ(within, expected) << "operation " << operation << ", basic type "
                                        << static_cast<int>(basic) << ", " << count << " elements";
            ASSERT_EQ(apart, expected);
            ++compared;
          }
      }
  }
  use_instruction_set(best_instruction_set());
  if (best_instruction_set() != InstructionSet::baseline) EXPECT_GT(compared, 1000);
}

/// Pairs of few different values, which are often equal, and NaNs where there are any.
template <class Value, class Index>
void check_pairs(Basic value, Basic index, std::mt19937& random) {
  struct Pair {
    Value value;
    Index index;
  };
  const auto any_pair = [&random] {
    Pair pair;
    std::memset(&pair, static_cast<int>(random() % 256), sizeof pair); // the bytes between are not part of it
    pair.value = static_cast<Value>(static_cast<int>(random() % 4) - 2);
    if (std::is_floating_point_v<Value> && random() % 8 == 0)
      pair.value = std::numeric_limits<Value>::quiet_NaN();
    if (std::is_floating_point_v<Value> && random() % 8 == 0) pair.value = static_cast<Value>(-0.0);
    pair.index = static_cast<Index>(static_cast<int>(random() % 5) - 2);
    return pair;
  };
  const auto put = [](std::byte* at, const Pair& pair) {
    store(at, pair.value);
    store(at + offsetof(Pair, index), pair.index);
  };
  for (Builtin builtin : {Builtin::minimum_location, Builtin::maximum_location})
    for (MPI_Count count : counts)
      for (std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{24}}) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(Pair);
        std::vector<std::byte> first(shift + bytes), second(shift + bytes),
            out(shift + bytes, std::byte{0x5a}), expected = out;
        for (std::size_t at = shift; at < shift + bytes; at += sizeof(Pair)) {
          const Pair x = any_pair(), y = any_pair();
          std::memcpy(first.data() + at, &x, sizeof x);
          std::memcpy(second.data() + at, &y, sizeof y);
          const bool wins = builtin == Builtin::minimum_location ? x.value < y.value : y.value < x.value,
                     loses = builtin == Builtin::minimum_location ? y.value < x.value : x.value < y.value;
          Pair result = wins ? x : y;
          if (!wins && !loses) result.index = std::min(x.index, y.index);
          put(expected.data() + at, result);
        }
        const Kernel kernel = pair_kernel(builtin, {value, index, offsetof(Pair, index)});
        kernel(first.data() + shift, second.data() + shift, out.data() + shift, count);
        ASSERT_EQ(out, expected) << "value type " << static_cast<int>(value) << ", " << count << " pairs";
        std::vector<std::byte> within = second;
        for (std::size_t at = shift; at < shift + bytes; at += sizeof(Pair)) {
          Pair result;
          std::memcpy(&result, expected.data() + at, sizeof result);
          put(second.data() + at, result);
        }
        kernel(first.data() + shift, within.data() + shift, within.data() + shift, count);
        ASSERT_EQ(within, second);
      }
}

TEST(InstructionSets, locations_are_those_of_the_standard) {
  std::mt19937 random(21);
  for (InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    use_instruction_set(set);
    check_pairs<float, int>(Basic::float32, Basic::int32, random);
    check_pairs<double, int>(Basic::float64, Basic::int32, random);
    check_pairs<std::int64_t, int>(Basic::int64, Basic::int32, random);
    check_pairs<int, int>(Basic::int32, Basic::int32, random);
    check_pairs<std::int16_t, int>(Basic::int16, Basic::int32, random);
    check_pairs<long double, int>(Basic::float80, Basic::int32, random);
    check_pairs<float, float>(Basic::float32, Basic::float32, random);
    check_pairs<double, double>(Basic::float64, Basic::float64, random);
  }
  use_instruction_set(best_instruction_set());
}

} // namespace
} // namespace near::datatype
