// Which algorithm a collective uses: the rows of algorithms.def, and the rule that chooses among them.
//
// The choice is a pure function of facts that are the same for every rank of the call: collective, bytes of the
// type signature, the operation's commutativity, in place or not (where all ranks must agree on it), group
// size, whether ranks share processors. It never depends on alignment, contiguity, where a buffer lies or what one
// rank measured: two ranks that choose differently hang. This layer lies below everything that could tell it such
// things, and below the algorithms, so `near info --coll` shows the choice without the library's other parts.
#pragma once

#include "abi/types.h"
#include "base/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace near::choice {

using base::Result;

enum class Collective : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce_scatter_block,
  reduce_scatter,
  scan,
  exscan,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  count,
};
inline constexpr int collective_count = static_cast<int>(Collective::count);

/// The facts that a choice may depend on.
struct Facts {
  Collective collective = Collective::barrier;
  /// Packed bytes: the vector (broadcast, reductions, scans; of the whole group's parts in reduce_scatter),
  /// one rank's block (gather, scatter, allgather, alltoall), all blocks (allgatherv). 0 for gatherv,
  /// scatterv, alltoallv, alltoallw and neighbor_..., where no rank knows what the others pass.
  MPI_Count bytes = 0;
  int size = 1;
  bool commutative = true;
  bool in_place = false;      ///< alltoall family
  bool recorded = false;      ///< nonblocking or persistent
  int nodes = 1;              ///< number of NUMA nodes on which the ranks run
  int shared_processors = 0;  ///< number of processors if the job has more ranks, 0 if each rank has its own
  bool area = false;          ///< the ranks have an area in shared memory, and the call may use it
  bool reads_memory = false;  ///< every rank can read the private memory of all others
  MPI_Count longest = 0;      ///< reduce_scatter: bytes of the longest block
  bool elementwise = true;    ///< reductions: predefined operation, elements without gaps
  int machines = 1;           ///< number of machines on which the ranks run
  int most_on_machine = 1;    ///< if there are several machines: ranks of the one with the most
  bool machines_equal = true; ///< all machines have the same number of ranks
  bool machines_in_order = true; ///< the ranks of each machine follow each other

  bool operator==(const Facts&) const = default;
};

/// The longest vector, in bytes, of an allreduce in two steps along a grid.
inline constexpr MPI_Count longest_along_grid = 1 << 10;

struct Algorithm {
  Collective collective;
  const char* name; ///< as in NEAR_COLL, unique within its collective
  /// Returns null if the algorithm gives the right result for these facts; otherwise what they lack, such as "needs
  /// a commutative operation".
  const char* (*lack)(const Facts& facts);
  /// Whether the algorithm is expected to be the fastest, after the rows above it have declined.
  bool (*wins)(const Facts& facts);
  bool admits(const Facts& facts) const { return lack(facts) == nullptr; }
};

/// All rows. Those of a collective are adjacent, and its last one (or last two, by in_place) wins wherever it
/// is admitted.
std::span<const Algorithm> algorithms();
/// The rows of one collective.
std::span<const Algorithm> algorithms(Collective collective);
/// The position of a row in algorithms().
inline std::size_t index_of(const Algorithm& row) {
  return static_cast<std::size_t>(&row - algorithms().data());
}
/// MPI's names of all collectives, in the order of the enumeration.
std::span<const std::string_view> collective_names();
/// MPI's name of the collective: "allreduce".
std::string_view name_of(Collective collective);
/// Returns the collective of that name. "bcast" also means broadcast.
std::optional<Collective> collective_named(std::string_view name);
/// What Facts::bytes is the size of: "the vector", "one block" or "all blocks"; "" where it is always 0.
std::string_view measure_of(Collective collective);
/// Whether one rank of the collective is its root.
bool has_root(Collective collective);

/// Returns the row that NEAR_COLL names if it is admitted; otherwise the first row of the collective that is
/// admitted and wins.
const Algorithm& choose(const Facts& facts);
/// Returns the row that NEAR_COLL names for the collective; null if there is none.
const Algorithm* named_algorithm(Collective collective);
/// About how many bytes a rank (the root, if there is one) publishes in an area.
MPI_Count published_bytes(const Facts& facts);
/// Whether the algorithm that is chosen if there is an area uses the area.
bool uses_area(Facts facts);

/// Whether the chosen algorithm publishes no data in the area, because it consists of messages or because ranks read the
/// data where it lies.
bool publishes_no_data(const Facts& facts);
/// Whether ranks read each other's private memory in this algorithm.
bool reads_memory(const Algorithm& algorithm);
/// Whether the algorithm has two levels: the ranks of each machine, and their leaders.
bool has_levels(const Algorithm& algorithm);

/// Reads the text of the knob NEAR_COLL: "auto", or "allreduce=ring,broadcast=binomial". Every process of a
/// job has the same text and the same number of shared processors. Fails with MPI_ERR_ARG; the message names the
/// unknown word and the nearest known one.
Result configure(std::string_view text, int shared_processors = 0);
/// The number of shared processors that was passed to configure().
int shared_processors();
bool ranks_share_processors();

} // namespace near::choice
