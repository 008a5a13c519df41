// Handles and pools: reuse, staleness, retirement, arbitrary bits.
#include "object/communicator.h"
#include "object/info.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include <set>

namespace {

using namespace near::object;

TEST(Handles, a_freed_handle_is_not_found_even_after_its_slot_is_reused) {
  Info* first = make_info();
  MPI_Info stale = public_handle(*first);
  ASSERT_EQ(find_info(stale), first);
  release(first);
  EXPECT_EQ(find_info(stale), nullptr);
  Info* second = make_info();
  EXPECT_EQ(static_cast<void*>(second), static_cast<void*>(first)) << "pools reuse what was freed last";
  EXPECT_NE(public_handle(*second), stale);
  EXPECT_EQ(find_info(stale), nullptr);
  release(second);
}

TEST(Handles, a_slot_gives_64_different_handles_before_the_first_returns) {
  std::set<MPI_Info> seen;
  for (int n = 0; n < 64; ++n) {
    Info* info = make_info();
    EXPECT_TRUE(seen.insert(public_handle(*info)).second);
    EXPECT_EQ(find_info(public_handle(*info)), info);
    release(info);
  }
  // The generation wraps; the handle is found only while its object lives.
  Info* again = make_info();
  MPI_Info handle = public_handle(*again);
  EXPECT_TRUE(seen.contains(handle));
  EXPECT_EQ(find_info(handle), again);
  release(again);
  EXPECT_EQ(find_info(handle), nullptr);
}

TEST(Handles, any_bits_may_be_looked_up) {
  for (std::uintptr_t bits : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{0x130},
                              std::uintptr_t{4096}, std::uintptr_t{0x7fffffff}, std::uintptr_t{0x80000000},
                              ~std::uintptr_t{0}, std::uintptr_t{make_handle<Kind::info>(0xfffff, 3)},
                              std::uintptr_t{make_handle<Kind::group>(0, 0)}, std::uintptr_t{1} << 40})
    EXPECT_EQ(find_info(reinterpret_cast<MPI_Info>(bits)), nullptr) << bits;
}

TEST(Handles, a_retired_handle_is_stale_while_the_object_lives) {
  Info* info = make_info();
  MPI_Info handle = public_handle(*info);
  Pool<Info, Kind::info>::retire(info);
  EXPECT_EQ(find_info(handle), nullptr);
  EXPECT_EQ(find_info(public_handle(*info)), nullptr);
  info->set("still", "usable");
  release(info);
  Info* next = make_info();
  EXPECT_NE(public_handle(*next), handle);
  EXPECT_EQ(find_info(public_handle(*next)), next);
  release(next);
}

TEST(Handles, many_live_objects_are_all_found_and_counted) {
  std::size_t before = infos().live();
  std::vector<Info*> all;
  for (int n = 0; n < 2000; ++n) all.push_back(make_info());
  EXPECT_EQ(infos().live(), before + 2000);
  for (Info* info : all) EXPECT_EQ(find_info(public_handle(*info)), info);
  std::size_t visited = 0;
  infos().each([&](Info&) { ++visited; });
  EXPECT_EQ(visited, infos().live());
  for (Info* info : all) release(info);
  EXPECT_EQ(infos().live(), before);
}

TEST(Infos, keep_the_order_of_insertion_and_replace_in_place) {
  Info* info = make_info();
  info->set("b", "1");
  info->set("a", "2");
  info->set("b", "3");
  ASSERT_EQ(info->entries.size(), 2u);
  EXPECT_EQ(info->entries[0].first, "b");
  EXPECT_EQ(*info->find("b"), "3");
  EXPECT_EQ(info->find("c"), nullptr);
  Info* copy = copy_info(*info);
  EXPECT_TRUE(info->remove("b"));
  EXPECT_FALSE(info->remove("b"));
  EXPECT_EQ(copy->entries.size(), 2u);
  release(copy);
  release(info);
}

