// Overwritten segments are refused with an error message or read without harm.
#include "base/result.h"
#include "crafted.h"

#include <gtest/gtest.h>

#include <random>

namespace near::segment {
namespace {

TEST(Attach, takes_a_right_segment) {
  Crafted crafted;
  ASSERT_TRUE(crafted.made());
  Segment seen;
  ASSERT_TRUE(seen.attach(crafted.descriptor(), false).ok()) << base::failure_text();
  EXPECT_EQ(seen.rows(), Crafted::processes);
  EXPECT_EQ(seen.job_size(), Crafted::processes);
  EXPECT_EQ(seen.region(1), crafted.header().stride * 2);
  EXPECT_NE(crafted.read().find(" 103 running"), std::string::npos) << crafted.read();
}

TEST(Attach, refuses_what_does_not_fit_together) {
  Crafted crafted;
  ASSERT_TRUE(crafted.made());
  auto& head = crafted.header();
  auto refused = [&](const char* what, const char* named) {
    Segment seen;
    EXPECT_FALSE(seen.attach(crafted.descriptor(), false).ok()) << what;
    EXPECT_FALSE(seen.mapped()) << what;
    EXPECT_NE(std::string(base::failure_text()).find(named), std::string::npos) << base::failure_text();
    crafted.repair();
  };
  head.job_size = 0xffffffff, refused("a huge job", "4294967295 processes");
  head.job_size = Crafted::processes + 1, refused("more processes than rows", "5 processes in 4 rows");
  head.job_size = 0, refused("no processes", "0 processes");
  head.rows = 0, refused("no rows", "0 rows");
  head.rows = 0xffffffff, refused("rows whose number overflows", "rows");
  head.rows = 3, refused("rows that are not a power of two", "3 rows");
  head.stride = 0, refused("no stride", "regions of 0 bytes");
  head.stride = 1ull << 63, refused("a stride that overflows", "regions of");
  head.stride = ~0ull / 5 + 1, refused("a product that overflows", "regions of");
  head.stride *= 2, refused("a stride beyond the file", "regions of");
  head.far_stride = 1ull << 62, refused("arenas beyond the file", "regions of");
  head.far_stride = 0, refused("no arenas behind the regions", "regions of");
  head.launcher = 0, refused("no launcher", "process 0");
  head.launcher = 0x80000001, refused("a negative launcher", "launcher");
  head.huge_page_bytes = 4095, refused("odd huge pages", "huge pages of 4095");
  head.huge_page_bytes = 1ull << 62, refused("huge pages beyond a region", "huge pages");
  head.version = 0xffff, refused("another version", "version 65535");
  head.magic = 1, refused("another file", "not a NearMPI segment");
  EXPECT_NE(crafted.read(), "") << "it has been repaired";
}

TEST(Attach, goes_by_what_it_checked) {
  Crafted crafted;
  ASSERT_TRUE(crafted.made());
  Segment seen;
  ASSERT_TRUE(seen.attach(crafted.descriptor(), false).ok());
  const std::string before = job_table(seen, crafted.descriptor(), {}, 1);
  crafted.header().job_size = 0xffffffff;
  crafted.header().stride = 1ull << 62;
  crafted.header().rows = 0xffffffff;
  EXPECT_EQ(job_table(seen, crafted.descriptor(), {}, 1), before);
  EXPECT_EQ(seen.far_region(Crafted::processes), seen.bytes());
}

TEST(Attach, a_name_is_text_and_ends) {
  Crafted crafted;
  ASSERT_TRUE(crafted.made());
  std::memset(crafted.header().job, '\x1b', sizeof crafted.header().job);
  Segment seen;
  ASSERT_TRUE(seen.attach(crafted.descriptor(), false).ok());
  EXPECT_EQ(seen.name().size(), sizeof crafted.header().job * 4);
  EXPECT_EQ(seen.name().substr(0, 8), "\\033\\033");
}

TEST(Attach, ten_thousand_overwritten_segments_do_no_harm) {
  Crafted crafted;
  ASSERT_TRUE(crafted.made());
  std::mt19937_64 random(11);
  unsigned read = 0;
  for (int round = 0; round < 10000; ++round) {
    for (std::uint64_t words = 1 + random() % 8; words > 0; --words) {
      // Mostly words of the header, otherwise any word.
      std::size_t where = (random() % 2 == 0 ? random() % 256 : random() % Crafted::area) & ~3ull;
      std::uint64_t value = random() % 4 == 0 ? random() % 16 : random() >> random() % 64;
      crafted.overwrite(where, &value, random() % 2 == 0 ? 4 : 8);
    }
    auto text = crafted.read();
    read += !text.empty();
    ASSERT_FALSE(has_commands(text)) << round;
    crafted.repair();
  }
  EXPECT_GT(read, 1000u) << "most were refused, so this has shown little";
}

} // namespace
} // namespace near::segment
