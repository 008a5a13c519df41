// See choice.h. HACKING.md says how an algorithm is added.
#include "choice/choice.h"

#include "base/checked.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

namespace near::choice {
namespace {

/// Nonblocking calls with more steps consist of messages.
constexpr MPI_Count most_recorded_steps = 8192, typical_chunk = 32 << 10;
/// About how many steps a call in an area has: a few for each chunk (coll/shared/exchange.cpp) and rank. Each takes
/// about 300 bytes if it is recorded.
MPI_Count steps_in_area(const Facts& facts) {
  return (published_bytes(facts) / typical_chunk + 1) * (facts.size + 2);
}

// What algorithms require to give the right result. Each function returns null, or what the call lacks, in words that
// continue a sentence begun by the algorithm's name.
using Lack = const char*;

Lack any_call(const Facts&) { return nullptr; }
Lack in_area(const Facts& facts) {
  if (!facts.area) return "needs an area in shared memory";
  if (facts.recorded && steps_in_area(facts) > most_recorded_steps)
    return "would record more than 8192 steps of the nonblocking call";
  return nullptr;
}
Lack two_in_area(const Facts& facts) { return facts.size == 2 ? in_area(facts) : "needs two ranks"; }
Lack nodes_in_area(const Facts& facts) {
  return facts.nodes > 1 ? in_area(facts) : "needs ranks on several NUMA nodes";
}
Lack elements_in_area(const Facts& facts) {
  return facts.elementwise ? in_area(facts) : "needs a predefined operation on elements without gaps";
}
/// An exchange in two steps keeps both vectors of a rank in its pieces, which hold several of these.
Lack short_elements_in_area(const Facts& facts) {
  if (Lack lack = elements_in_area(facts)) return lack;
  static_assert(longest_along_grid == 1 << 10, "the text below names it");
  return facts.bytes <= longest_along_grid ? nullptr : "needs a vector of at most 1 KiB";
}
Lack commutative(const Facts& facts) { return facts.commutative ? nullptr : "needs a commutative operation"; }
Lack commutative_in_area(const Facts& facts) {
  return facts.commutative ? in_area(facts) : commutative(facts);
}
Lack power_of_two(const Facts& facts) {
  return base::is_power_of_two(static_cast<std::uint64_t>(facts.size)) ? nullptr
                                                                       : "needs a power of two of ranks";
}
/// For calls in two levels (coll/levels.h).
Lack by_machine(const Facts& facts) {
  return facts.machines > 1 && facts.most_on_machine > 1
             ? nullptr
             : "needs several machines, one of them with at least two ranks";
}
/// Leaders reduce their data in the order of the machines.
Lack reduces_by_machine(const Facts& facts) {
  if (Lack lack = by_machine(facts)) return lack;
  if (facts.commutative || facts.machines_in_order) return nullptr;
  return "needs a commutative operation, or ranks numbered machine by machine";
}
/// The leader keeps what all ranks of its machine send and receive, and both once more.
constexpr MPI_Count most_at_leader = 8 << 20;
Lack exchanges_by_machine(const Facts& facts) {
  if (Lack lack = by_machine(facts)) return lack;
  return facts.bytes <= most_at_leader / facts.size / facts.most_on_machine
             ? nullptr
             : "needs blocks that take at most 8 MiB at the leader of a machine";
}
Lack in_place(const Facts& facts) { return facts.in_place ? nullptr : "needs MPI_IN_PLACE"; }
Lack out_of_place(const Facts& facts) { return facts.in_place ? "does not work with MPI_IN_PLACE" : nullptr; }
Lack out_of_place_in_area(const Facts& facts) {
  return facts.in_place ? out_of_place(facts) : in_area(facts);
}
Lack reading_memory(const Facts& facts) {
  if (!facts.area) return in_area(facts);
  return facts.reads_memory ? nullptr : "needs ranks that can read each other's memory";
}
Lack out_of_place_reading(const Facts& facts) {
  return facts.in_place ? out_of_place(facts) : reading_memory(facts);
}

// Which algorithm is expected to be the fastest. The crossover points are where the formulas at the top of the
// algorithms' files cross, for the costs of messages inside one machine (alpha about a microsecond, beta about a tenth
// of a nanosecond per byte). All sizes are in bytes.
bool always(const Facts&) { return true; }
/// If ranks share processors: up to this many short messages cost rank 0 less than the other ranks' turns.
bool told_by_one(const Facts& facts) {
  return facts.shared_processors != 0 && facts.size <= 64 && facts.bytes <= 1 << 10;
}
/// Two ranks with a processor each: both send at once, or one of them does. Measured (doc/adr/0021).
bool is_pair(const Facts& facts) { return facts.size == 2 && facts.shared_processors == 0; }
bool pair_exchanges(const Facts& facts) { return is_pair(facts) && facts.bytes >= 4 << 10; }
bool pair_sends(const Facts& facts) { return is_pair(facts) && facts.bytes >= 16 << 10; }
/// Reductions by messages need temporary memory (up to the size of the vector if it is reduced in place), so they are
/// not used for the longest vectors.
constexpr MPI_Count most_temporary = 32 << 20;
bool pair_reduces(const Facts& facts) { return pair_exchanges(facts) && facts.bytes <= most_temporary; }
bool pair_reduces_at_root(const Facts& facts) { return pair_sends(facts) && facts.bytes <= most_temporary; }
/// Reading all vectors costs less than a second wait, or reads no more bytes than reading shares does. A wait is longer if
/// ranks share processors.
bool reads_all(const Facts& facts) {
  return facts.size == 2 || facts.bytes * facts.size <= (facts.shared_processors != 0 ? 96 << 10 : 32 << 10);
}
/// If every rank has its own processor, two steps along a grid, in which fewer ranks read each line, take less time than one
/// step. Measured with 3 to 16 ranks (doc/adr/0033); that a barrier of more ranks gains from it is an extrapolation.
/// Short recorded calls take one step: only a call that waits once is executed in two halves, without being recorded
/// (coll/shared/short_call.h).
bool many_meet(const Facts& facts) {
  return facts.size > 18 && facts.shared_processors == 0 && !facts.recorded;
}
bool many_exchange(const Facts& facts) {
  if (facts.size < 6 || facts.shared_processors != 0 || facts.recorded) return false;
  return facts.bytes >= (facts.size >= 12 ? 1 : (4 << 10) / facts.size);
}
bool many_reduce(const Facts& facts) {
  if (facts.size < 4 || facts.shared_processors != 0) return false;
  if (facts.size > 4 && facts.bytes > 32 << 10) return false;
  return facts.recorded ? !reads_all(facts) : facts.bytes >= std::max(1 << 10, (8 << 10) / facts.size);
}
/// For an allreduce. If all ranks share one or two processors, these do the work of every rank that reads all vectors. Up to
/// this size that costs less than the second turn that each rank needs if only one rank reads them. Measured on two processors
/// with 4 to 32 ranks.
bool all_read_all(const Facts& facts) {
  if (facts.shared_processors == 0 && !facts.recorded) // measured with 3 to 16 ranks (doc/adr/0033)
    return facts.size <= 2 ||
           facts.bytes <=
               std::max(MPI_Count{1} << 10, (MPI_Count{18} << 10) / (facts.size - 1) / (facts.size - 2));
  if (facts.shared_processors == 0 || facts.shared_processors > 2) return reads_all(facts);
  return facts.bytes * (facts.size - 2) <= 16 << 10;
}
/// If ranks share few processors, distributing a reduction gains little, and costs every rank another turn. Measured on
/// two processors; for more processors, an estimate: a turn takes as long as reducing 64 KiB.
bool root_reads_all(const Facts& facts) {
  if (reads_all(facts)) return true;
  switch (facts.shared_processors) {
  case 0: return facts.size == 3; // shares take 1.1 to 2 times as long at any length
  case 1: return true;
  case 2: return facts.bytes <= 1 << 20;
  default: return facts.bytes <= (64 << 10) / (facts.shared_processors - 1);
  }
}
/// For an allreduce, at any length: all ranks wait for the result anyway. Not measured with more processors.
bool root_reduces_alone(const Facts& facts) {
  return facts.shared_processors == 1 || facts.shared_processors == 2;
}
/// Fewer bytes cross between nodes, which is worth a second copy by one rank of each node.
bool saves_crossings(const Facts& facts) { return facts.size >= 2 * facts.nodes && facts.bytes >= 4 << 10; }
/// For more than two ranks with a processor each. Sending each block to one reader costs the root less than publishing
/// chunks that all ranks read while the root writes the next one. Measured with 3 to 16 ranks (doc/adr/0029).
bool have_processors(const Facts& facts) { return facts.size > 2 && facts.shared_processors == 0; }
/// Where ranks share processors: long blocks of many ranks. Measured on two processors with 4 to 16 ranks (doc/adr/0029).
bool long_parts(const Facts& facts) {
  if (have_processors(facts)) return facts.bytes >= 8 << 10;
  return facts.size > 4 && facts.bytes * (facts.size - 1) >= 7 << 18;
}
bool long_exchange(const Facts& facts) { return have_processors(facts) && facts.bytes >= 16 << 10; }
/// All blocks together no longer fit into the caches, so one copy by the kernel costs less than two without it.
bool longest_parts(const Facts& facts) {
  return have_processors(facts) && facts.bytes >= (4 << 20) / facts.size;
}
/// Recorded calls of many ranks that share processors also use messages: such a call publishes few chunks in each turn of its rank, so
/// long blocks take many turns. Measured on two processors with 4 to 16 ranks (doc/adr/0024).
bool exchange_of_messages(const Facts& facts) {
  if (facts.recorded && facts.shared_processors != 0)
    return facts.size > 4 && facts.bytes >= (1 << 20) / facts.size;
  return long_exchange(facts);
}
bool longest_exchange(const Facts& facts) {
  return long_exchange(facts) && facts.bytes >= (768 << 10) / facts.size;
}
/// A ring over all ranks takes as many steps as there are ranks; a ring over leaders takes as many as there are machines, but in two
/// levels all data is copied more often. So the size from which the former is faster grows with the ranks; `of_few` was measured.
MPI_Count grown(const Facts& facts, MPI_Count of_few) {
  return std::max<MPI_Count>(of_few, MPI_Count{4096} * facts.size);
}
/// In two levels, long data is copied once more, and only after it has crossed between machines. If ranks are numbered machine by machine,
/// a ring or tree over all of them crosses just as rarely. Measured with two ranks on each of four machines, both with a processor each
/// and on two processors (doc/adr/0039).
bool broadcast_crosses_less(const Facts& facts) {
  return facts.most_on_machine > 2 || !facts.machines_in_order;
}
bool reduce_crosses_less(const Facts& facts) {
  const MPI_Count measured = 32 << 10;
  return facts.bytes < (facts.size <= 16 ? measured : grown(facts, measured)) || !facts.machines_in_order;
}
bool allreduce_crosses_less(const Facts& facts) {
  return facts.bytes < grown(facts, 512 << 10) || !facts.machines_in_order;
}
/// Leaders exchange blocks of different sizes in as many rounds as there are machines; for equal ones there are other ways.
bool rounds_are_few(const Facts& facts) { return facts.machines_equal || facts.machines <= 8; }
bool allgather_crosses_less(const Facts& facts) {
  return (facts.bytes * facts.size < 64 << 10 && rounds_are_few(facts)) || !facts.machines_in_order;
}
bool few_bytes_to_each(const Facts& facts) { return facts.bytes <= 512 && rounds_are_few(facts); }
/// Between machines a message costs as much as copying about 30 KiB, within one as much as copying a few. Returns the size bound that
/// applies to these ranks.
MPI_Count bound(const Facts& facts, MPI_Count on_a_machine, MPI_Count between_machines) {
  return facts.machines > 1 ? between_machines : on_a_machine;
}
/// The logarithm in 1024ths, interpolated linearly between powers of two, so that what grows with p / log2 p does so everywhere.
MPI_Count log2_in_1024ths(MPI_Count value) {
  const int whole = std::bit_width(static_cast<std::uint64_t>(value)) - 1;
  const MPI_Count power = MPI_Count{1} << whole;
  return MPI_Count{1024} * whole + 1024 * (value - power) / power;
}
/// A ring of p ranks takes p steps where a tree or recursive doubling takes log2 p, each with all of the data; the ring moves it twice. So if
/// a message costs as much as a bytes, a ring of many ranks is faster from about a p / log2 p bytes on (allreduce), or a p / (log2 p - 2)
/// (broadcast). The bounds for few ranks were measured; those for many, on several machines, follow from that (doc/adr/0043).
bool long_broadcast(const Facts& facts) {
  if (facts.size < 4) return false;
  const MPI_Count of_few = bound(facts, 256 << 10, facts.size > 16 ? 512 << 10 : 1 << 20);
  if (facts.machines == 1 || facts.size <= 64) return facts.bytes >= of_few;
  return facts.bytes >= of_few / 16 * facts.size * 1024 / (log2_in_1024ths(facts.size) - 2048);
}
bool long_allreduce(const Facts& facts) {
  const MPI_Count of_few = bound(facts, 64 << 10, 128 << 10);
  if (facts.machines == 1 || facts.size <= 16) return facts.bytes >= of_few;
  return facts.bytes >= of_few / 4 * facts.size * 1024 / log2_in_1024ths(facts.size);
}
bool long_reduce(const Facts& facts) { return long_allreduce(facts) && facts.size >= 4; }
bool short_blocks(const Facts& facts) {
  return facts.bytes <= bound(facts, 2 << 10, 4 << 10) && facts.size >= 4;
}
/// The root of a scatter sends one message after another.
bool short_parts(const Facts& facts) {
  return facts.bytes <= bound(facts, 2 << 10, 32 << 10) && facts.size >= 4;
}
bool tiny_blocks(const Facts& facts) { return facts.bytes <= bound(facts, 256, 4 << 10) && facts.size >= 8; }
/// The whole result is short.
bool short_result(const Facts& facts) {
  // With many ranks on several machines, every step of a ring costs more than copying a block.
  constexpr MPI_Count of_sixteen = (256 << 10) / 16, most = 4 << 20;
  if (facts.machines > 1 && facts.size > 16) return facts.bytes <= std::min(of_sixteen, most / facts.size);
  return facts.bytes <= bound(facts, 32 << 10, 256 << 10) / facts.size;
}
bool long_or_few_ranks(const Facts& facts) { return facts.bytes > 4 << 10 || facts.size < 8; }
/// A rank of a scan reads the vectors of all lower ranks.
bool few_to_scan(const Facts& facts) { return facts.size <= 8; }

using enum Collective;

constexpr std::string_view pair_name = "pair", messages_name = "messages", single_copy_name = "single_copy",
                           by_machine_name = "by_machine";

constexpr auto rows = std::to_array<Algorithm>({
#define NEAR_ALGORITHM(collective, name, function, lack, wins) {collective, #name, lack, wins},
#include "choice/algorithms.def"
#undef NEAR_ALGORITHM
});

// clang-format off: several names a line
constexpr std::array<std::string_view, collective_count> names = {
    "barrier", "broadcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather",
    "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter_block", "reduce_scatter", "scan", "exscan",
    "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"};
// clang-format on

constexpr std::size_t number(Collective collective) { return static_cast<std::size_t>(collective); }

/// Index of each collective's first row.
constexpr auto first_rows = [] {
  std::array<std::size_t, collective_count> first{};
  for (std::size_t i = rows.size(); i-- > 0;) first[number(rows[i].collective)] = i;
  return first;
}();

/// The algorithm that NEAR_COLL names for each collective; null if the choice is automatic.
std::array<const Algorithm*, collective_count> named{};
int processors_shared = 0;

Result unknown(std::string_view what, std::string_view word, std::span<const std::string_view> known) {
  auto hint = base::did_you_mean(word, known);
  if (hint.empty())
    for (auto each : known) hint.append(hint.empty() ? "; known: " : ", ").append(each);
  return base::fail(MPI_ERR_ARG, "NEAR_COLL: '{}' is not {}{}", word, what, hint);
}

Result parse_pair(std::string_view pair, std::array<const Algorithm*, collective_count>& into) {
  auto equals = pair.find('=');
  if (equals == std::string_view::npos)
    return base::fail(MPI_ERR_ARG, "NEAR_COLL: '{}' is not of the form collective=algorithm", pair);
  auto collective = pair.substr(0, equals), algorithm = pair.substr(equals + 1);
  auto known_collective = collective_named(collective);
  if (!known_collective) return unknown("a collective", collective, names);
  const Algorithm*& wanted = into[number(*known_collective)];
  wanted = nullptr;
  if (algorithm == "auto") return {};
  std::vector<std::string_view> known{"auto"};
  for (const Algorithm& row : algorithms(*known_collective)) {
    known.emplace_back(row.name);
    if (row.name == algorithm) wanted = &row;
  }
  return wanted != nullptr ? Result{} : unknown("an algorithm of this collective", algorithm, known);
}

} // namespace

std::span<const Algorithm> algorithms() { return rows; }

std::span<const Algorithm> algorithms(Collective collective) {
  auto first = rows.begin() + static_cast<std::ptrdiff_t>(first_rows[number(collective)]);
  return {first,
          std::find_if(first, rows.end(), [=](const auto& row) { return row.collective != collective; })};
}

std::span<const std::string_view> collective_names() { return names; }

std::string_view name_of(Collective collective) { return names[number(collective)]; }

std::optional<Collective> collective_named(std::string_view name) {
  if (name == "bcast") return broadcast; // the name of the MPI function
  auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return {};
  return static_cast<Collective>(at - names.begin());
}

std::string_view measure_of(Collective collective) {
  switch (collective) {
  case broadcast:
  case reduce:
  case allreduce:
  case scan:
  case exscan: return "the vector";
  case gather:
  case scatter:
  case allgather:
  case alltoall: return "one block";
  case allgatherv:
  case reduce_scatter:
  case reduce_scatter_block: return "all blocks";
  default: return "";
  }
}

bool has_root(Collective collective) {
  return collective == broadcast || collective == reduce || collective == gather || collective == gatherv ||
         collective == scatter || collective == scatterv;
}

int shared_processors() { return processors_shared; }

bool ranks_share_processors() { return processors_shared != 0; }

const Algorithm* named_algorithm(Collective collective) { return named[number(collective)]; }

const Algorithm& choose(const Facts& facts) {
  const auto index = number(facts.collective);
  if (named[index] != nullptr && named[index]->admits(facts)) return *named[index];
  const Algorithm* row = &rows[first_rows[index]];
  while (!(row->admits(facts) && row->wins(facts))) ++row;
  return *row;
}

MPI_Count published_bytes(const Facts& facts) {
  const bool part_for_each = facts.collective == alltoall || facts.collective == scatter;
  return std::max(facts.bytes, facts.longest * facts.size) * (part_for_each ? facts.size : 1);
}

bool uses_area(Facts facts) {
  facts.area = true;
  const Algorithm& row = choose(facts);
  facts.area = false;
  return !row.admits(facts);
}

bool publishes_no_data(const Facts& facts) {
  const std::string_view chosen = choose(facts).name;
  return chosen == pair_name || chosen == messages_name || chosen == single_copy_name;
}

bool reads_memory(const Algorithm& algorithm) { return algorithm.name == single_copy_name; }
bool has_levels(const Algorithm& algorithm) { return algorithm.name == by_machine_name; }

Result configure(std::string_view text, int shared_processors) {
  std::array<const Algorithm*, collective_count> wanted{};
  if (text != "auto")
    while (!text.empty()) {
      auto comma = std::min(text.find(','), text.size());
      NEAR_TRY(parse_pair(text.substr(0, comma), wanted));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  named = wanted;
  processors_shared = shared_processors;
  return {};
}

} // namespace near::choice
