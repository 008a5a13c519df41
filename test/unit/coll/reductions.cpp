// Reductions compared with a sequential fold in rank order, with a non-commutative operation and with
// predefined ones; results have the same bits on all ranks.
#include "forms.h"

#include "coll/partial.h"

#include <cmath>
#include <mutex>

namespace near::coll::test {
namespace {

/// A cell (a, b) is the function x -> a x + b; in op inout is "in first, then inout".
Cell compose(Cell first, Cell then) {
  auto a = static_cast<std::uint32_t>(first.a), b = static_cast<std::uint32_t>(first.b);
  auto c = static_cast<std::uint32_t>(then.a), d = static_cast<std::uint32_t>(then.b);
  return {static_cast<std::int32_t>(a * c), static_cast<std::int32_t>(b * c + d)};
}
Cell add(Cell x, Cell y) {
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(x.a) + static_cast<std::uint32_t>(y.a)),
          static_cast<std::int32_t>(static_cast<std::uint32_t>(x.b) + static_cast<std::uint32_t>(y.b))};
}

template <Cell (*combine)(Cell, Cell)>
void user_function(void* in, void* inout, int* length, MPI_Datatype* type) {
  const bool gaps = *type == datatype::public_handle(type_of(Layout::gaps));
  const std::ptrdiff_t stride = gaps ? 24 : 8, a = gaps ? -4 : 0, b = gaps ? 8 : 4;
  for (int i = 0; i < *length; ++i) {
    auto* left = static_cast<std::byte*>(in) + i * stride;
    auto* right = static_cast<std::byte*>(inout) + i * stride;
    Cell x, y;
    std::memcpy(&x.a, left + a, 4);
    std::memcpy(&x.b, left + b, 4);
    std::memcpy(&y.a, right + a, 4);
    std::memcpy(&y.b, right + b, 4);
    y = combine(x, y);
    std::memcpy(right + a, &y.a, 4);
    std::memcpy(right + b, &y.b, 4);
  }
}

struct Kind {
  const datatype::Operation* operation;
  Cell (*combine)(Cell, Cell);
  Layout layout;
};

std::vector<Kind> kinds() {
  static std::vector<Kind> all = [] {
    make_types();
    datatype::Operation* affine = datatype::operations().make();
    affine->commutative = false;
    affine->function = user_function<compose>;
    datatype::Operation* sum = datatype::operations().make();
    sum->function = user_function<add>;
    const datatype::Operation* predefined = datatype::find_operation(MPI_SUM);
    return std::vector<Kind>{{affine, compose, Layout::plain},
                             {affine, compose, Layout::gaps},
                             {sum, add, Layout::gaps},
                             {predefined, add, Layout::split}};
  }();
  return all;
}

constexpr MPI_Count lengths[] = {0, 1, 4, 37, 150}; // 150 gaps cells do not fit a group's inline scratch

/// The expected result for ranks [first, last] at an index.
Cell fold(const Kind& kind, int number, int first, int last, MPI_Count index) {
  Cell value = cell(number, first, index);
  for (int rank = first + 1; rank <= last; ++rank) value = kind.combine(value, cell(number, rank, index));
  return value;
}

template <class F>
void calls(F each) {
  int number = 0;
  for (const Kind& kind : kinds())
    for (MPI_Count cells : lengths)
      for (bool in_place : {false, true}) each(++number, kind, cells, in_place);
}

void fill(TestBuffer& buffer, int number, int rank, MPI_Count cells) { buffer.fill(number, rank, 0, cells); }

/// Creates `kinds` before threads start.
void each_way(Collective collective, const std::function<void(object::Communicator&, const Perform&)>& body) {
  (void)kinds();
  every_form(collective, body);
}

TEST(reduce, the_root_gets_the_fold_in_rank_order) {
  each_way(Collective::reduce, [](object::Communicator& c, const Perform& perform) {
    calls([&](int number, const Kind& kind, MPI_Count cells, bool in_place) {
      for (int root : roots(c.size)) {
        TestBuffer own(kind.layout, cells), result(kind.layout, cells);
        fill(own, number, c.rank, cells);
        const bool keeps = in_place && c.rank == root;
        if (keeps) fill(result, number, c.rank, cells);
        perform(reduce_call(keeps ? MPI_IN_PLACE : own.address(), c.rank == root ? result.address() : nullptr,
                            elements(kind.layout, cells), own.type(), *kind.operation, root, c),
                c);
        if (c.rank == root)
          for (MPI_Count i = 0; i < cells; ++i)
            EXPECT_EQ(result.get(i), fold(kind, number, 0, c.size - 1, i));
        for (MPI_Count i = 0; i < cells; ++i) EXPECT_EQ(own.get(i), cell(number, c.rank, i));
        EXPECT_TRUE(result.holes_untouched());
      }
    });
  });
}

TEST(allreduce, every_rank_gets_the_fold_in_rank_order) {
  each_way(Collective::allreduce, [](object::Communicator& c, const Perform& perform) {
    calls([&](int number, const Kind& kind, MPI_Count cells, bool in_place) {
      TestBuffer own(kind.layout, cells), result(kind.layout, cells);
      fill(own, number, c.rank, cells);
      if (in_place) fill(result, number, c.rank, cells);
      perform(allreduce_call(in_place ? MPI_IN_PLACE : own.address(), result.address(),
                             elements(kind.layout, cells), own.type(), *kind.operation),
              c);
      for (MPI_Count i = 0; i < cells; ++i) {
        EXPECT_EQ(result.get(i), fold(kind, number, 0, c.size - 1, i));
        EXPECT_EQ(own.get(i), cell(number, c.rank, i));
      }
      EXPECT_TRUE(result.holes_untouched());
    });
  });
}

