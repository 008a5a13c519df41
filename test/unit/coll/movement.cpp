// Collectives that move data, compared with what each rank must have at the end.
#include "forms.h"

#include "base/atomic.h"

namespace near::coll::test {
namespace {

constexpr MPI_Count counts[] = {0, 1, 5, 33};

/// A layout mix, a count and a root per call, numbered.
template <class F>
void calls(int size, bool rooted, F each) {
  int number = 0;
  for (MPI_Count cells : counts)
    for (int mix = 0; mix < 3; ++mix)
      for (int root : rooted ? roots(size) : std::vector<int>{0}) each(++number, cells, mix, root);
}

TEST(barrier, nobody_leaves_before_the_last_has_come) {
  static base::Hardware::Atomic<int> arrived{0};
  every_form(Collective::barrier, [](object::Communicator& c, const Perform& perform) {
    perform(barrier_call(), c);
    if (c.rank == 0) arrived.store_release(0);
    perform(barrier_call(), c);
    for (int round = 1; round <= 20; ++round) {
      arrived.add_acq_rel(1);
      perform(barrier_call(), c);
      EXPECT_GE(arrived.load_acquire(), round * c.size);
    }
  });
}

TEST(broadcast, every_rank_gets_the_roots_cells) {
  every_form(Collective::broadcast, [](object::Communicator& c, const Perform& perform) {
    calls(c.size, true, [&](int number, MPI_Count cells, int mix, int root) {
      TestBuffer buffer(layout_at(mix, c.rank), cells);
      for (MPI_Count i = 0; i < cells; ++i) buffer.set(i, cell(number, c.rank, i));
      perform(broadcast_call(buffer.argument(), root), c);
      for (MPI_Count i = 0; i < cells; ++i) EXPECT_EQ(buffer.get(i), cell(number, root, i));
      EXPECT_TRUE(buffer.holes_untouched());
    });
  });
}

TEST(gather, the_root_gets_the_blocks_in_rank_order) {
  every_form(Collective::gather, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, true, [&](int number, MPI_Count cells, int mix, int root) {
        TestBuffer own(layout_at(mix, c.rank), cells), all(layout_at(mix + 1, c.rank), cells * c.size);
        for (MPI_Count i = 0; i < cells; ++i) {
          own.set(i, cell(number, c.rank, i));
          all.set(cells * c.rank + i, cell(number, c.rank, i));
        }
        Buffer send = own.argument(), receive = all.argument(0, cells);
        if (in_place && c.rank == root) send = Buffer{MPI_IN_PLACE, 0, nullptr};
        if (c.rank != root) receive = Buffer{};
        perform(gather_call(send, receive, root, c), c);
        if (c.rank == root)
          for (int from = 0; from < c.size; ++from)
            for (MPI_Count i = 0; i < cells; ++i) EXPECT_EQ(all.get(cells * from + i), cell(number, from, i));
        EXPECT_TRUE(all.holes_untouched());
      });
  });
}

TEST(scatter, each_rank_gets_its_block) {
  every_form(Collective::scatter, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, true, [&](int number, MPI_Count cells, int mix, int root) {
        TestBuffer own(layout_at(mix, c.rank), cells), all(layout_at(mix + 1, c.rank), cells * c.size);
        for (MPI_Count i = 0; i < cells * c.size; ++i) all.set(i, cell(number, c.rank, i));
        Buffer send = all.argument(0, cells), receive = own.argument();
        if (in_place && c.rank == root) receive = Buffer{MPI_IN_PLACE, 0, nullptr};
        if (c.rank != root) send = Buffer{};
        perform(scatter_call(send, receive, root, c), c);
        if (!(in_place && c.rank == root))
          for (MPI_Count i = 0; i < cells; ++i) EXPECT_EQ(own.get(i), cell(number, root, cells * c.rank + i));
        for (MPI_Count i = 0; i < cells * c.size; ++i) EXPECT_EQ(all.get(i), cell(number, c.rank, i));
        EXPECT_TRUE(own.holes_untouched());
      });
  });
}

TEST(allgather, every_rank_gets_all_blocks) {
  every_form(Collective::allgather, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, false, [&](int number, MPI_Count cells, int mix, int) {
        TestBuffer own(layout_at(mix, c.rank), cells), all(layout_at(mix + 1, c.rank), cells * c.size);
        for (MPI_Count i = 0; i < cells; ++i) {
          own.set(i, cell(number, c.rank, i));
          if (in_place) all.set(cells * c.rank + i, cell(number, c.rank, i));
        }
        Buffer send = in_place ? Buffer{MPI_IN_PLACE, 0, nullptr} : own.argument();
        perform(allgather_call(send, all.argument(0, cells), c), c);
        for (int from = 0; from < c.size; ++from)
          for (MPI_Count i = 0; i < cells; ++i) EXPECT_EQ(all.get(cells * from + i), cell(number, from, i));
        EXPECT_TRUE(all.holes_untouched());
      });
  });
}

