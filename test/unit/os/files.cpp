// Whole files as text, and the parts of one.
#include "os/files.h"

#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace near::os {
namespace {

using Parts = std::vector<std::string_view>;

/// A file with these contents, which is removed at the end.
class Contents {
public:
  explicit Contents(std::string_view text) {
    const int descriptor = mkstemp(name_);
    EXPECT_EQ(write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(descriptor);
  }
  ~Contents() { unlink(name_); }
  std::string path() const { return name_; }

private:
  char name_[32] = "/tmp/near-files-XXXXXX";
};

TEST(Files, are_read_whole_whatever_their_length) {
  for (std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 3'000'000u}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; i += 7) text[i] = static_cast<char>('a' + i % 26);
    const Contents file(text);
    EXPECT_EQ(read_file(file.path()), text) << size;
  }
}

TEST(Files, are_read_as_far_as_asked_for) {
  const Contents file(std::string(10'000, 'x'));
  std::string text;
  for (std::size_t most : {0u, 1u, 4096u, 5000u, 10'000u, 20'000u}) {
    EXPECT_EQ(read_file(file.path(), text, most), 0);
    EXPECT_EQ(text.size(), std::min<std::size_t>(most, 10'000));
  }
}

TEST(Files, that_cannot_be_read_are_empty_and_say_why) {
  std::string text = "before";
  EXPECT_EQ(read_file("/nowhere/at/all", text), ENOENT);
  EXPECT_EQ(text, "");
  EXPECT_EQ(read_file("/", text), EISDIR);
  EXPECT_EQ(text, "");
  EXPECT_EQ(read_file("/nowhere/at/all"), "");
}

TEST(Files, of_the_kernel_whose_length_is_not_known_are_read_whole) {
  EXPECT_TRUE(read_file("/proc/self/status").starts_with("Name:"));
}

TEST(Folders, have_entries_or_have_none) {
  char name[] = "/tmp/near-folder-XXXXXX";
  const std::string folder = mkdtemp(name);
  EXPECT_FALSE(has_entries(folder));
  EXPECT_FALSE(has_entries(folder + "/missing"));
  const int descriptor = creat((folder + "/.hidden").c_str(), 0600);
  close(descriptor);
  EXPECT_TRUE(has_entries(folder));
  EXPECT_FALSE(has_entries(folder + "/.hidden"));
  unlink((folder + "/.hidden").c_str());
  rmdir(name);
}

TEST(Text, is_split_at_separators) {
  EXPECT_EQ(split("", ','), Parts{});
  EXPECT_EQ(split("a", ','), Parts{"a"});
  EXPECT_EQ(split("a,,b", ','), (Parts{"a", "", "b"}));
  EXPECT_EQ(split(",a,", ','), (Parts{"", "a"}));
  EXPECT_EQ(split(std::string_view("one\0two\0", 8), '\0'), (Parts{"one", "two"}));
}

TEST(Text, consists_of_words) {
  EXPECT_EQ(words_of(""), Parts{});
  EXPECT_EQ(words_of(" \n\t"), Parts{});
  EXPECT_EQ(words_of("one"), Parts{"one"});
  EXPECT_EQ(words_of("  one \t two\n"), (Parts{"one", "two"}));
}

TEST(Text, begins_with_a_number_or_does_not) {
  std::uint64_t whole = 7;
  EXPECT_TRUE(read_number(" 32768K\n", whole));
  EXPECT_EQ(whole, 32768u);
  int negative = 0;
  EXPECT_TRUE(read_number("-1 100000", negative));
  EXPECT_EQ(negative, -1);
  for (const char* text : {"", " ", "max 100000", "K5", "99999999999999999999999"})
    EXPECT_FALSE(read_number(text, whole)) << text;
  EXPECT_EQ(whole, 32768u);
}

} // namespace
} // namespace near::os
