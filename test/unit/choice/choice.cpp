// The choice of algorithms: every collective has an algorithm, the choice depends on the facts of the call only, and the
// knob's words are checked.
#include "choice/choice.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace near::choice {
namespace {

TEST(choice, every_collective_has_an_algorithm_for_every_call) {
  ASSERT_TRUE(configure("auto").ok());
  for (int collective = 0; collective < collective_count; ++collective)
    for (int size : {1, 2, 3, 4, 7, 8, 16, 100, 1000})
      for (MPI_Count bytes : {0ll, 1ll, 1000ll, 100000ll, 10000000000ll})
        for (bool commutative : {false, true})
          for (bool in_place : {false, true}) {
            Facts facts{static_cast<Collective>(collective), bytes, size, commutative, in_place};
            const Algorithm& row = choose(facts);
            EXPECT_EQ(row.collective, facts.collective);
            EXPECT_TRUE(row.admits(facts));
            EXPECT_EQ(&choose(facts), &row);
          }
}

/// The smallest power of two of bytes for which ranks, one on each machine, take this algorithm.
MPI_Count first_bytes_of(Collective collective, std::string_view algorithm, int size) {
  for (MPI_Count bytes = 1; bytes <= 1 << 30; bytes *= 2)
    if (choose({.collective = collective,
                .bytes = bytes,
                .size = size,
                .commutative = true,
                .machines = size,
                .most_on_machine = 1,
                .machines_equal = true,
                .machines_in_order = true})
            .name == algorithm)
      return bytes;
  return MPI_Count{1} << 31;
}

/// The same to the byte: choices below and above it differ.
MPI_Count bound_of(Collective collective, std::string_view algorithm, int size) {
  MPI_Count above = first_bytes_of(collective, algorithm, size), below = above / 2;
  auto takes = [&](MPI_Count bytes) {
    return choose({.collective = collective,
                   .bytes = bytes,
                   .size = size,
                   .machines = size,
                   .most_on_machine = 1,
                   .machines_equal = true,
                   .machines_in_order = true})
               .name == algorithm;
  };
  while (above - below > 1) (takes((above + below) / 2) ? above : below) = (above + below) / 2;
  return above;
}

TEST(choice, rings_of_more_ranks_begin_with_longer_data) {
  const std::pair<Collective, std::string_view> rings[] = {{Collective::broadcast, "scatter_allgather"},
                                                           {Collective::allreduce, "ring"}};
  for (const auto& [collective, ring] : rings) {
    for (int size = 17; size < 1000; ++size)
      EXPECT_LE(bound_of(collective, ring, size), bound_of(collective, ring, size + 1)) << size;
    for (int size = 32; size < 16384; size *= 2)
      EXPECT_LE(first_bytes_of(collective, ring, size), first_bytes_of(collective, ring, 2 * size)) << size;
    // A ring takes at least 1.5 us for each rank; a tree of 25 GB/s may take as long.
    for (int size : {1024, 16384})
      EXPECT_GE(first_bytes_of(collective, ring, size),
                size * 37'500ll / std::bit_width(static_cast<unsigned>(size)) / 2)
          << size;
  }
}

TEST(choice, two_levels_serve_longer_data_the_more_ranks_a_ring_would_have) {
  auto taken = [](MPI_Count bytes, int ranks) -> std::string_view {
    return choose({.collective = Collective::allreduce,
                   .bytes = bytes,
                   .size = ranks,
                   .commutative = true,
                   .elementwise = true,
                   .machines = ranks / 8,
                   .most_on_machine = 8,
                   .machines_equal = true,
                   .machines_in_order = true})
        .name;
  };
  EXPECT_EQ(taken(512 << 10, 32), "ring");
  EXPECT_EQ(taken(1 << 20, 512), "by_machine");
  EXPECT_EQ(taken(4 << 20, 512), "ring");
  EXPECT_EQ(taken(16 << 20, 8192), "by_machine");
}

/// Calls check(facts) for all collectives and kinds of calls, 1 to 32 ranks, and 0 bytes and powers of two to 16 MiB.
template <class Check>
void for_all_facts(Check&& check) {
  for (int collective = 0; collective < collective_count; ++collective)
    for (int size = 1; size <= 32; ++size)
      for (int flags = 0; flags < 1 << 7; ++flags)
        for (MPI_Count bytes = 0; bytes <= 16 << 20; bytes = bytes == 0 ? 1 : 2 * bytes)
          check(Facts{.collective = static_cast<Collective>(collective),
                      .bytes = bytes,
                      .size = size,
                      .commutative = (flags & 1) != 0,
                      .in_place = (flags & 2) != 0,
                      .recorded = (flags & 8) != 0,
                      .shared_processors = (flags & 4) != 0 ? 2 : 0,
                      .area = (flags & 16) != 0,
                      .reads_memory = (flags & 64) != 0,
                      .elementwise = (flags & 32) != 0});
}

std::string text_of(const Facts& facts) {
  return base::format("{} of {} bytes on {} ranks{}{}{}{}{}{}{}", name_of(facts.collective), facts.bytes,
                      facts.size, facts.commutative ? ", commutative" : "",
                      facts.in_place ? ", in place" : "",
                      facts.shared_processors != 0 ? ", sharing processors" : "",
                      facts.recorded ? ", recorded" : "", facts.area ? ", area" : "",
                      facts.reads_memory ? ", reading memory" : "", facts.elementwise ? ", elementwise" : "");
}

/// Counts calls for which a rule does not hold, and keeps the first one for the message.
struct Violations {
  std::string first;
  std::size_t count = 0;
  void note(bool holds, const Facts& facts) {
    if (!holds && count++ == 0) first = text_of(facts);
  }
};

/// A table whose last row does not always win would run into the rows of the next collective.
TEST(choice, is_an_admitted_row_of_the_collective_up_to_32_ranks_and_16_MiB) {
  ASSERT_TRUE(configure("auto").ok());
  Violations wrong;
  for_all_facts([&](const Facts& facts) {
    const Algorithm& row = choose(facts);
    wrong.note(row.collective == facts.collective && row.admits(facts) && row.wins(facts), facts);
  });
  EXPECT_EQ(wrong.count, 0u) << wrong.first;
}

TEST(choice, does_not_depend_on_earlier_choices) {
  ASSERT_TRUE(configure("auto").ok());
  std::vector<const Algorithm*> before;
  for_all_facts([&](const Facts& facts) { before.push_back(&choose(facts)); });
  ASSERT_TRUE(configure("allreduce=ring,alltoall=bruck").ok());
  for_all_facts([&](const Facts& facts) { (void)choose(facts); });
  ASSERT_TRUE(configure("auto").ok());
  std::size_t index = 0;
  Violations wrong;
  for_all_facts([&](const Facts& facts) { wrong.note(before[index++] == &choose(facts), facts); });
  EXPECT_EQ(wrong.count, 0u) << wrong.first;
}

/// Two algorithms have one crossing point.
TEST(choice, does_not_return_to_an_algorithm_that_smaller_sizes_have_left) {
  ASSERT_TRUE(configure("auto").ok());
  std::set<const Algorithm*> left;
  const Algorithm* present = nullptr;
  Violations wrong;
  for_all_facts([&](const Facts& facts) {
    if (facts.bytes == 0) left.clear(), present = nullptr;
    const Algorithm* row = &choose(facts);
    if (present != nullptr && row != present) left.insert(present);
    wrong.note(left.count(row) == 0, facts);
    present = row;
  });
  EXPECT_EQ(wrong.count, 0u) << wrong.first;
}

TEST(choice, every_algorithm_that_the_knob_names_is_taken_wherever_it_is_admitted) {
  for (const Algorithm& row : algorithms()) {
    ASSERT_TRUE(configure(std::string(name_of(row.collective)) + "=" + row.name).ok());
    Violations wrong;
    for_all_facts([&](const Facts& facts) {
      if (facts.collective != row.collective) return;
      const Algorithm& chosen = choose(facts);
      wrong.note((&chosen == &row) == row.admits(facts) && chosen.admits(facts), facts);
    });
    EXPECT_EQ(wrong.count, 0u) << name_of(row.collective) << "=" << row.name << ": " << wrong.first;
  }
  ASSERT_TRUE(configure("auto").ok());
}

TEST(choice, collectives_have_names_in_both_directions) {
  for (int index = 0; index < collective_count; ++index) {
    auto collective = static_cast<Collective>(index);
    EXPECT_EQ(collective_named(name_of(collective)), collective);
    ASSERT_FALSE(algorithms(collective).empty());
    for (const Algorithm& row : algorithms(collective)) EXPECT_EQ(row.collective, collective);
  }
  EXPECT_EQ(collective_named("bcast"), Collective::broadcast);
  EXPECT_FALSE(collective_named("alreduce"));
}

TEST(choice, names_are_unique_within_a_collective) {
  std::set<std::string> seen;
  for (const Algorithm& row : algorithms())
    EXPECT_TRUE(seen.insert(std::string(name_of(row.collective)) + "=" + row.name).second);
}

TEST(choice, the_knob_names_an_algorithm_where_its_limits_allow) {
  ASSERT_TRUE(configure("allreduce=ring,bcast=scatter_allgather").ok());
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, true, false}).name, "ring");
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, false, false}).name, "recursive_doubling");
  EXPECT_STREQ(choose({Collective::broadcast, 8, 2, true, false}).name, "scatter_allgather");
  ASSERT_TRUE(configure("auto").ok());
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, true, false}).name, "recursive_doubling");
}

