// See registry.h. To add an algorithm: a file in its collective's folder, a line in algorithms.h, a row here.
#include "coll/registry.h"

#include "base/checked.h"
#include "base/knob.h"
#include "base/text.h"
#include "coll/algorithms.h"

#include <algorithm>
#include <array>
#include <string>

namespace near::coll {
namespace {

// The crossing points are where the formulas at the heads of the algorithms' files cross for the costs of
// messages inside one machine (alpha about a microsecond, beta about a tenth of a nanosecond per byte). All
// bytes.
constexpr MPI_Count long_broadcast = 256 << 10;
constexpr MPI_Count long_reduction = 64 << 10;
constexpr MPI_Count short_block = 2 << 10;
constexpr MPI_Count short_allgather = 32 << 10; // the whole result
constexpr MPI_Count tiny_block = 256;
constexpr MPI_Count short_reduce_scatter = 4 << 10;
/// Where ranks share processors: up to this many short messages cost rank 0 less than the other ranks' turns.
constexpr int most_told_by_one = 64;
constexpr MPI_Count short_told_by_one = 1 << 10;

/// Bytes of all ranks' vectors that each of them may read; and the same where they scan.
constexpr MPI_Count short_for_all = 32 << 10;
constexpr int most_scanned = 8;

/// Nonblocking calls with more steps consist of messages.
constexpr MPI_Count most_recorded_steps = 8 << 10, typical_chunk = 32 << 10;

bool always(const Facts&) { return true; }
bool commutative(const Facts& facts) { return facts.commutative; }
bool out_of_place(const Facts& facts) { return !facts.in_place; }
bool in_place(const Facts& facts) { return facts.in_place; }
bool power_of_two(const Facts& facts) {
  return base::is_power_of_two(static_cast<std::uint64_t>(facts.size));
}
bool short_of(const Facts& facts, MPI_Count limit) { return facts.bytes <= limit; }
bool told_by_one(const Facts& facts) {
  return facts.shared_processors && facts.size <= most_told_by_one && short_of(facts, short_told_by_one);
}
/// About how many steps a call in an area has, each of which takes some 300 bytes if it is recorded: a few for each chunk
/// (shared/exchange.cpp) and rank.
MPI_Count steps_in_area(const Facts& facts) {
  return (published_bytes(facts) / typical_chunk + 1) * (facts.size + 2);
}
bool in_area(const Facts& facts) {
  return facts.area && (!facts.recorded || steps_in_area(facts) <= most_recorded_steps);
}
bool in_area_out_of_place(const Facts& facts) { return in_area(facts) && !facts.in_place; }
bool elements_in_area(const Facts& facts) { return in_area(facts) && facts.elementwise; }
/// Reading all vectors costs less than a second wait, or no more bytes than reading shares does.
bool reads_all(const Facts& facts) { return facts.size == 2 || facts.bytes * facts.size <= short_for_all; }
bool short_result(const Facts& facts) { return facts.bytes <= short_allgather / facts.size; }

using enum Collective;

constexpr const char* sharing = "ranks that share memory";
constexpr const char* sharing_out_of_place = "ranks that share memory, not MPI_IN_PLACE";
constexpr const char* sharing_elements =
    "ranks that share memory, predefined operations on elements without gaps";

constexpr auto rows = std::to_array<Algorithm>({
    {barrier, "shared", barrier_shared, in_area, always, sharing},
    {barrier, "linear", barrier_linear, always, told_by_one, ""},
    {barrier, "dissemination", barrier_dissemination, always, always, ""},

    {broadcast, "shared", broadcast_shared, in_area, always, sharing},
    {broadcast, "scatter_allgather", broadcast_scatter_allgather, always,
     [](const Facts& f) { return f.bytes >= long_broadcast && f.size >= 4; }, ""},
    {broadcast, "binomial", broadcast_binomial, always, always, ""},

    {reduce, "shared_flat", reduce_shared_flat, elements_in_area, reads_all, sharing_elements},
    {reduce, "shared_shares", reduce_shared_shares, elements_in_area, always, sharing_elements},
    {reduce, "ring_gather", reduce_ring_gather, commutative,
     [](const Facts& f) { return f.bytes >= long_reduction && f.size >= 4; }, "commutative operations"},
    {reduce, "binomial", reduce_binomial, always, always, ""},

    {allreduce, "shared_flat", allreduce_shared_flat, elements_in_area, reads_all, sharing_elements},
    {allreduce, "shared_shares", allreduce_shared_shares, elements_in_area, always, sharing_elements},
    {allreduce, "linear", allreduce_linear, always, told_by_one, ""},
    {allreduce, "ring", allreduce_ring, commutative, [](const Facts& f) { return f.bytes >= long_reduction; },
     "commutative operations"},
    {allreduce, "recursive_doubling", allreduce_recursive_doubling, always, always, ""},

    {gather, "shared", gather_shared, in_area, always, sharing},
    {gather, "binomial", gather_binomial, always,
     [](const Facts& f) { return short_of(f, short_block) && f.size >= 4; }, ""},
    {gather, "linear", gather_linear, always, always, ""},
    {gatherv, "shared", gatherv_shared, in_area, always, sharing},
    {gatherv, "linear", gatherv_linear, always, always, ""},

    {scatter, "shared", scatter_shared, in_area, always, sharing},
    {scatter, "binomial", scatter_binomial, always,
     [](const Facts& f) { return short_of(f, short_block) && f.size >= 4; }, ""},
    {scatter, "linear", scatter_linear, always, always, ""},
    {scatterv, "shared", scatterv_shared, in_area, always, sharing},
    {scatterv, "linear", scatterv_linear, always, always, ""},

    {allgather, "shared", allgather_shared, in_area, always, sharing},
    {allgather, "recursive_doubling", allgather_recursive_doubling, power_of_two, short_result,
     "a power of two of ranks"},
    {allgather, "bruck", allgather_bruck, always, short_result, ""},
    {allgather, "ring", allgather_ring, always, always, ""},
    {allgatherv, "shared", allgatherv_shared, in_area, always, sharing},
    {allgatherv, "ring", allgatherv_ring, always, always, ""},

    {alltoall, "shared", alltoall_shared, in_area, always, sharing},
    {alltoall, "bruck", alltoall_bruck, always,
     [](const Facts& f) { return short_of(f, tiny_block) && f.size >= 8; }, ""},
    {alltoall, "swap", alltoall_swap, in_place, always, "MPI_IN_PLACE"},
    {alltoall, "pairwise", alltoall_pairwise, out_of_place, always, "not MPI_IN_PLACE"},
    {alltoallv, "shared", alltoallv_shared, in_area_out_of_place, always, sharing_out_of_place},
    {alltoallv, "swap", alltoallv_swap, in_place, always, "MPI_IN_PLACE"},
    {alltoallv, "pairwise", alltoallv_pairwise, out_of_place, always, "not MPI_IN_PLACE"},
    {alltoallw, "shared", alltoallv_shared, in_area_out_of_place, always, sharing_out_of_place},
    {alltoallw, "swap", alltoallv_swap, in_place, always, "MPI_IN_PLACE"},
    {alltoallw, "pairwise", alltoallv_pairwise, out_of_place, always, "not MPI_IN_PLACE"},

    {reduce_scatter_block, "shared", reduce_scatter_shared, elements_in_area, always, sharing_elements},
    {reduce_scatter_block, "pairwise", reduce_scatter_pairwise, commutative,
     [](const Facts& f) { return !short_of(f, short_reduce_scatter) || f.size < 8; },
     "commutative operations"},
    {reduce_scatter_block, "via_root", reduce_scatter_via_root, always, always, ""},
    {reduce_scatter, "shared", reduce_scatter_shared, elements_in_area, always, sharing_elements},
    {reduce_scatter, "pairwise", reduce_scatter_pairwise, commutative,
     [](const Facts& f) { return !short_of(f, short_reduce_scatter) || f.size < 8; },
     "commutative operations"},
    {reduce_scatter, "via_root", reduce_scatter_via_root, always, always, ""},

    {scan, "shared", scan_shared, elements_in_area, [](const Facts& f) { return f.size <= most_scanned; },
     sharing_elements},
    {scan, "recursive_doubling", scan_recursive_doubling, always, always, ""},
    {exscan, "shared", exscan_shared, elements_in_area, [](const Facts& f) { return f.size <= most_scanned; },
     sharing_elements},
    {exscan, "recursive_doubling", exscan_recursive_doubling, always, always, ""},

    {neighbor_allgather, "linear", neighbor_allgather_linear, always, always, ""},
    {neighbor_allgatherv, "linear", neighbor_allgatherv_linear, always, always, ""},
    {neighbor_alltoall, "linear", neighbor_alltoall_linear, always, always, ""},
    {neighbor_alltoallv, "linear", neighbor_alltoallv_linear, always, always, ""},
    {neighbor_alltoallw, "linear", neighbor_alltoallv_linear, always, always, ""},
});

constexpr std::array<std::string_view, collective_count> names = {"barrier",
                                                                  "broadcast",
                                                                  "reduce",
                                                                  "allreduce",
                                                                  "gather",
                                                                  "gatherv",
                                                                  "scatter",
                                                                  "scatterv",
                                                                  "allgather",
                                                                  "allgatherv",
                                                                  "alltoall",
                                                                  "alltoallv",
                                                                  "alltoallw",
                                                                  "reduce_scatter_block",
                                                                  "reduce_scatter",
                                                                  "scan",
                                                                  "exscan",
                                                                  "neighbor_allgather",
                                                                  "neighbor_allgatherv",
                                                                  "neighbor_alltoall",
                                                                  "neighbor_alltoallv",
                                                                  "neighbor_alltoallw"};

/// Index of each collective's first row.
constexpr auto first_rows = [] {
  std::array<std::size_t, collective_count> first{};
  for (std::size_t i = rows.size(); i-- > 0;) first[static_cast<std::size_t>(rows[i].collective)] = i;
  return first;
}();

/// What NEAR_COLL names, by collective; null: automatic.
std::array<const Algorithm*, collective_count> named{};
bool processors_are_shared = false;

Result unknown(std::string_view what, std::string_view word, std::span<const std::string_view> known) {
  auto hint = base::did_you_mean(word, known);
  if (hint.empty())
    for (auto each : known) hint.append(hint.empty() ? "; known: " : ", ").append(each);
  return base::fail(MPI_ERR_ARG, "NEAR_COLL: '{}' is not a known {}{}", word, what, hint);
}

Result parse_pair(std::string_view pair, std::array<const Algorithm*, collective_count>& into) {
  auto equals = pair.find('=');
  if (equals == std::string_view::npos)
    return base::fail(MPI_ERR_ARG, "NEAR_COLL: '{}' is not of the form collective=algorithm", pair);
  auto collective = pair.substr(0, equals), algorithm = pair.substr(equals + 1);
  if (collective == "bcast") collective = "broadcast"; // as the function is called
  auto at = std::find(names.begin(), names.end(), collective);
  if (at == names.end()) return unknown("collective", collective, names);
  auto index = static_cast<std::size_t>(at - names.begin());
  if (algorithm == "auto") {
    into[index] = nullptr;
    return {};
  }
  std::vector<std::string_view> known{"auto"};
  for (const Algorithm& row : rows) {
    if (static_cast<std::size_t>(row.collective) != index) continue;
    known.emplace_back(row.name);
    if (row.name == algorithm) {
      into[index] = &row;
      return {};
    }
  }
  return unknown("algorithm of this collective", algorithm, known);
}

} // namespace

std::span<const Algorithm> algorithms() { return rows; }

std::string_view name_of(Collective collective) { return names[static_cast<std::size_t>(collective)]; }

bool has_root(Collective collective) {
  return collective == broadcast || collective == reduce || collective == gather || collective == gatherv ||
         collective == scatter || collective == scatterv;
}

bool ranks_share_processors() { return processors_are_shared; }

Facts facts_of(const Call& call, int size) {
  Facts facts{.collective = call.collective, .size = size, .shared_processors = processors_are_shared};
  if (call.operation != nullptr) {
    facts.commutative = call.operation->commutative;
    facts.elementwise = call.operation->builtin != datatype::Builtin::user && call.send.type->contiguous;
  }
  switch (call.collective) {
  case alltoall: facts.in_place = call.in_place; [[fallthrough]];
  case broadcast:
  case scatter:
  case allgather:
    // At the root of a scatter the receive buffer is the root's own block, so it is right there too.
    facts.bytes = call.receive.bytes();
    break;
  case gather:
  case reduce:
  case allreduce:
  case scan:
  case exscan: facts.bytes = call.send.bytes(); break;
  case reduce_scatter_block: facts.bytes = call.send.bytes() * size; break;
  case reduce_scatter:
    for (int i = 0; i < size; ++i) {
      facts.bytes += call.receive_blocks.counts[i];
      facts.longest = std::max<MPI_Count>(facts.longest, call.receive_blocks.counts[i]);
    }
    facts.bytes *= call.send.type->size;
    facts.longest *= call.send.type->size;
    break;
  case allgatherv:
    for (int i = 0; i < size; ++i) facts.bytes += call.receive_blocks.counts[i];
    facts.bytes *= call.receive_blocks.type->size;
    break;
  case alltoallv:
  case alltoallw: facts.in_place = call.in_place; break;
  default: break;
  }
  return facts;
}

const Algorithm& choose(const Facts& facts) {
  auto index = static_cast<std::size_t>(facts.collective);
  if (named[index] != nullptr && named[index]->admits(facts)) return *named[index];
  const Algorithm* row = &rows[first_rows[index]];
  while (!(row->admits(facts) && row->wins(facts))) ++row;
  return *row;
}

MPI_Count published_bytes(const Facts& facts) {
  const bool part_for_each =
      facts.collective == Collective::alltoall || facts.collective == Collective::scatter;
  return std::max(facts.bytes, facts.longest * facts.size) * (part_for_each ? facts.size : 1);
}

bool uses_area(Facts facts) {
  facts.area = true;
  const Algorithm& row = choose(facts);
  facts.area = false;
  return !row.admits(facts);
}

Result run(CollectiveGroup& group, const Call& call) {
  Facts facts = facts_of(call, group.size());
  facts.recorded = group.schedule() != nullptr;
  facts.area = group.area() != nullptr;
  return choose(facts).run(group, call);
}

Result configure(std::string_view text, bool shared_processors) {
  std::array<const Algorithm*, collective_count> wanted{};
  if (text != "auto")
    while (!text.empty()) {
      auto comma = std::min(text.find(','), text.size());
      NEAR_TRY(parse_pair(text.substr(0, comma), wanted));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  named = wanted;
  processors_are_shared = shared_processors;
  return {};
}

} // namespace near::coll
