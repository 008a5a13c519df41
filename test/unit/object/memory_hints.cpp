// Memory keys of info objects: values, misspellings, and keys of other libraries.
#include "object/memory_hints.h"

#include <gtest/gtest.h>

namespace {

using namespace near;

object::MemoryHints hints_of(std::initializer_list<std::pair<const char*, const char*>> entries) {
  object::Info* info = object::make_info();
  for (auto [key, value] : entries) info->set(key, value);
  object::MemoryHints hints;
  EXPECT_TRUE(object::read_memory_hints(info, hints).ok());
  object::release(info);
  return hints;
}

/// The only remark about this entry.
std::string remark_of(const char* key, const char* value) {
  auto hints = hints_of({{key, value}});
  EXPECT_EQ(hints.remarks.size(), 1u) << key;
  return hints.remarks.empty() ? "" : hints.remarks[0];
}

TEST(MemoryHints, values_are_read) {
  auto hints = hints_of({{"mpi_minimum_memory_alignment", "4096"},
                         {"near_memory_node", "3"},
                         {"near_memory_tier", "cxl"},
                         {"near_page_size", "2m"},
                         {"mpi_memory_alloc_kinds", "system,mpi:alloc_mem"}});
  EXPECT_TRUE(hints.remarks.empty());
  EXPECT_EQ(hints.alignment, 4096u);
  EXPECT_EQ(hints.node, 3);
  EXPECT_EQ(hints.tier, segment::Tier::slow);
  EXPECT_EQ(hints.page_bytes, 2u << 20);
}

TEST(MemoryHints, without_hints_the_defaults_apply) {
  object::MemoryHints hints;
  ASSERT_TRUE(object::read_memory_hints(nullptr, hints).ok());
  EXPECT_EQ(hints.alignment, 64u);
  EXPECT_EQ(hints.node, -1);
  EXPECT_EQ(hints.tier, segment::Tier::count);
  EXPECT_EQ(hints.page_bytes, 0u);
  EXPECT_EQ(hints_of({{"mpi_minimum_memory_alignment", "8"}}).alignment, 64u) << "a cache line at least";
}

TEST(MemoryHints, keys_of_others_are_ignored_without_a_remark) {
  auto hints =
      hints_of({{"no_locks", "true"}, {"same_disp_unit", "true"}, {"ompi_something", "1"}, {"x", "y"}});
  EXPECT_TRUE(hints.remarks.empty());
}

TEST(MemoryHints, misspellings_are_reported_with_the_nearest_word) {
  EXPECT_EQ(remark_of("near_memory_teir", "cxl"),
            "info key near_memory_teir means nothing here; did you mean near_memory_tier?");
  EXPECT_EQ(remark_of("mpi_minimum_memory_alignement", "64"),
            "info key mpi_minimum_memory_alignement means nothing here; did you mean "
            "mpi_minimum_memory_alignment?");
  EXPECT_EQ(remark_of("near_memory_tier", "hmb"),
            "near_memory_tier=hmb: expected dram, hbm or cxl; did you mean hbm?");
  EXPECT_EQ(remark_of("near_memory_node", "-1"), "near_memory_node=-1: expected the number of a NUMA node");
  EXPECT_EQ(remark_of("near_memory_node", "1x"), "near_memory_node=1x: expected the number of a NUMA node");
  EXPECT_EQ(remark_of("near_page_size", "huge"), "near_page_size=huge: expected bytes, such as 4k or 2m");
  EXPECT_EQ(remark_of("mpi_memory_alloc_kinds", "mpi,cuda:device"),
            "mpi_memory_alloc_kinds: there is no memory of kind cuda:device, only mpi and system");
}

TEST(MemoryHints, values_that_cannot_be_parsed_are_not_used) {
  for (const char* value : {"2mb", "4096b", "99999999999999g", "", "-1"})
    EXPECT_EQ(hints_of({{"near_page_size", value}}).page_bytes, 0u) << value;
  EXPECT_TRUE(hints_of({{"mpi_memory_alloc_kinds", ""}, {"mpi_assert_memory_alloc_kinds", "system"}})
                  .remarks.empty());
  EXPECT_TRUE(object::are_memory_kinds(""));
  EXPECT_FALSE(object::are_memory_kinds("mpi,,system"));
}

TEST(MemoryHints, a_wrong_alignment_is_an_error) {
  for (const char* value : {"3", "0", "-8", "64k", ""}) {
    object::Info* info = object::make_info();
    info->set("mpi_minimum_memory_alignment", value);
    object::MemoryHints hints;
    EXPECT_FALSE(object::read_memory_hints(info, hints).ok()) << value;
    object::release(info);
  }
}

} // namespace
