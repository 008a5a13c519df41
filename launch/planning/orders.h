// The orders in which ranks take cores: each function gives the units of every rank, as far as there is room.
#pragma once

#include "planning/units.h"

#include <string>
#include <vector>

namespace near::planning {

/// One core after the other. A rank lies across two nodes only where no node has room for the whole of it.
std::vector<Chunk> packed(const Units& units, unsigned threads, unsigned ranks);

/// Blocks of neighbouring ranks over packages, nodes and caches. Of unlike cores the faster ones are taken first, since a
/// program waits for its slowest rank; but a core's second hardware thread is worth less than any core.
std::vector<Chunk> spread_by_speed(const Units& units, unsigned threads, unsigned ranks);

/// One rank to each domain in turn.
std::vector<Chunk> round_robin(const Units& units, unsigned threads, unsigned ranks, Level level,
                               Ranking ranking);

/// `per_domain` ranks to each domain; those of one domain share its units where it has too few.
std::vector<Chunk> ppr(const Units& units, unsigned threads, unsigned ranks, Level level, unsigned per_domain,
                       Ranking ranking);

/// Fails when there is no NIC, or none of that name.
Result chosen_nics(const Machine& machine, const std::string& name, std::vector<Device>& nics);

/// For each NIC the nodes from the nearest on; ranks take cores there, one rank to each NIC in turn.
std::vector<Chunk> by_nic(const Machine& machine, const std::vector<Device>& nics, const Units& units,
                          unsigned threads, unsigned ranks);

/// The places that a rank file gives. `cores` are those that may be used. Fails when a rank has none, or one that does not
/// exist.
Result rankfile(const Machine& machine, const Units& cores, const Request& request,
                std::vector<Chunk>& chunks);

} // namespace near::planning
