// Where each rank runs: from a machine, what of it may be used, and what the user asked for, to a set of
// processors a rank. Pure functions: the same arguments give the same plan on any machine.
#pragma once

#include "os/limits.h"
#include "topo/machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace near::topo {

/// How many ranks fit without sharing a processor.
struct Slots {
  unsigned count = 1;
  CpuSet allowed;     ///< the processors that may be used
  std::string reason; ///< "2: affinity mask 4, cpuset 4, cpu.max 1.5"
};
/// min(affinity mask, cpuset, processor time rounded up), at least 1.
Slots count_slots(const CpuSet& affinity, const os::Limits& limits);
/// Of a recorded machine: what its description allows.
Slots slots_of_recorded(const Machine& machine);

/// The order in which ranks take processors.
enum class Order {
  automatic, ///< packed up to two ranks of one core each, else spread
  packed,    ///< one core after the other
  spread,    ///< blocks of neighbouring ranks over packages, nodes and caches, in proportion to their cores,
             ///< faster cores first
  dealt,     ///< one rank to each domain of `Request::domain` in turn
  filled,    ///< `Request::per_domain` ranks to each domain
};

struct Request {
  unsigned ranks = 1;
  unsigned threads = 1; ///< cores that each rank gets
  Order order = Order::automatic;
  Level domain = Level::core;
  unsigned per_domain = 0;
  bool by_hwthread = false; ///< count hardware threads as cores
  bool bind_chosen = false; ///< the user said what to bind to
  bool bind = true;         ///< false: to nothing
  Level bind_to = Level::core;
};

/// Reads the words of --map-by: core, slot, hwthread, l2, l3, numa, package, socket, node, spread,
/// ppr:N:<domain>, each with an optional :PE=n or :OVERSUBSCRIBE. Fails with the nearest word.
Result parse_map_by(std::string_view text, Request& request);
/// Reads the words of --bind-to: none, hwthread, core, l2, l3, numa, package, socket, node; core:4 is four
/// cores.
Result parse_bind_to(std::string_view text, Request& request);

/// One rank's place.
struct Place {
  CpuSet cpus;       ///< empty: not bound
  CpuSet home;       ///< the cores that are counted as its own, whatever it is bound to
  unsigned node = 0; ///< index of the NUMA node of its first core
  std::string text;  ///< "core 3 (cpus 3,19), node 0"
};

struct Plan {
  std::vector<Place> places;
  bool oversubscribed = false;    ///< more ranks than slots
  std::vector<std::string> notes; ///< what was decided and why, one sentence each
};

/// Fails when the request cannot be met: no processor allowed, more ranks than ppr gives room for.
Result make_plan(const Machine& machine, const Slots& slots, const Request& request, Plan& plan);

/// For people: machine, slots and what was decided, a line each.
std::string head_text(const Machine& machine, const Slots& slots, const Plan& plan);
/// For people: a line a rank.
std::string places_text(const Plan& plan);

} // namespace near::topo