TEST(alltoall, block_j_of_rank_i_becomes_block_i_of_rank_j) {
  every_form(Collective::alltoall, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, false, [&](int number, MPI_Count cells, int mix, int) {
        TestBuffer out(layout_at(mix, c.rank), cells * c.size),
            in(layout_at(mix + 1, c.rank), cells * c.size);
        for (MPI_Count i = 0; i < cells * c.size; ++i) (in_place ? in : out).set(i, cell(number, c.rank, i));
        Buffer send = in_place ? Buffer{MPI_IN_PLACE, 0, nullptr} : out.argument(0, cells);
        perform(alltoall_call(send, in.argument(0, cells)), c);
        for (int from = 0; from < c.size; ++from)
          for (MPI_Count i = 0; i < cells; ++i)
            EXPECT_EQ(in.get(cells * from + i), cell(number, from, cells * c.rank + i));
        EXPECT_TRUE(in.holes_untouched());
      });
  });
}

/// Number of cells that one rank sends to another; the numbers differ, and some are 0.
MPI_Count cells_between(int number, int from, int to) { return (number + 3 * from + to) % 4; }

TEST(gatherv, the_root_gets_blocks_of_unlike_sizes_where_it_wants_them) {
  every_form(Collective::gatherv, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, true, [&](int number, MPI_Count, int mix, int root) {
        auto cells_of = [&](int rank) { return cells_between(number, rank, root); };
        Layout layout = layout_at(mix + 1, c.rank);
        Plan plan(c.size, layout, cells_of);
        TestBuffer own(layout_at(mix, c.rank), cells_of(c.rank)), all(layout, plan.cells);
        auto mine = static_cast<std::size_t>(c.rank);
        for (MPI_Count i = 0; i < cells_of(c.rank); ++i) {
          own.set(i, cell(number, c.rank, i));
          all.set(plan.first[mine] + i, cell(number, c.rank, i));
        }
        Buffer send = in_place && c.rank == root ? Buffer{MPI_IN_PLACE, 0, nullptr} : own.argument();
        perform(gatherv_call(send, c.rank == root ? plan.blocks(all) : Blocks{}, root, c), c);
        if (c.rank == root)
          for (int from = 0; from < c.size; ++from)
            for (MPI_Count i = 0; i < cells_of(from); ++i)
              EXPECT_EQ(all.get(plan.first[static_cast<std::size_t>(from)] + i), cell(number, from, i));
        EXPECT_TRUE(all.holes_untouched());
      });
  });
}

TEST(scatterv, each_rank_gets_its_block_of_its_own_size) {
  every_form(Collective::scatterv, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, true, [&](int number, MPI_Count, int mix, int root) {
        auto cells_of = [&](int rank) { return cells_between(number, root, rank); };
        Layout layout = layout_at(mix + 1, c.rank);
        Plan plan(c.size, layout, cells_of);
        TestBuffer own(layout_at(mix, c.rank), cells_of(c.rank)), all(layout, plan.cells);
        for (MPI_Count i = 0; i < plan.cells; ++i) all.set(i, cell(number, c.rank, i));
        const bool keeps = in_place && c.rank == root;
        perform(scatterv_call(c.rank == root ? plan.blocks(all) : Blocks{},
                              keeps ? Buffer{MPI_IN_PLACE, 0, nullptr} : own.argument(), root, c),
                c);
        // Positions in cells do not depend on the layout, so `plan.first` is the same as at the root.
        if (!keeps)
          for (MPI_Count i = 0; i < cells_of(c.rank); ++i)
            EXPECT_EQ(own.get(i), cell(number, root, plan.first[static_cast<std::size_t>(c.rank)] + i));
        EXPECT_TRUE(own.holes_untouched());
      });
  });
}

