// Neighbourhood collectives on grids and graphs, compared with a list of edges.
#include "forms.h"

#include <algorithm>
#include <random>

namespace near::coll::test {
namespace {

using Lists = std::vector<std::vector<int>>;

/// An edge, with its index in the lists of both ranks.
struct Edge {
  int from, out; ///< destination `out` of rank `from`
  int to, in;    ///< is source `in` of rank `to`
};

struct Shape {
  std::vector<Topology> of_rank;
  std::vector<Edge> edges;
  const Topology& topology(const object::Communicator& c) const {
    return of_rank[static_cast<std::size_t>(c.rank)];
  }
};

int index(std::size_t i) { return static_cast<int>(i); }

/// A grid whose dimensions are periodic or not; ranks in row-major order.
Shape grid(const std::vector<int>& dims, const std::vector<bool>& periodic) {
  int size = 1;
  for (int extent : dims) size *= extent;
  Shape shape;
  for (int rank = 0; rank < size; ++rank) {
    Topology topology;
    topology.kind = MPI_CART;
    int stride = size;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      stride /= dims[d];
      const int at = rank / stride % dims[d];
      for (int step : {-1, 1}) {
        const int there = (at + step + dims[d]) % dims[d];
        int neighbour = rank + (there - at) * stride;
        if (!periodic[d] && there != at + step) neighbour = MPI_PROC_NULL;
        topology.sources.push_back(neighbour);
        topology.destinations.push_back(neighbour);
        // A block sent in direction -1 arrives from direction +1.
        const int out = 2 * index(d) + (step > 0), in = 2 * index(d) + (step < 0);
        if (neighbour != MPI_PROC_NULL) shape.edges.push_back({rank, out, neighbour, in});
      }
    }
    shape.of_rank.push_back(topology);
  }
  return shape;
}

/// Index of occurrence number `k` of `value`.
int occurrence(const std::vector<int>& list, int value, std::ptrdiff_t k) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] == value && k-- == 0) return index(i);
  ADD_FAILURE() << "an edge has one end only";
  return 0;
}

/// Occurrence k of b among a's destinations is the same edge as occurrence k of a among b's sources.
Shape graph(int kind, const Lists& destinations, const Lists& sources) {
  Shape shape;
  for (std::size_t rank = 0; rank < destinations.size(); ++rank) {
    Topology topology;
    topology.kind = kind;
    topology.destinations = destinations[rank];
    topology.sources = sources[rank];
    shape.of_rank.push_back(topology);
    const auto& own = destinations[rank];
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto before = std::count(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(i), own[i]);
      const auto& theirs = sources[static_cast<std::size_t>(own[i])];
      shape.edges.push_back({index(rank), index(i), own[i], occurrence(theirs, index(rank), before)});
    }
  }
  return shape;
}

/// Random edges, some of them several times; each rank lists its sources in a different order.
Shape random_graph(int size, std::size_t edges) {
  std::mt19937 random(static_cast<unsigned>(size));
  auto rank = [&] { return static_cast<std::size_t>(random() % static_cast<unsigned>(size)); };
  Lists destinations(static_cast<std::size_t>(size)), sources(destinations.size());
  for (std::size_t i = 0; i < edges; ++i) {
    const std::size_t from = rank(), to = rank();
    destinations[from].push_back(index(to));
    sources[to].push_back(index(from));
  }
  for (auto& list : sources) std::shuffle(list.begin(), list.end(), random);
  return graph(MPI_DIST_GRAPH, destinations, sources);
}

/// Every rank is a neighbour of every rank, itself included, twice.
Shape double_edges(int size) {
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.insert(all.end(), {size - 1 - rank, rank});
  const Lists lists(static_cast<std::size_t>(size), all);
  return graph(MPI_GRAPH, lists, lists);
}

