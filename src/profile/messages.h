// The model of a message, whatever its layout.
//
// A short message is sent whole: where consecutive bytes would be copied, the sender gathers, then the receiver scatters. A
// long one is pipelined through packets: both copy every fragment, at the same time, and both wait for lines from the other's
// cache. Measured messages take as long as the longest of three: consecutive bytes, the sender's gathering, the receiver's
// scattering (doc/model.md).
#pragma once

#include "profile/profile.h"

namespace near::profile {

/// The length in bytes of the longest message that is sent whole.
inline constexpr std::uint64_t longest_whole = short_sizes.back();

/// The parts of a message's time, in nanoseconds. For a message sent whole, the time is half a round trip; for any other, it
/// runs from the receiver's answer to an RTS to the last byte.
struct MessageTerms {
  bool whole = false;
  Kind kind = Kind::pipelined_cached; ///< for a long message: the stores that are faster here
  double transfer = 0;                ///< for as many consecutive bytes
  double packing = 0, unpacking = 0;  ///< gathering and scattering all blocks
  /// For a message sent whole: the two copies of consecutive bytes that packing and unpacking replace. For any other: the time
  /// hidden by the longest of the three.
  double overlap = 0;
  double total() const { return transfer + packing + unpacking - overlap; }
};

/// Whether the time of messages of this many bytes at this distance was measured.
bool knows_messages(const Profile& profile, Distance distance, std::uint64_t bytes);
/// Predicts the time of a message of `bytes` bytes (not 0) that lie in these blocks on both sides. The buffers were used last. The
/// costs of blocks must be complete(), and those of messages at this distance known (knows_messages()).
MessageTerms predict_message(const Profile& profile, Distance distance, std::span<const Blocks> all,
                             std::uint64_t bytes);

} // namespace near::profile