TEST(allgatherv, every_rank_gets_blocks_of_different_sizes) {
  every_form(Collective::allgatherv, [](object::Communicator& c, const Perform& perform) {
    for (bool in_place : {false, true})
      calls(c.size, false, [&](int number, MPI_Count, int mix, int) {
        auto cells_of = [&](int rank) { return cells_between(number, rank, 0); };
        Layout layout = layout_at(mix + 1, c.rank);
        Plan plan(c.size, layout, cells_of);
        TestBuffer own(layout_at(mix, c.rank), cells_of(c.rank)), all(layout, plan.cells);
        auto mine = static_cast<std::size_t>(c.rank);
        for (MPI_Count i = 0; i < cells_of(c.rank); ++i) {
          own.set(i, cell(number, c.rank, i));
          if (in_place) all.set(plan.first[mine] + i, cell(number, c.rank, i));
        }
        Buffer send = in_place ? Buffer{MPI_IN_PLACE, 0, nullptr} : own.argument();
        perform(allgatherv_call(send, plan.blocks(all), c), c);
        for (int from = 0; from < c.size; ++from)
          for (MPI_Count i = 0; i < cells_of(from); ++i)
            EXPECT_EQ(all.get(plan.first[static_cast<std::size_t>(from)] + i), cell(number, from, i));
        EXPECT_TRUE(all.holes_untouched());
      });
  });
}

void exchange_varying(object::Communicator& c, const Perform& perform, bool typed) {
  for (bool in_place : {false, true})
    calls(c.size, false, [&](int number, MPI_Count, int mix, int) {
      // In place both of a pair exchange the same signature.
      auto cells_from_to = [&](int from, int to) {
        return in_place ? cells_between(number, std::min(from, to), std::max(from, to))
                        : cells_between(number, from, to);
      };
      Layout out_layout = layout_at(mix, c.rank), in_layout = layout_at(mix + 1, c.rank);
      Plan sends(c.size, out_layout, [&](int to) { return cells_from_to(c.rank, to); }, typed);
      Plan receives(c.size, in_layout, [&](int from) { return cells_from_to(from, c.rank); }, typed);
      TestBuffer out(out_layout, sends.cells), in(in_layout, receives.cells);
      for (int other = 0; other < c.size; ++other) {
        auto at = static_cast<std::size_t>(other);
        for (MPI_Count i = 0; i < cells_from_to(c.rank, other); ++i) {
          out.set(sends.first[at] + i, cell(number * 20 + other, c.rank, i));
          if (in_place) in.set(receives.first[at] + i, cell(number * 20 + other, c.rank, i));
        }
      }
      Blocks send = sends.blocks(out), receive = receives.blocks(in);
      std::vector<Datatype*> out_types(static_cast<std::size_t>(c.size), send.type);
      std::vector<Datatype*> in_types(static_cast<std::size_t>(c.size), receive.type);
      if (typed) {
        send.types = out_types.data();
        receive.types = in_types.data();
        send.type = receive.type = nullptr;
      }
      if (in_place) {
        send = Blocks{};
        send.address = MPI_IN_PLACE;
      }
      perform(alltoallv_call(send, receive), c);
      for (int from = 0; from < c.size; ++from)
        for (MPI_Count i = 0; i < cells_from_to(from, c.rank); ++i)
          EXPECT_EQ(in.get(receives.first[static_cast<std::size_t>(from)] + i),
                    cell(number * 20 + c.rank, from, i));
      EXPECT_TRUE(in.holes_untouched());
    });
}

TEST(alltoallv, blocks_of_different_sizes_arrive_at_their_displacements) {
  every_form(Collective::alltoallv,
             [](object::Communicator& c, const Perform& perform) { exchange_varying(c, perform, false); });
}

TEST(alltoallw, blocks_of_different_types_arrive_at_their_displacements) {
  every_form(Collective::alltoallw,
             [](object::Communicator& c, const Perform& perform) { exchange_varying(c, perform, true); });
}

TEST(Movement, buffers_in_device_memory_are_refused) {
  make_types();
  run_ranks(2, Conditions{everything}, [](object::Communicator& c) {
    TestBuffer own(Layout::plain, 1), all(Layout::plain, 2);
    Buffer on_device = own.argument();
    on_device.kind = datatype::MemoryKind::device;
    EXPECT_EQ(run(broadcast_call(on_device, 0), c).code(), MPI_ERR_BUFFER);
    EXPECT_EQ(run(allgather_call(on_device, all.argument(0, 1), c), c).code(), MPI_ERR_BUFFER);
    Blocks blocks{all.address(), {}, {}, &all.type(), nullptr, datatype::MemoryKind::device};
    EXPECT_EQ(run(gatherv_call(own.argument(), blocks, 0, c), c).code(), MPI_ERR_BUFFER);
    EXPECT_NE(base::failure_text().find("memory of a GPU"), std::string::npos) << base::failure_text();
  });
}

} // namespace
} // namespace near::coll::test
