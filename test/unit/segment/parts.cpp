// What mpiexec publishes of the parts of a job.
#include "segment/parts.h"

#include "os/memory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

namespace near::segment {
namespace {

TEST(Parts, are_found_as_they_were_published) {
  const std::vector<JobPart> parts = {
      {"a", "here", 17, 4, {"/opt/bin/near"}, false},
      {"b.cluster",
       "there",
       100000,
       2,
       {"ssh", "-o", "BatchMode=yes", "b.cluster", "exec '/opt/my tools/near'", ""},
       true}};
  int descriptor = -1;
  ASSERT_TRUE(publish_parts(parts, descriptor).ok()) << base::failure_text();
  const auto found = parts_of(getpid());
  os::close_descriptor(descriptor);
  ASSERT_EQ(found.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(found[i].machine, parts[i].machine);
    EXPECT_EQ(found[i].space, parts[i].space);
    EXPECT_EQ(found[i].launcher, parts[i].launcher);
    EXPECT_EQ(found[i].ranks, parts[i].ranks);
    EXPECT_EQ(found[i].reach, parts[i].reach);
    EXPECT_EQ(found[i].by_shell, parts[i].by_shell);
  }
}

TEST(Parts, are_none_where_nothing_is_published) {
  EXPECT_TRUE(parts_of(getpid()).empty());
  EXPECT_TRUE(parts_of(1 << 30).empty());
}

/// A file with this text, sealed or not; what is found in it.
std::vector<JobPart> found_in(std::string_view text, bool sealed) {
  int descriptor = -1;
  EXPECT_TRUE(os::make_shared_file("nearmpi-parts", text.size(), descriptor).ok());
  EXPECT_EQ(pwrite(descriptor, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  if (sealed) EXPECT_TRUE(os::seal_length(descriptor).ok());
  const auto found = parts_of(getpid());
  os::close_descriptor(descriptor);
  return found;
}

TEST(Parts, that_make_no_sense_are_none) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(found_in("a\0s\0001\0001\0000\0001\0near\0"sv, true).size(), 1u);
  for (const std::string_view text :
       {"a"sv, "a\0s\0x\0001\0000\0001\0near\0"sv, "a\0s\0001\0001\0000\0000\0"sv,
        "a\0s\0001\0001\0000\0002\0near\0"sv, "a\0s\0001\0001\0000\00099999999999999999999\0near\0"sv})
    EXPECT_TRUE(found_in(text, true).empty()) << text;
}

TEST(Parts, are_not_read_before_they_are_sealed) {
  using std::string_view_literals::operator""sv;
  EXPECT_TRUE(found_in("a\0s\0001\0001\0000\0001\0near\0"sv, false).empty());
}

/// Root can read what others publish, and would execute their words.
TEST(Parts, of_other_users_are_none) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  int descriptor = -1;
  ASSERT_EQ(setfsuid(65534), 0);
  const Result made = publish_parts({{"a", "here", 17, 4, {"/tmp/near"}, false}}, descriptor);
  setfsuid(0);
  ASSERT_TRUE(made.ok()) << base::failure_text();
  EXPECT_TRUE(parts_of(getpid()).empty());
  os::close_descriptor(descriptor);
}

} // namespace
} // namespace near::segment
