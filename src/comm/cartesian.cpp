// Cartesian topologies. Source: MPI 5.0, section 8.5. Ranks are in row-major order.
#include "comm/exchange.h"
#include "comm/order.h"

namespace near::comm {

using object::Channel;
using object::Topology;

namespace {

void find_neighbours(Topology& grid) {
  std::vector<int> coords = grid.coords;
  for (std::size_t i = 0; i < coords.size(); ++i) {
    for (int step : {-1, 1}) {
      coords[i] = grid.coords[i] + step;
      grid.sources.push_back(rank_at(grid, coords));
    }
    coords[i] = grid.coords[i];
  }
  grid.destinations = grid.sources;
}

std::unique_ptr<Topology> make_grid(std::span<const int> dims, std::span<const int> periods, int rank) {
  auto grid = std::make_unique<Topology>();
  grid->kind = MPI_CART;
  grid->dims.assign(dims.begin(), dims.end());
  for (int period : periods) grid->periods.push_back(period != 0 ? 1 : 0);
  grid->coords.resize(dims.size());
  coords_of(*grid, rank, grid->coords);
  find_neighbours(*grid);
  return grid;
}

/// The number of processes in the grid. Fails with MPI_ERR_DIMS if it is invalid, or is more than `parent` has.
Result size_of_grid(const Communicator& parent, std::span<const int> dims, int& size) {
  std::int64_t cells = 1;
  for (int extent : dims) {
    if (extent <= 0)
      return base::fail(MPI_ERR_DIMS, "a grid cannot have {} processes in a dimension", extent);
    // Counts beyond any number of processes need not be exact, but must not overflow.
    cells = std::min<std::int64_t>(cells * extent, std::int64_t{1} << 31);
  }
  if (cells > parent.size)
    return base::fail(MPI_ERR_DIMS, "the grid needs {} processes, and {} has {}",
                      cells < std::int64_t{1} << 31 ? std::to_string(cells) : "more than 2147483647",
                      object::describe(parent), parent.size);
  size = static_cast<int>(cells);
  return {};
}

} // namespace

int rank_at(const Topology& grid, std::span<const int> coords) {
  int rank = 0;
  for (std::size_t i = 0; i < grid.dims.size(); ++i) {
    int extent = grid.dims[i], at = coords[i];
    if (at < 0 || at >= extent) {
      if (grid.periods[i] == 0) return MPI_PROC_NULL;
      at %= extent;
      if (at < 0) at += extent;
    }
    rank = rank * extent + at;
  }
  return rank;
}

void coords_of(const Topology& grid, int rank, std::span<int> coords) {
  for (std::size_t i = grid.dims.size(); i-- > 0;) {
    coords[i] = rank % grid.dims[i];
    rank /= grid.dims[i];
  }
}

Result create_cartesian(Communicator& parent, std::span<const int> dims, std::span<const int> periods,
                        bool reorder, Communicator*& made) {
  int cells = 0;
  NEAR_TRY(size_of_grid(parent, dims, cells));
  Communicator* fresh = nullptr;
  if (reorder && may_reorder(parent, cells)) {
    std::vector<int> order;
    NEAR_TRY(agree_on_order(parent, pattern_of_grid(dims, periods), order));
    NEAR_TRY(build_in_order(parent, order, fresh));
  } else {
    NEAR_TRY(build_on_first(parent, cells, fresh));
  }
  if (fresh != nullptr) fresh->topology = make_grid(dims, periods, fresh->rank);
  made = fresh;
  return {};
}

Result rank_in_grid(const Communicator& parent, std::span<const int> dims, std::span<const int> periods,
                    int& rank) {
  int cells = 0;
  NEAR_TRY(size_of_grid(parent, dims, cells));
  if (may_reorder(parent, cells))
    rank = own_rank_in(parent, pattern_of_grid(dims, periods));
  else
    rank = parent.rank < cells ? parent.rank : MPI_UNDEFINED;
  return {};
}

Result cartesian_sub(Communicator& parent, std::span<const int> remain, Communicator*& made) {
  const Topology& grid = *parent.topology;
  // Each process can compute the ranks of its slice, so only the context has to be sent.
  std::vector<int> dims, periods;
  int count = 1;
  for (std::size_t i = 0; i < grid.dims.size(); ++i)
    if (remain[i] != 0) {
      dims.push_back(grid.dims[i]);
      periods.push_back(grid.periods[i]);
      count *= grid.dims[i];
    }
  Topology slice;
  slice.dims = dims;
  std::vector<int> ranks(static_cast<std::size_t>(count)), inside(dims.size()), coords = grid.coords;
  int position = 0;
  for (int at = 0; at < count; ++at) {
    coords_of(slice, at, inside);
    for (std::size_t i = 0, next = 0; i < grid.dims.size(); ++i)
      if (remain[i] != 0) coords[i] = inside[next++];
    int rank = rank_at(grid, coords);
    ranks[static_cast<std::size_t>(at)] = rank;
    if (rank == parent.rank) position = at;
  }
  std::uint64_t context = position == 0 ? object::new_context() : 0;
  NEAR_TRY(tell({parent, ranks, position, count, next_tag(parent), Channel::internal}, context));
  Communicator* fresh = nullptr;
  NEAR_TRY(build(parent, object::group_include(*parent.group, ranks), context, fresh));
  fresh->topology = make_grid(dims, periods, fresh->rank);
  made = fresh;
  return {};
}

} // namespace near::comm
