// numa_maps and smaps as kernels write them, including awkward cases.
#include "place/maps.h"

#include <gtest/gtest.h>

using namespace near;
using base::Code;
using place::BytesOn;
using place::NumaLine;
using place::SmapsEntry;

namespace {

NumaLine numa_line(std::string_view text) {
  std::vector<NumaLine> lines;
  EXPECT_TRUE(place::parse_numa_maps(text, lines).ok()) << base::failure_text();
  EXPECT_EQ(lines.size(), 1u) << text;
  return lines.empty() ? NumaLine{} : lines[0];
}

TEST(numa_maps, counts_become_bytes_by_node) {
  auto line =
      numa_line("7f52c0000000 local file=/usr/lib/libm.so.6 anon=2 dirty=2 mapped=7 mapmax=3 swapcache=1 "
                "active=0 N0=4 N3=5 kernelpagesize_kB=4\n");
  EXPECT_EQ(line.begin, 0x7f52c0000000u);
  EXPECT_EQ(line.policy, "local");
  EXPECT_EQ(line.file, "/usr/lib/libm.so.6");
  EXPECT_EQ(line.anonymous, 2u);
  EXPECT_EQ(line.mapped, 7u);
  EXPECT_EQ(line.most_mappers, 3u);
  EXPECT_EQ(line.swap_cache, 1u);
  EXPECT_EQ(line.bytes_on(), (BytesOn{{0, 4 * 4096}, {3, 5 * 4096}}));
}

TEST(numa_maps, a_huge_page_is_one_page_of_its_size) {
  auto line = numa_line("7f0000000000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=3 dirty=3 N1=3 "
                        "kernelpagesize_kB=2048");
  EXPECT_TRUE(line.huge);
  EXPECT_EQ(line.file, "/anon_hugepage (deleted)");
  EXPECT_EQ(line.bytes_on(), (BytesOn{{1, 3u << 21}}));
}

TEST(numa_maps, a_mapping_without_pages_has_no_page_size) {
  auto line = numa_line("7ffd0e5c6000 default");
  EXPECT_TRUE(line.pages_on.empty());
  EXPECT_EQ(line.page_bytes, 0u);
}

TEST(numa_maps, file_names_may_look_like_the_lines_own_words) {
  // The kernel escapes blank, tab, newline and '='.
  auto line = numa_line("1000 default file=/a\\040heap\\011N0\\0751\\012b anon=1 N2=1 kernelpagesize_kB=4");
  EXPECT_EQ(line.file, "/a heap\tN0=1\nb");
  EXPECT_FALSE(line.heap);
  EXPECT_EQ(line.bytes_on(), (BytesOn{{2, 4096}}));
}

TEST(smaps, a_backslash_in_a_name_stays_one) {
  std::vector<SmapsEntry> entries;
  ASSERT_TRUE(place::parse_smaps("1000-2000 rw-p 0 00:00 7  /a\\101b\\012c\n", entries).ok());
  EXPECT_EQ(entries.at(0).name, "/a\\101b\nc");
}

TEST(numa_maps, policies_of_two_words_and_with_flags) {
  const std::pair<const char*, std::vector<int>> policies[] = {
      {"default", {}},
      {"local", {}},
      {"bind:0-1", {0, 1}},
      {"prefer:3", {3}},
      {"prefer (many):0,2-3", {0, 2, 3}},
      {"interleave:0-3", {0, 1, 2, 3}},
      {"weighted interleave:1-2", {1, 2}},
      {"bind=static:1", {1}},
      {"interleave=relative:0-1", {0, 1}},
      {"prefer (many)=static:0", {0}},
  };
  for (const auto& [policy, nodes] : policies) {
    auto line = numa_line(std::string("7f00 ") + policy + " heap anon=1 N1=1 kernelpagesize_kB=4");
    EXPECT_EQ(line.policy, policy);
    EXPECT_TRUE(line.heap) << policy;
    EXPECT_EQ(line.bytes_on(), (BytesOn{{1, 4096}})) << policy;
    EXPECT_EQ(place::nodes_of_policy(line.policy), nodes) << policy;
  }
}

TEST(numa_maps, words_of_newer_kernels_are_ignored) {
  auto line = numa_line("7f00 default sparkle glitter=many Nodes=7 anon=1 N0=1 kernelpagesize_kB=64");
  EXPECT_EQ(line.bytes_on(), (BytesOn{{0, 64 << 10}}));
}

TEST(numa_maps, a_line_that_cannot_be_parsed_is_quoted) {
  std::vector<NumaLine> lines{NumaLine{}};
  for (const char* text :
       {"7f00 default\nxyz default\n", "7f00 default\n7f01\n", "7f00 default\n\n",
        "7f00 default\n7f01 default N0=x kernelpagesize_kB=4", "7f00 default\n7f01 default N0=1",
        "7f00 default\n7f01 default N0=1 kernelpagesize_kB=0",
        "7f00 default\n7f01 default N0=99999999999999999999 kernelpagesize_kB=4"}) {
    EXPECT_TRUE(place::parse_numa_maps(text, lines).is(Code::invalid)) << text;
    EXPECT_NE(base::failure_text().find("line 2 of numa_maps"), std::string_view::npos)
        << base::failure_text();
    EXPECT_EQ(lines.size(), 1u) << "changed by a failure";
  }
  EXPECT_TRUE(place::parse_numa_maps("", lines).ok());
  EXPECT_TRUE(lines.empty());
}

constexpr const char* two_mappings =
    "5615ee2d5000-5615ee2d6000 r--p 00000000 fe:00 18500                      /opt/my program (deleted)\n"
    "Size:                  4 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n"
    "Rss:                   4 kB\nPss:                   2 kB\nAnonymous:             0 kB\n"
    "AnonHugePages:         0 kB\nSwap:                  0 kB\nTHPeligible:           0\nProtectionKey:      "
    "   0\n"
    "VmFlags: rd mr mw me \n"
    "7ffff7000000-7ffff7800000 rw-s 00200000 00:01 2048 \n"
    "Size:               8192 kB\nKernelPageSize:     2048 kB\nRss:                6144 kB\n"
    "Anonymous:             8 kB\nAnonHugePages:      2048 kB\nShmemPmdMapped:     4096 kB\nFilePmdMapped:   "
    "      0 kB\n"
    "Swap:                 12 kB\nSwapPss:               3 kB\n";

TEST(smaps, mappings_with_their_values) {
  std::vector<SmapsEntry> entries;
  ASSERT_TRUE(place::parse_smaps(two_mappings, entries).ok()) << base::failure_text();
  ASSERT_EQ(entries.size(), 2u);
  const auto &program = entries[0], &shared = entries[1];
  EXPECT_EQ(program.begin, 0x5615ee2d5000u);
  EXPECT_EQ(program.end, 0x5615ee2d6000u);
  EXPECT_EQ(program.permissions, "r--p");
  EXPECT_EQ(program.device, "fe:00");
  EXPECT_EQ(program.inode, 18500u);
  EXPECT_EQ(program.name, "/opt/my program (deleted)");
  EXPECT_EQ(program.resident, 4096u);
  EXPECT_EQ(program.flags, "rd mr mw me");
  EXPECT_FALSE(program.shared());
  EXPECT_TRUE(shared.shared());
  EXPECT_EQ(shared.offset, 0x200000u);
  EXPECT_EQ(shared.name, "");
  EXPECT_EQ(shared.page_bytes, 2u << 20);
  EXPECT_EQ(shared.anonymous, 8u << 10);
  EXPECT_EQ(shared.huge, 6u << 20);
  EXPECT_EQ(shared.swapped, 12u << 10);
  EXPECT_EQ(shared.flags, "");
}

TEST(smaps, names_may_look_like_values) {
  std::vector<SmapsEntry> entries;
  ASSERT_TRUE(place::parse_smaps("1000-2000 rw-p 00000000 00:00 0    Rss:   99 kB\n"
                                 "Rss:                   4 kB\n"
                                 "2000-3000 rw-p 00000000 00:00 0    /with\\012newline: 7 kB\n"
                                 "Rss:                   8 kB\n",
                                 entries)
                  .ok())
      << base::failure_text();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "Rss:   99 kB");
  EXPECT_EQ(entries[0].resident, 4096u);
  EXPECT_EQ(entries[1].name, "/with\nnewline: 7 kB");
}

