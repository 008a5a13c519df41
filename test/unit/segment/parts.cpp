// What mpiexec publishes of the parts of a job.
#include "segment/parts.h"

#include "os/memory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

namespace near::segment {
namespace {

TEST(Parts, are_found_as_they_were_published) {
  const std::vector<JobPart> parts = {
      {"a", 17, 4, {"/opt/bin/near"}},
      {"b.cluster", 100000, 2, {"ssh", "-o", "BatchMode=yes", "b.cluster", "exec '/opt/my tools/near'", ""}}};
  int descriptor = -1;
  ASSERT_TRUE(publish_parts(parts, descriptor).ok()) << base::failure_text();
  const auto found = parts_of(getpid());
  os::close_descriptor(descriptor);
  ASSERT_EQ(found.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(found[i].machine, parts[i].machine);
    EXPECT_EQ(found[i].launcher, parts[i].launcher);
    EXPECT_EQ(found[i].ranks, parts[i].ranks);
    EXPECT_EQ(found[i].reach, parts[i].reach);
  }
}

TEST(Parts, are_none_where_nothing_is_published) {
  EXPECT_TRUE(parts_of(getpid()).empty());
  EXPECT_TRUE(parts_of(1 << 30).empty());
}

TEST(Parts, that_make_no_sense_are_none) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text :
       {"a"sv, "a\0x\0001\0001\0near\0"sv, "a\0001\0001\0000\0"sv, "a\0001\0001\0002\0near\0"sv,
        "a\0001\0001\00099999999999999999999\0near\0"sv}) {
    int descriptor = -1;
    ASSERT_TRUE(os::make_shared_file("nearmpi-parts", text.size(), descriptor).ok());
    ASSERT_EQ(pwrite(descriptor, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(parts_of(getpid()).empty()) << text;
    os::close_descriptor(descriptor);
  }
}

} // namespace
} // namespace near::segment
