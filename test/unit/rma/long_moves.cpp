// When long puts and gets go past the cache.
#include "rma/long_moves.h"

#include <gtest/gtest.h>

namespace near::rma {
namespace {

using copy::Store;

constexpr std::uint64_t mib = 1 << 20;

/// Moves MiB to different addresses. Returns how many went past the cache.
int past(LongMoves& moves, int count, std::uintptr_t first = 1) {
  int past = 0;
  for (int i = 0; i < count; ++i)
    past += moves.stores(reinterpret_cast<const void*>((first + static_cast<std::uintptr_t>(i)) << 32),
                         mib) == Store::streaming;
  return past;
}

TEST(long_moves, go_past_the_cache_once_they_fill_half_of_it) {
  LongMoves moves(32 * mib);
  EXPECT_EQ(past(moves, 15), 0);
  EXPECT_EQ(past(moves, 5, 100), 5);
}

TEST(long_moves, of_a_program_that_repeats_them_all_go_past_the_cache) {
  LongMoves moves(32 * mib);
  EXPECT_EQ(past(moves, 64), 49);
  moves.synchronized();
  EXPECT_EQ(past(moves, 64), 64);
  moves.synchronized();
  moves.synchronized();
  EXPECT_EQ(past(moves, 1), 1) << "nothing was moved in the meantime";
  moves.synchronized();
  EXPECT_EQ(past(moves, 1), 0) << "little was";
}

TEST(long_moves, between_synchronisations_count_alone) {
  LongMoves moves(32 * mib);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(past(moves, 8), 0);
    moves.synchronized();
  }
}

TEST(long_moves, to_one_address_count_once) {
  LongMoves moves(32 * mib);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(past(moves, 1), 0);
  EXPECT_EQ(moves.stores(reinterpret_cast<const void*>(std::uintptr_t{1} << 32), 20 * mib), Store::streaming);
}

} // namespace
} // namespace near::rma
