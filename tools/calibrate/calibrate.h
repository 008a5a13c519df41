// Measures what the machine's profile holds. For each distance that exists between processors which may be
// used, one pair of them, and for each kind of copy, two processes are bound there and form a job of their
// own: what they time is the transport itself, and just what its choice will time later (transport/tuner.h).
#pragma once

#include "profile/profile.h"

#include <functional>
#include <vector>

namespace near::calibrate {

using base::Result;
using profile::Kind;
using segment::Distance;

/// Two processors so far apart.
struct Pair {
  Distance distance;
  unsigned sender, receiver;
};
/// One pair for each distance that exists among the allowed processors, the nearest first.
std::vector<Pair> pairs_of(const topo::Machine& machine, const topo::CpuSet& allowed);

/// "pipelined, cached stores", ...
const char* kind_name(Kind kind);

/// Called as figures arrive: `done` of `total` are there.
using Report = std::function<void(unsigned done, unsigned total, const Pair& pair, Kind kind)>;

/// Measures for about `budget_ns`; what does not fit is left out. Everything of `profile` but its names is
/// set. Fails when there is only one processor, or when the two processes failed; they have then said why.
Result measure(const topo::Machine& machine, const topo::CpuSet& allowed, std::uint64_t budget_ns,
               const Report& report, profile::Profile& profile);

} // namespace near::calibrate