TEST(scan, each_rank_gets_the_fold_up_to_itself) {
  each_way(Collective::scan, [](object::Communicator& c, const Perform& perform) {
    calls([&](int number, const Kind& kind, MPI_Count cells, bool in_place) {
      TestBuffer own(kind.layout, cells), result(kind.layout, cells);
      fill(own, number, c.rank, cells);
      if (in_place) fill(result, number, c.rank, cells);
      perform(scan_call(in_place ? MPI_IN_PLACE : own.address(), result.address(),
                        elements(kind.layout, cells), own.type(), *kind.operation),
              c);
      for (MPI_Count i = 0; i < cells; ++i) {
        EXPECT_EQ(result.get(i), fold(kind, number, 0, c.rank, i));
        EXPECT_EQ(own.get(i), cell(number, c.rank, i));
      }
      EXPECT_TRUE(result.holes_untouched());
    });
  });
}

TEST(exscan, each_rank_gets_the_fold_of_those_before_it) {
  each_way(Collective::exscan, [](object::Communicator& c, const Perform& perform) {
    calls([&](int number, const Kind& kind, MPI_Count cells, bool in_place) {
      TestBuffer own(kind.layout, cells), result(kind.layout, cells);
      fill(own, number, c.rank, cells);
      fill(result, number, c.rank, cells);
      perform(exscan_call(in_place ? MPI_IN_PLACE : own.address(), result.address(),
                          elements(kind.layout, cells), own.type(), *kind.operation),
              c);
      for (MPI_Count i = 0; i < cells; ++i) {
        Cell expected = c.rank == 0 ? cell(number, 0, i) : fold(kind, number, 0, c.rank - 1, i);
        EXPECT_EQ(result.get(i), expected); // rank 0's result is unchanged
        EXPECT_EQ(own.get(i), cell(number, c.rank, i));
      }
      EXPECT_TRUE(result.holes_untouched());
    });
  });
}

TEST(reduce_scatter_block, each_rank_gets_its_block_of_the_fold) {
  each_way(Collective::reduce_scatter_block, [](object::Communicator& c, const Perform& perform) {
    calls([&](int number, const Kind& kind, MPI_Count cells, bool in_place) {
      TestBuffer own(kind.layout, cells * c.size), result(kind.layout, in_place ? cells * c.size : cells);
      fill(own, number, c.rank, cells * c.size);
      if (in_place) fill(result, number, c.rank, cells * c.size);
      perform(reduce_scatter_block_call(in_place ? MPI_IN_PLACE : own.address(), result.address(),
                                        elements(kind.layout, cells), own.type(), *kind.operation),
              c);
      for (MPI_Count i = 0; i < cells; ++i)
        EXPECT_EQ(result.get(i), fold(kind, number, 0, c.size - 1, cells * c.rank + i));
      EXPECT_TRUE(result.holes_untouched());
    });
  });
}

TEST(reduce_scatter, each_rank_gets_its_number_of_elements_of_the_fold) {
  each_way(Collective::reduce_scatter, [](object::Communicator& c, const Perform& perform) {
    calls([&](int number, const Kind& kind, MPI_Count most, bool in_place) {
      std::vector<int> parts(static_cast<std::size_t>(c.size));
      MPI_Count total = 0, first = 0, own_cells = 0;
      for (int rank = 0; rank < c.size; ++rank) {
        MPI_Count cells = (rank + number) % 3 == 0 ? 0 : most + rank;
        if (rank < c.rank) first += cells;
        if (rank == c.rank) own_cells = cells;
        total += cells;
        parts[static_cast<std::size_t>(rank)] = static_cast<int>(elements(kind.layout, cells));
      }
      TestBuffer own(kind.layout, total), result(kind.layout, in_place ? total : own_cells);
      fill(own, number, c.rank, total);
      if (in_place) fill(result, number, c.rank, total);
      perform(reduce_scatter_call(in_place ? MPI_IN_PLACE : own.address(), result.address(),
                                  Counts(parts.data()), own.type(), *kind.operation),
              c);
      for (MPI_Count i = 0; i < own_cells; ++i)
        EXPECT_EQ(result.get(i), fold(kind, number, 0, c.size - 1, first + i));
      EXPECT_TRUE(result.holes_untouched());
    });
  });
}

TEST(allreduce, the_result_has_the_same_bits_on_every_rank_and_in_every_run) {
  each_way(Collective::allreduce, [](object::Communicator& c, const Perform& perform) {
    static std::mutex lock;
    static std::vector<double> reference;
    constexpr int count = 19;
    Datatype& type = *datatype::find_datatype(MPI_DOUBLE);
    for (MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MAX})
      for (int run = 0; run < 2; ++run) {
        if (run == 0) {
          perform(barrier_call(), c);
          if (c.rank == 0) reference.clear();
          perform(barrier_call(), c);
        }
        std::vector<double> own(count), result(count);
        for (int i = 0; i < count; ++i)
          own[static_cast<std::size_t>(i)] =
              std::ldexp(std::sin(c.rank * 37.0 + i + 1), (c.rank * 13 + i) % 60);
        own[0] = c.rank % 2 == 0 ? 0.0 : -0.0; // MAX may return either, but the same one on all ranks
        perform(allreduce_call(own.data(), result.data(), count, type, *datatype::find_operation(op)), c);
        std::lock_guard guard(lock);
        if (reference.empty()) reference = result;
        EXPECT_EQ(std::memcmp(reference.data(), result.data(), count * sizeof(double)), 0);
      }
  });
}

} // namespace
} // namespace near::coll::test