TEST(choice, ranks_that_share_processors_meet_at_one_of_them) {
  Facts facts{.collective = Collective::barrier, .size = 8};
  EXPECT_STREQ(choose(facts).name, "dissemination");
  facts.shared_processors = 2;
  EXPECT_STREQ(choose(facts).name, "linear");
  EXPECT_STREQ(
      choose({.collective = Collective::allreduce, .bytes = 8, .size = 8, .shared_processors = 2}).name,
      "linear");
  facts.size = 1000;
  EXPECT_STREQ(choose(facts).name, "dissemination");
}

TEST(choice, a_root_reduces_alone_where_few_processors_are_shared) {
  Facts facts{.collective = Collective::reduce, .bytes = 32 << 10, .size = 16, .area = true};
  EXPECT_STREQ(choose(facts).name, "shared_grid");
  for (auto [processors, longest] : {std::pair{2, 1 << 20}, {3, 32 << 10}, {9, 8 << 10}}) {
    facts.shared_processors = processors;
    facts.bytes = longest;
    EXPECT_STREQ(choose(facts).name, "shared_flat") << processors;
    facts.bytes = 2 * longest;
    EXPECT_STREQ(choose(facts).name, "shared_shares") << processors;
  }
}

/// Where ranks share processors (doc/adr/0024).
TEST(choice, long_recorded_exchanges_of_many_ranks_are_messages) {
  auto chosen = [](MPI_Count bytes, int size, bool recorded, int shared_processors = 2) {
    return std::string(choose({.collective = Collective::alltoall,
                               .bytes = bytes,
                               .size = size,
                               .recorded = recorded,
                               .shared_processors = shared_processors,
                               .area = true})
                           .name);
  };
  EXPECT_EQ(chosen((128 << 10) - 1, 8, true), "shared");
  EXPECT_EQ(chosen(128 << 10, 8, true), "messages");
  EXPECT_EQ(chosen(128 << 10, 8, false), "shared") << "calls that are executed at once take longer turns";
  EXPECT_EQ(chosen((1 << 20) / 5, 5, true), "messages");
  EXPECT_EQ(chosen(1 << 20, 4, true), "shared");
  EXPECT_EQ(chosen((16 << 10) - 1, 4, true, 0), "shared");
  EXPECT_EQ(chosen(16 << 10, 4, true, 0), "messages")
      << "with a processor for each rank, whether it is recorded or not";
}

