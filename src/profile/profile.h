// The profile of this machine: how long copies between two processes take, measured once by `near calibrate` and kept
// in a file in the user's cache. mpiexec derives the ranks' initial estimates from it (segment/initial_estimates.h); the
// ranks correct these by their own measurements.
//
//   near-profile 3                                 the form of the file; 2 had no short messages, 1 no lines of blocks.h
//   machine host-0123456789abcdef                  machine_name()
//   measured 2026-11-21T15:20:01Z
//   no-cma process_vm_readv: not permitted         where the kernel does not copy, and why
//   cost l3 4096 rewritten 300000 250000 260000 -  nanoseconds per MiB for each Kind; -: not measured
//   short l3 90000 96000 140000 200000 300000 900000   picoseconds for half a round trip, for each of short_sizes
//   stores l3 27000 31000                          the same for the copy into a packet: cached, streaming stores
//   caches, call, first, blocks                    packing of datatypes: see blocks.h
//   end                                            marks a complete file
#pragma once

#include "profile/blocks.h"
#include "segment/initial_estimates.h"
#include "topo/machine.h"

#include <array>
#include <string>
#include <string_view>

namespace near::profile {

using base::Result;
using segment::Distance;
using segment::distances;
using segment::size_classes;

/// Whether the sender writes the buffer before each message, or sends the same data again.
enum class Source { reused, rewritten };
inline constexpr std::size_t sources = 2;
const char* source_name(Source source);

enum class Kind { direct, pipelined_cached, pipelined_streaming, cma };
inline constexpr std::size_t kinds = 4;

/// In bytes: messages sent whole, in a slot or a packet.
inline constexpr std::array<std::uint32_t, 6> short_sizes = {8, 64, 256, 1024, 4096, 16384};

struct Profile {
  std::string machine, measured;
  std::string no_cma; ///< why the kernel does not copy; "": it does
  /// Nanoseconds per MiB, for the receiver from accepting an RTS to the last byte, by distance, class of
  /// sizes (of its smallest message), source and kind; 0: not measured.
  std::array<std::array<std::array<std::array<std::uint32_t, kinds>, sources>, size_classes>, distances>
      cost{};
  std::array<std::array<std::uint32_t, 2>, distances> store_cost{};
  /// Picoseconds for half a round trip of consecutive bytes, by distance and short_sizes; 0: not measured.
  std::array<std::array<std::uint32_t, short_sizes.size()>, distances> short_time{};
  BlockCosts blocks;
};

/// The profile in the form of its file.
std::string text_of(const Profile& profile);
/// Reads the text of a profile. The message of a failure names the line. `profile` is set only on success.
Result parse(std::string_view text, Profile& profile);

/// A name that identifies this machine and changes with its hardware: host name, topology, processor.
std::string machine_name(const topo::Machine& machine);

/// The path of the profile for the machine of that name: in $XDG_CACHE_HOME/near or, if that is not set,
/// $HOME/.cache/near. Fails if neither variable is set.
Result path_of(const std::string& machine, std::string& path);

/// Reads the profile for the machine of that name; `found` is false if there is none. Fails, with advice,
/// if it cannot be used.
Result load(const std::string& machine, Profile& profile, bool& found);
/// Creates the folder if necessary, and checks that a file can be written there.
Result prepare(const std::string& path);
/// Replaces the file atomically.
Result save(const Profile& profile, const std::string& path);

/// The initial estimates of the ranks. Sizes and distances that were not measured get the values of the nearest ones.
segment::InitialEstimates estimates_of(const Profile& profile);

/// The smallest parts of the machine that contain all of these processors.
segment::Location location_of(const topo::Machine& machine, const topo::CpuSet& cpus);

} // namespace near::profile
