// How much memory a process's region takes, as far as knobs determine it.
#pragma once

#include <cstdint>
#include <string>

namespace near::segment {

/// The smallest size of packets, whatever the eager limit is: fragments of large messages have this length.
inline constexpr std::uint64_t smallest_packet = 16u << 10;

/// The facts about a job that decide how much memory each of its ranks should have from the start.
struct JobShape {
  std::uint32_t ranks = 1, processors = 1;
};

/// Whether the job is small and its ranks have a processor each, so that each rank prepares for messages to all others.
bool is_small_job(JobShape job);

/// The size of one packet in bytes.
std::uint64_t packet_bytes();
/// The number of packets with which a rank starts. By default there are more in a small job whose ranks have a
/// processor each: long messages benefit from packets that the receiver's second-level cache has lost before they are
/// written again (doc/adr/0018).
std::uint64_t first_packets(JobShape job);
/// The size in bytes of the queue and of the packets that exist from the start.
std::uint64_t reserved_by_knobs(JobShape job);
/// The bytes of address space for the queue and all packets, including those that are added under traffic.
std::uint64_t bytes_by_knobs(JobShape job);

/// What collectives start with: a process's part of the area of MPI_COMM_WORLD, and the first of its slices (coll/shared).
/// Without an area of MPI_COMM_WORLD, regions have no part, and slices initially have addresses but no memory.
inline constexpr std::uint64_t area_part_bytes = 52u << 10, slice_bytes = 64u << 10;
inline constexpr std::uint32_t region_slices = 8, most_area_ranks = 64;
inline constexpr bool job_has_area(std::uint32_t job_size) {
  return job_size > 1 && job_size <= most_area_ranks;
}
inline constexpr std::uint64_t first_part_bytes(std::uint32_t job_size) {
  return job_has_area(job_size) ? area_part_bytes : 0;
}
inline constexpr std::uint64_t first_slice_bytes(std::uint32_t job_size) {
  return job_has_area(job_size) ? slice_bytes : 0;
}

/// From this number of bytes on, what the ranks of a job reserve at start is checked against the memory available to all.
inline constexpr std::uint64_t checked_reserve = 64ull << 20;
/// From this number of bytes on, what a job reserves at start is reported.
inline constexpr std::uint64_t large_reserve = std::uint64_t{1} << 30;
/// The knobs that determine the reserved memory, with their values: "NEAR_PACKETS=32, ...".
std::string reserving_knobs(JobShape job);

} // namespace near::segment
