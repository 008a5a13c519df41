// The orders in which ranks take cores. Each function returns the units of every rank, as far as there are
// enough units.
#pragma once

#include "planning/units.h"

#include <string>
#include <vector>

namespace near::planning {

/// One core after another. A rank spans two nodes only if it fits into none.
std::vector<Chunk> packed(const Units& units, unsigned threads, unsigned ranks);

/// Blocks of neighbouring ranks over packages, nodes and caches. Faster cores are taken before slower ones,
/// since a program waits for its slowest rank; but a second hardware thread of a core is worth less than
/// any free core.
std::vector<Chunk> spread_by_speed(const Units& units, unsigned threads, unsigned ranks);

/// One rank to each domain in turn.
std::vector<Chunk> round_robin(const Units& units, unsigned threads, unsigned ranks, Level level,
                               Ranking ranking);

/// `per_domain` ranks to each domain; if it has too few units, its ranks share them.
std::vector<Chunk> ppr(const Units& units, unsigned threads, unsigned ranks, Level level, unsigned per_domain,
                       Ranking ranking);

/// Selects the NIC of this name or, if the name is empty, all NICs that carry messages. Fails if there is
/// none.
Result chosen_nics(const Machine& machine, const std::string& name, std::vector<Device>& nics);

/// Takes cores near the NICs: for each NIC the nodes are ordered by distance, and ranks go to the NICs in
/// turn.
std::vector<Chunk> by_nic(const Machine& machine, const std::vector<Device>& nics, const Units& units,
                          unsigned threads, unsigned ranks);

/// The units that a rankfile lists. `cores` are the cores that may be used. Fails if a rank is missing, or
/// if a core or processor does not exist.
Result rankfile(const Machine& machine, const Units& cores, const Request& request,
                std::vector<Chunk>& chunks);

} // namespace near::planning
