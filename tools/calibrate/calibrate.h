// Measures the values of the machine's profile. For each distance between allowed processors it takes one pair. For each kind of
// copy, and for short messages, it binds two processes there, which form a job of their own. They time the transport itself, long
// messages exactly as the tuner will later time them (shm/tuner.h).
#pragma once

#include "datatype/datatype.h"
#include "profile/profile.h"

#include <functional>
#include <vector>

namespace near::calibrate {

using base::Result;
using profile::Kind;
using segment::Distance;

/// Two processors at this distance.
struct Pair {
  Distance distance;
  unsigned sender, receiver;
};
/// One pair for each distance that exists among the allowed processors, nearest first.
std::vector<Pair> pairs_of(const topo::Machine& machine, const topo::CpuSet& allowed);

/// "pipelined, cached stores", ...
const char* kind_name(Kind kind);

/// Called after each measurement: `done` of `total`.
using Report = std::function<void(unsigned done, unsigned total, const Pair& pair, Kind kind)>;

/// Measures for about `budget_ns`; whatever does not fit is omitted. Sets everything in `profile` except its
/// names. Fails if there is only one processor, or if the two processes failed, which have then printed why.
Result measure(const topo::Machine& machine, const topo::CpuSet& allowed, std::uint64_t budget_ns,
               const Report& report, profile::Profile& profile);

/// Measures what profile::predict_message() predicts, in nanoseconds: a message of this datatype
/// between these two processors, long ones by this kind of copy. The data are sent repeatedly
/// without changes. Fails as measure() does, or if there is no memory for the buffers.
Result time_message(const Pair& pair, Kind kind, datatype::Datatype& type, MPI_Count count,
                    std::uint64_t budget_ns, double& took);

} // namespace near::calibrate
