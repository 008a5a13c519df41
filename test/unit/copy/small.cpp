// Short copies: every length at every misalignment, next to inaccessible pages.
#include "copy/small.h"
#include "guarded.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>

using namespace near;

namespace {

TEST(Small, copies_every_length_and_touches_nothing_beside) {
  for (std::size_t bytes = 0; bytes <= 130; ++bytes)
    for (std::size_t shift = 0; shift < 16; ++shift) {
      std::byte from[160], to[160];
      for (std::size_t i = 0; i < sizeof from; ++i) {
        from[i] = static_cast<std::byte>(i * 7 + bytes);
        to[i] = std::byte{0xa5};
      }
      copy::small(to + shift, from + 15 - shift, bytes);
      EXPECT_EQ(std::memcmp(to + shift, from + 15 - shift, bytes), 0) << bytes << " bytes at " << shift;
      for (std::size_t i = 0; i < sizeof to; ++i)
        if (i < shift || i >= shift + bytes) {
          ASSERT_EQ(to[i], std::byte{0xa5}) << bytes << " bytes at " << shift << ": touched " << i;
        }
    }
}

TEST(Small, reads_and_writes_nothing_beside_pages_that_may_not_be_touched) {
  Guarded from(1), to(1);
  std::memset(from.begin(), 0x5a, from.size());
  for (std::size_t bytes = 0; bytes <= 130; ++bytes)
    for (bool at_the_end : {false, true}) {
      std::byte* out = at_the_end ? to.end() - bytes : to.begin();
      copy::small(out, at_the_end ? from.end() - bytes : from.begin(), bytes);
      EXPECT_EQ(std::memcmp(out, from.begin(), bytes), 0);
    }
}

} // namespace