TEST(smaps, addresses_may_be_of_any_length) {
  std::vector<SmapsEntry> entries;
  ASSERT_TRUE(place::parse_smaps("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]\n"
                                 "Rss:                   0 kB\n",
                                 entries)
                  .ok());
  EXPECT_EQ(entries[0].end, 0xffffffffff601000u);
  EXPECT_EQ(entries[0].name, "[vsyscall]");
}

TEST(smaps, a_line_that_cannot_be_parsed_is_quoted) {
  std::vector<SmapsEntry> entries;
  for (const char* text : {"Rss: 4 kB\n", "1000-1000 rw-p 0 00:00 0\n", "1000-2000 rw 0 00:00 0\n", "hello\n",
                           "1000 rw-p 0 00:00 0\n", "\n"}) {
    EXPECT_TRUE(place::parse_smaps(text, entries).is(Code::invalid)) << text;
    EXPECT_NE(base::failure_text().find("line 1 of smaps"), std::string_view::npos) << base::failure_text();
  }
  for (const char* value : {"Rss: many kB\n", "Rss: 4 MB\n", "Swap:\n"}) {
    EXPECT_TRUE(
        place::parse_smaps(std::string("1000-2000 rw-p 0 00:00 0\n") + value, entries).is(Code::invalid));
    EXPECT_NE(base::failure_text().find("line 2 of smaps"), std::string_view::npos) << value;
  }
}

} // namespace
