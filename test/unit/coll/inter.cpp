// Collectives between two groups, executed and recorded.
#include "forms.h"

namespace near::coll::test {
namespace {

constexpr MPI_Count few_and_many[] = {0, 1, 5, 40};

struct Side {
  object::Communicator& c;
  bool left;
  int own, other; ///< sizes
  /// Identifies each process of both groups by a number.
  int number(bool in_left, int rank) const { return (in_left ? 0 : 100) + rank; }
  int mine() const { return number(left, c.rank); }
};

void between(const std::function<void(Side&, const Perform&)>& body) {
  make_types();
  for (int left : {1, 2, 3, 5})
    for (int right : {1, 2, 4})
      for (std::size_t eager : {std::size_t{0}, everything})
        for (const Perform& perform : {Perform(blocking), Perform(nonblocking)}) {
          SCOPED_TRACE(std::to_string(left) + " and " + std::to_string(right) + " ranks");
          run_two_groups(left, right, Conditions{eager}, [&](object::Communicator& c, bool in_left) {
            Side side{c, in_left, in_left ? left : right, in_left ? right : left};
            body(side, perform);
          });
          ASSERT_FALSE(testing::Test::HasFailure());
        }
}

/// Calls `each(number, root_in_left, root, what this process passes as root)`.
template <class F>
void rooted(const Side& side, F each) {
  int number = 0;
  for (bool root_in_left : {true, false}) {
    const int size = side.left == root_in_left ? side.own : side.other;
    for (int root : roots(size)) {
      const int given = side.left != root_in_left ? root : (side.c.rank == root ? MPI_ROOT : MPI_PROC_NULL);
      for (MPI_Count cells : few_and_many) each(++number, root_in_left, root, given, cells);
    }
  }
}

TEST(between_groups, a_broadcast_reaches_all_of_the_other_group) {
  between([](Side& side, const Perform& perform) {
    rooted(side, [&](int number, bool root_in_left, int root, int given, MPI_Count cells) {
      TestBuffer buffer(layout_at(number, side.c.rank), cells);
      for (MPI_Count i = 0; i < cells; ++i) buffer.set(i, cell(number, side.mine(), i));
      perform(broadcast_call(buffer.argument(), given), side.c);
      const int giver = given >= 0 ? side.number(root_in_left, root) : side.mine();
      for (MPI_Count i = 0; i < cells; ++i) EXPECT_EQ(buffer.get(i), cell(number, giver, i));
    });
    perform(barrier_call(), side.c);
  });
}

TEST(between_groups, a_gather_and_a_scatter_meet_the_other_group) {
  between([](Side& side, const Perform& perform) {
    rooted(side, [&](int number, bool root_in_left, int root, int given, MPI_Count cells) {
      TestBuffer own(layout_at(number, side.c.rank), cells), all(Layout::gaps, cells * side.other);
      for (MPI_Count i = 0; i < cells; ++i) own.set(i, cell(number, side.mine(), i));
      const bool is_root = given == MPI_ROOT, sends = given >= 0;
      perform(gather_call(sends ? own.argument() : Buffer{}, is_root ? all.argument(0, cells) : Buffer{},
                          given, side.c),
              side.c);
      if (is_root)
        for (int from = 0; from < side.other; ++from)
          for (MPI_Count i = 0; i < cells; ++i)
            EXPECT_EQ(all.get(cells * from + i), cell(number, side.number(!side.left, from), i));
      for (MPI_Count i = 0; i < cells * side.other; ++i) all.set(i, cell(number, side.mine(), i));
      perform(scatter_call(is_root ? all.argument(0, cells) : Buffer{}, sends ? own.argument() : Buffer{},
                           given, side.c),
              side.c);
      if (sends)
        for (MPI_Count i = 0; i < cells; ++i)
          EXPECT_EQ(own.get(i), cell(number, side.number(root_in_left, root), cells * side.c.rank + i));
    });
  });
}

TEST(between_groups, an_allgather_and_an_alltoall_exchange_the_blocks) {
  between([](Side& side, const Perform& perform) {
    int number = 0;
    for (MPI_Count cells : few_and_many) {
      ++number;
      TestBuffer own(layout_at(number, side.c.rank), cells), all(Layout::gaps, cells * side.other);
      for (MPI_Count i = 0; i < cells; ++i) own.set(i, cell(number, side.mine(), i));
      perform(allgather_call(own.argument(), all.argument(0, cells), side.c), side.c);
      for (int from = 0; from < side.other; ++from)
        for (MPI_Count i = 0; i < cells; ++i)
          EXPECT_EQ(all.get(cells * from + i), cell(number, side.number(!side.left, from), i));
      TestBuffer out(Layout::split, cells * side.other);
      for (MPI_Count i = 0; i < cells * side.other; ++i) out.set(i, cell(number, side.mine(), i));
      perform(alltoall_call(out.argument(0, cells), all.argument(0, cells)), side.c);
      for (int from = 0; from < side.other; ++from)
        for (MPI_Count i = 0; i < cells; ++i)
          EXPECT_EQ(all.get(cells * from + i),
                    cell(number, side.number(!side.left, from), cells * side.c.rank + i));
    }
  });
}

TEST(between_groups, reductions_give_each_group_the_others_result) {
  between([](Side& side, const Perform& perform) {
    const datatype::Operation& sum = *datatype::find_operation(MPI_SUM);
    Datatype& type = type_of(Layout::split);
    auto total = [&](int call, int size, bool in_left, MPI_Count i) {
      std::int32_t a = 0, b = 0;
      for (int rank = 0; rank < size; ++rank) {
        Cell one = cell(call, side.number(in_left, rank), i);
        a += one.a;
        b += one.b;
      }
      return Cell{a, b};
    };
    rooted(side, [&](int number, bool, int, int given, MPI_Count cells) {
      TestBuffer own(Layout::split, cells), result(Layout::split, cells);
      for (MPI_Count i = 0; i < cells; ++i) own.set(i, cell(number, side.mine(), i));
      perform(reduce_call(own.address(), result.address(), 2 * cells, type, sum, given, side.c), side.c);
      if (given == MPI_ROOT)
        for (MPI_Count i = 0; i < cells; ++i)
          EXPECT_EQ(result.get(i), total(number, side.other, !side.left, i));
      perform(allreduce_call(own.address(), result.address(), 2 * cells, type, sum), side.c);
      for (MPI_Count i = 0; i < cells; ++i)
        EXPECT_EQ(result.get(i), total(number, side.other, !side.left, i));
    });
    // Both groups reduce vectors of own * other * 3 cells.
    const MPI_Count part = 3 * side.other, whole = part * side.own;
    TestBuffer own(Layout::split, whole), result(Layout::split, part);
    for (MPI_Count i = 0; i < whole; ++i) own.set(i, cell(77, side.mine(), i));
    perform(reduce_scatter_block_call(own.address(), result.address(), 2 * part, type, sum), side.c);
    for (MPI_Count i = 0; i < part; ++i)
      EXPECT_EQ(result.get(i), total(77, side.other, !side.left, part * side.c.rank + i));
  });
}

} // namespace
} // namespace near::coll::test
