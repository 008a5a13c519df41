// Collectives whose blocks have different sizes, in areas: blocks that fit into a slice, and those that are messages.
#include "coll/shared/area.h"
#include "forms.h"

#include <string>

namespace near::coll::test {
namespace {

using Values = std::vector<std::int64_t>;

/// How many elements `from` sends to `to`: none, few, about as many as fit into a slice, and more.
int elements(int from, int to) {
  constexpr int some[] = {0, 3, 9000, 8191, 1, 700, 4090, 8192};
  return some[static_cast<std::size_t>(from * 3 + to * 5) % std::size(some)];
}
std::int64_t element(int from, int to, int place) { return from * 1'000'000 + to * 100'000 + place; }

/// Blocks in the order of ranks, with a gap after each.
struct VaryingBlocks {
  std::vector<int> counts, displacements;
  Values values;
  explicit VaryingBlocks(const std::vector<int>& sizes) : counts(sizes) {
    int at = 0;
    for (int size : sizes) {
      displacements.push_back(at);
      at += size + 2;
    }
    values.assign(static_cast<std::size_t>(at), -1);
  }
  Blocks blocks() {
    return Blocks{values.data(), datatype::Counts(counts.data()), datatype::Counts(displacements.data()),
                  datatype::find_datatype(MPI_INT64_T)};
  }
  std::int64_t* block(int rank) { return values.data() + displacements[static_cast<std::size_t>(rank)]; }
  void fill(int from, int to, int rank) {
    for (int i = 0; i < elements(from, to); ++i) block(rank)[i] = element(from, to, i);
  }
  void expect(int from, int to, int rank) {
    for (int i = 0; i < elements(from, to); ++i)
      ASSERT_EQ(block(rank)[i], element(from, to, i)) << "element " << i << " from rank " << from;
    EXPECT_EQ(block(rank)[elements(from, to)], -1) << "beyond the block from rank " << from;
  }
};

template <class SizeOf>
VaryingBlocks varying_blocks(int size, SizeOf size_of) {
  std::vector<int> sizes;
  for (int rank = 0; rank < size; ++rank) sizes.push_back(size_of(rank));
  return VaryingBlocks(sizes);
}

void exchange_all_sizes(object::Communicator& c, const Perform& perform) {
  VaryingBlocks out = varying_blocks(c.size, [&](int to) { return elements(c.rank, to); });
  VaryingBlocks in = varying_blocks(c.size, [&](int from) { return elements(from, c.rank); });
  for (int to = 0; to < c.size; ++to) out.fill(c.rank, to, to);
  perform(alltoallv_call(out.blocks(), in.blocks()), c);
  for (int from = 0; from < c.size; ++from) in.expect(from, c.rank, from);
  for (int root : roots(c.size)) {
    VaryingBlocks one = varying_blocks(1, [&](int) { return elements(c.rank, root); });
    VaryingBlocks all = varying_blocks(c.size, [&](int from) { return elements(from, root); });
    one.fill(c.rank, root, 0);
    Datatype& type = *datatype::find_datatype(MPI_INT64_T);
    perform(gatherv_call(Buffer{one.values.data(), one.counts[0], &type}, all.blocks(), root, c), c);
    for (int from = 0; c.rank == root && from < c.size; ++from) all.expect(from, root, from);
    VaryingBlocks mine = varying_blocks(1, [&](int) { return elements(c.rank, root); });
    perform(scatterv_call(all.blocks(), Buffer{mine.values.data(), mine.counts[0], &type}, root, c), c);
    mine.expect(c.rank, root, 0);
  }
}

TEST(varying, blocks_that_fit_into_no_slice_are_messages) {
  make_types();
  for (int shared_processors : {0, 2}) {
    ASSERT_TRUE(configure("auto", shared_processors).ok());
    for (int size : {2, 3, 6})
      for (std::size_t slices : {std::size_t{1}, most_slices})
        for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)}) {
          SCOPED_TRACE(std::to_string(size) + " ranks with " + std::to_string(slices) + " slices");
          run_ranks(size, Conditions{64, slices},
                    [&](object::Communicator& c) { exchange_all_sizes(c, perform); });
          ASSERT_FALSE(testing::Test::HasFailure());
        }
  }
  ASSERT_TRUE(configure("auto").ok());
}

TEST(varying, a_block_that_is_longer_than_its_buffer_is_an_error) {
  make_types();
  for (int sent : {1, 4})
    run_ranks(2, Conditions{everything}, [&](object::Communicator& c) {
      VaryingBlocks out = varying_blocks(2, [&](int to) { return c.rank == 0 && to == 1 ? sent : 2; });
      VaryingBlocks in = varying_blocks(2, [](int) { return 2; });
      const Result result = run(alltoallv_call(out.blocks(), in.blocks()), c);
      EXPECT_EQ(result.code(), c.rank == 1 && sent == 4 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
      if (!result.ok())
        EXPECT_EQ(std::string(base::failure_text()),
                  "rank 0 sends 32 bytes, but this rank's arguments say 16");
      blocking(barrier_call(), c);
    });
}

} // namespace
} // namespace near::coll::test
