// One run: two processes, and messages of several sizes, either short ones or long ones of one kind of copy. The interface between
// calibrate.cpp and the processes.
//
// A run with long messages is in ranks.cpp, one with short ones in round_trips.cpp.
#pragma once

#include "calibrate/calibrate.h"
#include "datatype/datatype.h"
#include "transport/transport.h"

#include <array>

namespace near::calibrate {

/// The size classes that are measured, by their smallest message: 4 KiB, 16 KiB, ... 16 MiB.
inline constexpr std::array<int, 7> measured_classes = {0, 2, 4, 6, 8, 10, 12};
inline constexpr unsigned measurements_per_run = measured_classes.size() * profile::sources;

struct Run {
  Pair pair;
  Kind kind;
  std::uint64_t end_ns; ///< CLOCK_MONOTONIC: no message begins later
  /// The only message that is measured: this number of elements on both sides. nullptr: consecutive bytes of every size.
  datatype::Datatype* type = nullptr;
  MPI_Count count = 0;
  /// Messages are short: they are sent whole, and `kind` is ignored.
  bool is_short = false;
};

/// What the receiver reports.
struct Measurement {
  std::uint32_t size_class = 0, source = 0; ///< for short ones: the index in profile::short_sizes
  std::uint32_t cost = 0; ///< nanoseconds per MiB; for short ones: picoseconds for half a round trip
  char refusal[116] = {}; ///< why this kind is not possible; "" if it is possible
};

/// Runs one of the two processes: 0 sends, 1 receives and writes Measurements to `results`. Returns its exit status.
int take_part(const Run& run, std::uint32_t rank, int segment_descriptor, int results, std::int32_t parent);

/// Writes one of the receiver's measurements.
void report(int results, const Measurement& measurement);

// Called by take_part() in a run with short messages.

/// The handler of Handler::p2p_eager.
void on_short_message(transport::Arrival& arrival);
/// The part of both processes once they have joined the job.
void exchange_short_messages(const Run& run, std::uint32_t rank, int results);

} // namespace near::calibrate