TEST(Communicators, the_predefined_ones_come_and_go_with_their_constants) {
  set_own_process({.rank = 2});
  for (int cycle = 0; cycle < 2; ++cycle) {
    std::vector<ProcessId> members(4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) members[rank].rank = rank;
    ASSERT_TRUE(make_predefined_communicators(make_group(members)).ok());
    EXPECT_EQ(find_communicator(MPI_COMM_WORLD), world());
    EXPECT_EQ(world()->rank, 2);
    EXPECT_EQ(world()->size, 4);
    EXPECT_EQ(world()->peers, 4);
    EXPECT_EQ(self()->size, 1);
    EXPECT_EQ(public_handle(*self()), MPI_COMM_SELF);
    EXPECT_EQ(describe(*world()), "MPI_COMM_WORLD");
    EXPECT_NE(world()->context, self()->context);
    EXPECT_EQ(find_communicator(MPI_COMM_NULL), nullptr);
    drop_predefined_communicators();
    EXPECT_EQ(find_communicator(MPI_COMM_WORLD), nullptr);
    EXPECT_EQ(groups().live(), 0u);
  }
}

TEST(Contexts, of_different_processes_differ) {
  constexpr std::uint32_t last = (1u << context_process_bits) - 3;
  EXPECT_TRUE(fits_context({.rank = last}));
  EXPECT_FALSE(fits_context({.rank = last + 1})) << "the number after it belongs to contexts from hashes";
  set_contexts_made(0);
  set_own_process({.rank = last});
  const std::uint64_t first = new_context();
  EXPECT_EQ(first & 15, 0u) << "the low bits are the channel's";
  set_contexts_made(0);
  set_own_process({.rank = last - 1});
  EXPECT_NE(new_context(), first);
  EXPECT_GT(hashed_context(0), first);
  EXPECT_NE(hashed_context(0), hashed_context(~0ull));
  set_own_process({});
}

TEST(Contexts, never_repeat_when_their_numbers_are_used_up) {
  constexpr std::uint64_t all = (std::uint64_t{1} << context_counter_bits) - 1;
  set_contexts_made(all - 1);
  EXPECT_EQ(new_context() >> 4 & all, all);
  EXPECT_THROW(new_context(), std::length_error);
  EXPECT_THROW(new_context(), std::length_error);
  set_contexts_made(0);
}

TEST(Communicators, inherit_the_error_handler_and_outlive_their_handle) {
  set_own_process({});
  ASSERT_TRUE(make_predefined_communicators(make_group({own_process()})).ok());
  ErrorHandler* handler = make_error_handler(Kind::communicator, nullptr);
  world()->error_handler = handler;
  Communicator* made = make_communicator(*world(), make_group({own_process()}), new_context());
  EXPECT_EQ(made->error_handler, handler);
  EXPECT_EQ(handler->references.load_relaxed(), 2);
  EXPECT_EQ(made->context & 15, 0u);
  EXPECT_NE(made->context, new_context());
  std::string name = describe(*made);
  EXPECT_TRUE(name.starts_with("communicator 0x4")) << name;
  MPI_Comm handle = public_handle(*made);
  keep(made); // as a request does
  communicators().retire(made);
  release(made);
  EXPECT_EQ(find_communicator(handle), nullptr);
  EXPECT_EQ(describe(*made), name);
  release(made);
  EXPECT_EQ(communicators().live(), 0u);
  drop_predefined_communicators();
  EXPECT_EQ(error_handlers().live(), 0u);
}

TEST(ErrorClasses, of_the_lower_layers_have_an_mpi_class) {
  using near::base::Code;
  EXPECT_EQ(error_class(Result(MPI_ERR_TRUNCATE)), MPI_ERR_TRUNCATE);
  EXPECT_EQ(error_class(Result(Code::no_memory)), MPI_ERR_NO_MEM);
  EXPECT_EQ(error_class(Result(Code::gone)), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(error_class(Result(Code::unsupported)), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(error_class(Result(Code::system)), MPI_ERR_OTHER);
}

} // namespace