/// Where every rank has its processor (doc/adr/0033).
TEST(choice, many_ranks_exchange_data_in_two_steps_along_a_grid) {
  auto chosen = [](Collective collective, MPI_Count bytes, int size, bool recorded = false) {
    return std::string(
        choose({.collective = collective, .bytes = bytes, .size = size, .recorded = recorded, .area = true})
            .name);
  };
  using enum Collective;
  EXPECT_EQ(chosen(barrier, 0, 18), "shared");
  EXPECT_EQ(chosen(barrier, 0, 19), "shared_grid");
  EXPECT_EQ(chosen(barrier, 0, 19, true), "shared");

  EXPECT_EQ(chosen(allreduce, 9 << 10, 3), "shared_flat");
  EXPECT_EQ(chosen(allreduce, (9 << 10) + 1, 3), "shared_shares");
  EXPECT_EQ(chosen(allreduce, 1024, 5), "shared_flat");
  EXPECT_EQ(chosen(allreduce, 511, 8), "shared_flat") << "two steps cost more than they save";
  EXPECT_EQ(chosen(allreduce, 512, 8), "shared_grid");
  EXPECT_EQ(chosen(allreduce, 4, 12), "shared_grid");
  EXPECT_EQ(chosen(allreduce, 1024, 16), "shared_grid");
  EXPECT_EQ(chosen(allreduce, 1025, 16), "shared_shares");
  EXPECT_EQ(chosen(allreduce, 1024, 16, true), "shared_flat");

  EXPECT_EQ(chosen(reduce, 64 << 20, 3), "shared_flat");
  EXPECT_EQ(chosen(reduce, 64 << 20, 4), "shared_grid");
  EXPECT_EQ(chosen(reduce, 2047, 4), "shared_flat");
  EXPECT_EQ(chosen(reduce, 1023, 16), "shared_flat");
  EXPECT_EQ(chosen(reduce, 1024, 16), "shared_grid");
  EXPECT_EQ(chosen(reduce, 32 << 10, 16), "shared_grid");
  EXPECT_EQ(chosen(reduce, (32 << 10) + 1, 16), "shared_shares");
  EXPECT_EQ(chosen(reduce, 1024, 16, true), "shared_flat") << "which need not be recorded";
  EXPECT_EQ(chosen(reduce, 8 << 10, 16, true), "shared_grid");
}

