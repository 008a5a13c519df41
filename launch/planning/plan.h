// Where each rank runs: from a machine, what of it may be used, and what the user asked for, to a set of
// processors a rank. Pure functions: the same arguments give the same plan on any machine.
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
  automatic, ///< packed up to two ranks of one core each, else spread
  packed,    ///< one core after the other
  spread,    ///< blocks of neighbouring ranks over packages, nodes and caches, in proportion to their cores,
             ///< faster cores first
  round_robin, ///< one rank to each domain of `Request::domain` in turn
  ppr,         ///< `Request::per_domain` processes per resource: per domain of `Request::domain`
  by_nic,      ///< nearest to a NIC first; with several NICs one rank to each in turn
  rankfile,    ///< each rank where `Request::rankfile` says
};

/// How ranks are numbered over the domains of `Order::round_robin` and `Order::ppr`.
enum class Ranking {
  as_mapped, ///< in the order in which they take their places
  fill,      ///< neighbours within one domain
  span,      ///< one to each domain in turn
};

/// Where a rank file, or a list of processors, puts one rank.
struct RankfileEntry {
  bool given = false;
  bool by_cpu = false; ///< `numbers` are the kernel's processors; else cores
  int package = -1;    ///< `numbers` count the cores of this package; -1: of the machine
  CpuSet numbers;
  unsigned line = 0; ///< of the file, for messages; 0: of no file
  std::string host;  ///< as written
};

struct Request {
  unsigned ranks = 1;
  unsigned threads = 1; ///< cores that each rank gets
  Order order = Order::automatic;
  Level domain = Level::core;
  unsigned per_domain = 0;
  std::string nic;                     ///< of by_nic: its name; empty: every NIC that carries messages
  std::vector<RankfileEntry> rankfile; ///< of `Order::rankfile`: by rank
  bool rankfile_repeats = false;       ///< ranks beyond the end of `rankfile` begin at its first entry again
  std::string rankfile_name;           ///< for messages: its name, or the option that has the list
  Ranking ranking = Ranking::as_mapped;
  bool may_share = false;      ///< more ranks than processors are meant so
  bool must_not_share = false; ///< more ranks than processors are an error
  /// Threads that each rank will start (OMP_NUM_THREADS), where nobody said how many cores it gets.
  unsigned expected_threads = 1;
  std::string expected_by;     ///< who says so: "OMP_NUM_THREADS=4"
  bool threads_chosen = false; ///< the user said how many cores each rank gets
  bool by_hwthread = false;    ///< count hardware threads as cores
  bool bind_chosen = false;    ///< the user said what to bind to
  bool bind = true;            ///< false: to nothing
  Level bind_to = Level::core;
};

/// Reads the words of --map-by: core, slot, hwthread, l2, l3, numa, package, socket, node, spread,
/// nic, nic=<name>, ppr:N:<domain>, pe-list=<cores>, each with an optional :PE=n or :OVERSUBSCRIBE. Fails
/// with the nearest word.
Result parse_map_by(std::string_view text, Request& request);
/// Reads the words of --rank-by: slot, node, fill, span.
Result parse_rank_by(std::string_view text, Request& request);
/// Reads the words of --bind-to: none, hwthread, core, l2, l3, numa, package, socket, node; core:4 is four
/// cores; user:0,2-3 is the kernel's processors, one entry a rank.
Result parse_bind_to(std::string_view text, Request& request);
/// Puts ranks on the cores of a list such as "0-3,8": each rank on one of them, in this order, or all ranks
/// on all of them. `option` is what the messages call it.
Result use_cores(std::string_view list, bool one_each, const std::string& option, Request& request);
/// Puts ranks on the kernel's processors, one entry of the list each, beginning again at its end:
/// "0,1" or "0+4,1+5" or "0-3,4-7".
Result use_processors(std::string_view list, const std::string& option, Request& request);

/// Reads a rank file: lines "rank N=HOST slot=SPEC", where SPEC is cores ("0-3,8"), cores of a package
/// ("1:0-3") or the kernel's processors ("cpu:0-3,16"); '#' begins a comment. Which HOST is meant, the
/// caller judges. `name` is the file's, for messages.
Result parse_rankfile(const std::string& text, const std::string& name, Request& request);

/// Where one rank runs.
struct Binding {
  CpuSet cpus;       ///< empty: not bound
  CpuSet home;       ///< the cores that are counted as its own, whatever it is bound to
  unsigned node = 0; ///< index of the NUMA node of its first core
  std::string text;  ///< "core 3 (cpus 3,19), node 0"
};

struct Plan {
  std::vector<Binding> bindings;
  bool oversubscribed = false;    ///< more ranks than slots
  std::vector<std::string> notes; ///< what was decided and why, one sentence each
};

/// Fails when the request cannot be met: no processor allowed, more ranks than ppr gives room for.
Result make_plan(const Machine& machine, const Slots& slots, const Request& request, Plan& plan);

/// How many ranks a request for `per_domain` ranks to each domain makes on this machine.
unsigned ranks_of_ppr(const Machine& machine, const Slots& slots, const Request& request);

/// OMP_PLACES for a rank: each of its cores a place, "{0,16},{1,17}".
std::string openmp_places(const Machine& machine, const Binding& binding);

/// For people: machine, slots and what was decided, a line each.
std::string head_text(const Machine& machine, const Slots& slots, const Plan& plan);
/// For people: a line a rank.
std::string bindings_text(const Plan& plan);

} // namespace near::planning