std::vector<Shape> shapes(int size) {
  const int rows = size % 3 == 0 ? 3 : size % 2 == 0 ? 2 : 1;
  const Lists nobody(static_cast<std::size_t>(size));
  return {grid({size}, {true}),
          grid({rows, size / rows}, {true, false}),
          grid({1, size / rows, rows}, {true, true, true}),
          random_graph(size, 4 * static_cast<std::size_t>(size)),
          double_edges(size),
          graph(MPI_DIST_GRAPH, nobody, nobody)};
}

/// The value of a cell before anything arrives: the bytes of an untouched TestBuffer.
constexpr Cell untouched{-1515870811, -1515870811};

/// Checks the cells of this rank at the end. `first` returns where a block begins, `cells_of` how long it is.
void expect(const object::Communicator& c, const Shape& shape, TestBuffer& in, MPI_Count all,
            const std::function<MPI_Count(int)>& first, const std::function<MPI_Count(const Edge&)>& cells_of,
            const std::function<Cell(const Edge&, MPI_Count)>& value) {
  std::vector<Cell> wanted(static_cast<std::size_t>(all), untouched);
  for (const Edge& edge : shape.edges)
    for (MPI_Count i = 0; edge.to == c.rank && i < cells_of(edge); ++i)
      wanted[static_cast<std::size_t>(first(edge.in) + i)] = value(edge, i);
  for (MPI_Count i = 0; i < all; ++i) EXPECT_EQ(in.get(i), wanted[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(in.holes_untouched());
}

int count(const std::vector<int>& list) { return static_cast<int>(list.size()); }

/// Calls `each(number, shape)` for shapes of this size and several mixes of layouts.
template <class F>
void calls(int size, F each) {
  int number = 0;
  for (const Shape& shape : shapes(size))
    for (int mix = 0; mix < 3; ++mix) each(++number, shape);
}

constexpr MPI_Count block_cells[] = {0, 1, 33};

TEST(neighbor_allgather, every_rank_gets_the_blocks_of_its_sources) {
  every_form(Collective::neighbor_allgather, [](object::Communicator& c, const Perform& perform) {
    calls(c.size, [&](int number, const Shape& shape) {
      for (MPI_Count cells : block_cells) {
        const Topology& topology = shape.topology(c);
        const MPI_Count all = cells * (count(topology.sources) + 1); // space for one block more than arrives
        TestBuffer own(layout_at(number, c.rank), cells), in(layout_at(number + 1, c.rank), all);
        for (MPI_Count i = 0; i < cells; ++i) own.set(i, cell(number, c.rank, i));
        perform(neighbor_allgather_call(own.argument(), in.argument(0, cells), topology), c);
        expect(
            c, shape, in, all, [&](int block) { return block * cells; }, [&](const Edge&) { return cells; },
            [&](const Edge& edge, MPI_Count i) { return cell(number, edge.from, i); });
      }
    });
  });
}

TEST(neighbor_allgatherv, blocks_of_different_sizes_arrive_at_their_displacements) {
  every_form(Collective::neighbor_allgatherv, [](object::Communicator& c, const Perform& perform) {
    calls(c.size, [&](int number, const Shape& shape) {
      const Topology& topology = shape.topology(c);
      auto cells_from = [&](int rank) -> MPI_Count {
        return rank == MPI_PROC_NULL ? 2 : (number + rank) % 4;
      };
      const Layout layout = layout_at(number + 1, c.rank);
      Plan plan(count(topology.sources), layout,
                [&](int block) { return cells_from(topology.sources[static_cast<std::size_t>(block)]); });
      TestBuffer own(layout_at(number, c.rank), cells_from(c.rank)), in(layout, plan.cells);
      for (MPI_Count i = 0; i < cells_from(c.rank); ++i) own.set(i, cell(number, c.rank, i));
      perform(neighbor_allgatherv_call(own.argument(), plan.blocks(in), topology), c);
      expect(
          c, shape, in, plan.cells, [&](int block) { return plan.first[static_cast<std::size_t>(block)]; },
          [&](const Edge& edge) { return cells_from(edge.from); },
          [&](const Edge& edge, MPI_Count i) { return cell(number, edge.from, i); });
    });
  });
}

/// The contents of the block `out` of a rank.
Cell content_of(int number, int from, int out, MPI_Count i) { return cell(number, from, 100 * out + i); }

TEST(neighbor_alltoall, each_block_takes_its_own_edge) {
  every_form(Collective::neighbor_alltoall, [](object::Communicator& c, const Perform& perform) {
    calls(c.size, [&](int number, const Shape& shape) {
      for (MPI_Count cells : block_cells) {
        const Topology& topology = shape.topology(c);
        const int blocks = count(topology.destinations);
        const MPI_Count all = cells * (count(topology.sources) + 1);
        TestBuffer out(layout_at(number, c.rank), cells * blocks), in(layout_at(number + 1, c.rank), all);
        for (int block = 0; block < blocks; ++block)
          for (MPI_Count i = 0; i < cells; ++i)
            out.set(block * cells + i, content_of(number, c.rank, block, i));
        perform(neighbor_alltoall_call(out.argument(0, cells), in.argument(0, cells), topology), c);
        expect(
            c, shape, in, all, [&](int block) { return block * cells; }, [&](const Edge&) { return cells; },
            [&](const Edge& edge, MPI_Count i) { return content_of(number, edge.from, edge.out, i); });
      }
    });
  });
}

void exchange_with_neighbours(object::Communicator& c, const Perform& perform, bool typed) {
  calls(c.size, [&](int number, const Shape& shape) {
    const Topology& topology = shape.topology(c);
    auto cells_of = [&](const Edge& edge) -> MPI_Count { return (number + 3 * edge.from + edge.out) % 4; };
    // A block without an edge also has cells, which must not be touched.
    std::vector<MPI_Count> leaving(topology.destinations.size(), 2), arriving(topology.sources.size(), 2);
    for (const Edge& edge : shape.edges) {
      if (edge.from == c.rank) leaving[static_cast<std::size_t>(edge.out)] = cells_of(edge);
      if (edge.to == c.rank) arriving[static_cast<std::size_t>(edge.in)] = cells_of(edge);
    }
    auto at = [](const std::vector<MPI_Count>& list) {
      return [&list](int block) { return list[static_cast<std::size_t>(block)]; };
    };
    const Layout out_layout = layout_at(number, c.rank), in_layout = layout_at(number + 1, c.rank);
    Plan sends(count(topology.destinations), out_layout, at(leaving), typed);
    Plan receives(count(topology.sources), in_layout, at(arriving), typed);
    TestBuffer out(out_layout, sends.cells), in(in_layout, receives.cells);
    for (std::size_t block = 0; block < leaving.size(); ++block)
      for (MPI_Count i = 0; i < leaving[block]; ++i)
        out.set(sends.first[block] + i, content_of(number, c.rank, index(block), i));
    Blocks send = sends.blocks(out), receive = receives.blocks(in);
    std::vector<Datatype*> out_types(leaving.size(), send.type), in_types(arriving.size(), receive.type);
    if (typed) {
      send.types = out_types.data();
      receive.types = in_types.data();
      send.type = receive.type = nullptr;
    }
    perform(typed ? neighbor_alltoallw_call(send, receive, topology)
                  : neighbor_alltoallv_call(send, receive, topology),
            c);
    expect(c, shape, in, receives.cells, at(receives.first), cells_of,
           [&](const Edge& edge, MPI_Count i) { return content_of(number, edge.from, edge.out, i); });
  });
}

TEST(neighbor_alltoallv, blocks_of_different_sizes_take_their_own_edges) {
  every_form(Collective::neighbor_alltoallv, [](object::Communicator& c, const Perform& perform) {
    exchange_with_neighbours(c, perform, false);
  });
}

TEST(neighbor_alltoallw, blocks_of_different_types_take_their_own_edges) {
  every_form(Collective::neighbor_alltoallw, [](object::Communicator& c, const Perform& perform) {
    exchange_with_neighbours(c, perform, true);
  });
}

} // namespace
} // namespace near::coll::test
