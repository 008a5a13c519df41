// Where each rank runs. Pure functions from a machine, the part of it that may be used, and the user's
// request to a set of processors for each rank: the same arguments give the same plan on any machine.
#pragma once

#include "topo/machine.h"
#include "topo/slots.h"

#include <string>
#include <string_view>
#include <vector>

namespace near::planning {

using base::Result;
using os::CpuSet;
using topo::Core;
using topo::Device;
using topo::Level;
using topo::Machine;
using topo::Slots;
using topo::Tier;

/// The order in which ranks take processors.
enum class Order {
  automatic, ///< packed for up to two ranks of one core each, otherwise spread
  packed,    ///< one core after another
  spread,    ///< blocks of neighbouring ranks over packages, nodes and caches, in proportion to their cores,
             ///< faster cores first
  round_robin, ///< one rank to each domain of `Request::domain` in turn
  ppr,         ///< `Request::per_domain` processes per resource: per domain of `Request::domain`
  by_nic,      ///< nearest to a NIC first; with several NICs one rank to each in turn
  rankfile,    ///< each rank where `Request::rankfile` says
};

/// How ranks are numbered over the domains of `Order::round_robin` and `Order::ppr`.
enum class Ranking {
  as_mapped, ///< in the order in which they are mapped
  fill,      ///< neighbours within one domain
  span,      ///< one to each domain in turn
};

/// The cores or processors that a rankfile, or a list on the command line, gives to one rank.
struct RankfileEntry {
  bool given = false;
  bool by_cpu = false; ///< `numbers` are the kernel's processor numbers; otherwise cores
  int package = -1;    ///< `numbers` count the cores of this package; -1: of the machine
  CpuSet numbers;
  unsigned line = 0; ///< line in the file, for messages; 0: there is no file
  std::string host;  ///< as written
};

struct Request {
  unsigned ranks = 1;
  unsigned threads = 1; ///< cores that each rank gets
  Order order = Order::automatic;
  Level domain = Level::core;
  unsigned per_domain = 0;
  std::string nic;                     ///< for by_nic: the NIC's name; empty: every NIC that carries messages
  std::vector<RankfileEntry> rankfile; ///< for `Order::rankfile`: by rank
  bool rankfile_repeats = false;       ///< ranks beyond the end of `rankfile` start again at its first entry
  std::string rankfile_name;           ///< for messages: its name, or the option that contains the list
  Ranking ranking = Ranking::as_mapped;
  bool may_share = false;      ///< more ranks than processors are intended
  bool must_not_share = false; ///< more ranks than processors are an error
  /// The number of threads that each rank will start (OMP_NUM_THREADS), used if `threads` was not chosen.
  unsigned expected_threads = 1;
  std::string expected_by;     ///< the source of expected_threads: "OMP_NUM_THREADS=4"
  bool threads_chosen = false; ///< the user chose how many cores each rank gets
  bool only_rank = false;      ///< the job has no other rank, on any machine
  bool by_hwthread = false;    ///< count hardware threads as cores
  bool bind_chosen = false;    ///< the user chose what to bind to
  bool bind = true;            ///< false: bind to nothing
  Level bind_to = Level::core;
};

/// Reads the argument of --map-by: core, slot, hwthread, l2, l3, numa, package, socket, node, spread, nic,
/// nic=<name>, ppr:N:<domain>, pe-list=<cores>, each with an optional :PE=n or :OVERSUBSCRIBE. A failure
/// names the most similar word.
Result parse_map_by(std::string_view text, Request& request);
/// Reads the argument of --rank-by: slot, node, fill, span.
Result parse_rank_by(std::string_view text, Request& request);
/// Reads the argument of --bind-to: none, hwthread, core, l2, l3, numa, package, socket, node. core:4 means
/// four cores; user:0,2-3 lists processors of the kernel, one entry for each rank.
Result parse_bind_to(std::string_view text, Request& request);
/// Puts ranks on the cores of a list such as "0-3,8": each rank on one of them in this order, or all ranks on
/// all of them. `option` is the option's name for messages.
Result use_cores(std::string_view list, bool one_each, const std::string& option, Request& request);
/// Puts ranks on the kernel's processors, one entry of the list for each rank, starting again at its end:
/// "0,1" or "0+4,1+5" or "0-3,4-7".
Result use_processors(std::string_view list, const std::string& option, Request& request);

/// Reads a rankfile: lines "rank N=HOST slot=SPEC", where SPEC is cores ("0-3,8"), cores of a package
/// ("1:0-3") or the kernel's processors ("cpu:0-3,16"); '#' begins a comment. The caller checks HOST. `name`
/// is the file's name, for messages.
Result parse_rankfile(const std::string& text, const std::string& name, Request& request);

/// Where one rank runs.
struct Binding {
  CpuSet cpus;               ///< empty: not bound
  CpuSet home;               ///< the cores that count as the rank's own, whatever it is bound to
  unsigned node = 0;         ///< index of the NUMA node of the rank's first core
  bool whole_domain = false; ///< bound to a whole domain, to which no other rank is mapped
  std::string text;          ///< "core 3 (cpus 3,19), node 0"
};

struct Plan {
  std::vector<Binding> bindings;  ///< by row: the position of a rank among those on this machine
  std::vector<unsigned> ranks;    ///< in MPI_COMM_WORLD, by row, in ascending order; empty: 0, 1, 2 and so on
  bool oversubscribed = false;    ///< more ranks than slots
  std::vector<std::string> notes; ///< decisions and their reasons, one sentence each
  unsigned rank_of(std::size_t row) const { return ranks.empty() ? static_cast<unsigned>(row) : ranks[row]; }
};

/// Makes the plan. Fails if the request cannot be met: no processor is allowed, or there are more ranks
/// than ppr allows.
Result make_plan(const Machine& machine, const Slots& slots, const Request& request, Plan& plan);

/// How many ranks this machine gets with `per_domain` ranks on each domain.
unsigned ranks_of_ppr(const Machine& machine, const Slots& slots, const Request& request);

/// The value of OMP_PLACES for a rank: each of its cores is a place, "{0,16},{1,17}". Empty if the rank has a
/// whole domain: an OpenMP runtime would pin the first thread, and with it all threads that do not belong to
/// OpenMP, to one core of it.
std::string openmp_places(const Machine& machine, const Binding& binding);

/// The machine, the slots and the decisions as text, one line each.
std::string head_text(const Machine& machine, const Slots& slots, const Plan& plan);
/// The bindings as text, one line for each rank.
std::string bindings_text(const Plan& plan);
/// The distance of each rank from the NIC, by row: the distance between the NIC's node and the farthest of the nodes of the rank's
/// processors, as the library reads it from the kernel (os::distance_to_node); 0 if unknown.
std::vector<std::uint32_t> distances_to(const Machine& machine, const Device& nic, const Plan& plan);
/// For each NIC that carries messages, the rank that would lead this machine in collectives
/// between machines, in one line; "" if there is no NIC or only one NUMA node. The library
/// elects leaders by the same distances, as reported by the kernel (coll/leaders.h).
std::string leaders_text(const Machine& machine, const Plan& plan);

} // namespace near::planning