TEST(choice, one_rank_reduces_for_all_where_two_processors_are_shared) {
  Facts facts{.collective = Collective::allreduce, .area = true};
  for (auto [processors, size, longest] : {std::tuple{2, 4, 8 << 10}, {2, 8, 2 << 10}, {2, 32, 512}}) {
    facts.shared_processors = processors;
    facts.size = size;
    facts.bytes = longest;
    EXPECT_STREQ(choose(facts).name, "shared_flat") << size;
    facts.bytes = 2 * longest;
    EXPECT_STREQ(choose(facts).name, "shared_root") << size;
    facts.bytes = 64 << 20;
    EXPECT_STREQ(choose(facts).name, "shared_root") << size;
  }
  facts.shared_processors = 3;
  for (MPI_Count bytes : {16 << 10, 64 << 20}) {
    facts.bytes = bytes;
    facts.size = 8;
    EXPECT_STREQ(choose(facts).name, "shared_shares") << bytes;
  }
}

/// Where each of three or more ranks has its processor (doc/adr/0029).
TEST(choice, long_blocks_are_messages_and_the_longest_ones_are_copied_once) {
  auto chosen = [](Collective collective, MPI_Count bytes, int size, bool reads_memory) {
    return std::string(choose({.collective = collective,
                               .bytes = bytes,
                               .size = size,
                               .area = true,
                               .reads_memory = reads_memory})
                           .name);
  };
  using enum Collective;
  for (int size : {3, 4, 8, 16}) {
    EXPECT_EQ(chosen(scatter, 8191, size, true), "shared");
    EXPECT_EQ(chosen(scatter, 8192, size, true), "messages");
    EXPECT_EQ(chosen(scatter, (4 << 20) / size - 1, size, true), "messages");
    EXPECT_EQ(chosen(scatter, (4 << 20) / size, size, true), "single_copy");
    EXPECT_EQ(chosen(scatter, 64 << 20, size, false), "messages");
    EXPECT_EQ(chosen(alltoall, 16383, size, true), "shared");
    EXPECT_EQ(chosen(alltoall, 16384, size, true), "messages");
    EXPECT_EQ(chosen(alltoall, (768 << 10) / size - 1, size, true), "messages");
    EXPECT_EQ(chosen(alltoall, (768 << 10) / size, size, true), "single_copy");
    EXPECT_EQ(chosen(alltoall, 64 << 20, size, false), "messages");
  }
  EXPECT_EQ(chosen(alltoall, 1 << 20, 2, true), "pair");
  const Facts persistent{.collective = alltoall,
                         .bytes = 64 << 20,
                         .size = 8,
                         .recorded = true,
                         .area = true,
                         .reads_memory = true};
  EXPECT_STREQ(choose(persistent).name, "single_copy") << "it needs few steps, whatever its length";
  EXPECT_TRUE(uses_area(persistent));
}

/// Ranks that share processors: messages of a scatter that fills the caches, as soon as they take less time than slices.
TEST(choice, the_long_parts_of_many_ranks_that_share_processors_are_messages) {
  auto chosen = [](MPI_Count bytes, int size, bool reads_memory) {
    return std::string(choose({.collective = Collective::scatter,
                               .bytes = bytes,
                               .size = size,
                               .shared_processors = 2,
                               .area = true,
                               .reads_memory = reads_memory})
                           .name);
  };
  for (bool reads_memory : {false, true}) {
    EXPECT_EQ(chosen((256 << 10) - 1, 8, reads_memory), "shared");
    EXPECT_EQ(chosen(256 << 10, 8, reads_memory), "messages");
    EXPECT_EQ(chosen(64 << 20, 8, reads_memory), "messages");
    EXPECT_EQ(chosen(64 << 20, 4, reads_memory), "shared");
    EXPECT_EQ(chosen(64 << 20, 2, reads_memory), "shared");
  }
}

/// Two ranks with a processor each. Rank 1 of an inclusive scan needs memory for what it receives.
TEST(choice, long_scans_of_a_pair_are_messages) {
  auto chosen = [](Collective collective, MPI_Count bytes, int shared_processors) {
    return std::string(choose({.collective = collective,
                               .bytes = bytes,
                               .size = 2,
                               .shared_processors = shared_processors,
                               .area = true,
                               .elementwise = true})
                           .name);
  };
  for (Collective collective : {Collective::scan, Collective::exscan}) {
    EXPECT_EQ(chosen(collective, (16 << 10) - 1, 0), "shared");
    EXPECT_EQ(chosen(collective, 16 << 10, 0), "pair");
    EXPECT_EQ(chosen(collective, 16 << 10, 1), "shared");
  }
  EXPECT_EQ(chosen(Collective::scan, (32 << 20) + 1, 0), "shared");
  EXPECT_EQ(chosen(Collective::exscan, 64 << 20, 0), "pair");
}

/// A recorded call takes memory for each step.
TEST(choice, long_calls_in_an_area_are_not_recorded) {
  Facts facts{.collective = Collective::alltoall,
              .bytes = 8 << 20,
              .size = 4,
              .recorded = true,
              .shared_processors = 2,
              .area = true};
  EXPECT_STREQ(choose(facts).name, "shared");
  facts.bytes = 16 << 20;
  EXPECT_STREQ(choose(facts).name, "pairwise");
  facts.recorded = false;
  EXPECT_STREQ(choose(facts).name, "shared");
}

TEST(choice, an_unknown_word_is_an_error_that_offers_the_nearest) {
  EXPECT_FALSE(configure("allreduce=rinng").ok());
  EXPECT_NE(base::failure_text().find("did you mean ring?"), std::string::npos) << base::failure_text();
  EXPECT_FALSE(configure("alreduce=ring").ok());
  EXPECT_NE(base::failure_text().find("did you mean allreduce?"), std::string::npos) << base::failure_text();
  EXPECT_FALSE(configure("ring").ok());
  EXPECT_STREQ(choose({Collective::allreduce, 8, 4, true, false}).name, "recursive_doubling");
}

} // namespace
} // namespace near::choice
