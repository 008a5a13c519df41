// The model of a message, whatever its layout.
//
// A short one leaves whole: the sender gathers, then the receiver scatters, where consecutive bytes are copied. A long one is
// pipelined through packets: both copy every fragment, at the same time, and both wait for lines of the other's cache. Measured
// messages take as long as the longest of three: consecutive bytes, the sender's gathering, the receiver's scattering
// (doc/model.md).
#pragma once

#include "profile/profile.h"

namespace near::profile {

/// Bytes of the longest message that leaves whole.
inline constexpr std::uint64_t longest_whole = short_sizes.back();

/// What a message's time consists of, in nanoseconds. The time of a message that leaves whole is half a round trip; that of any
/// other one runs from the receiver's answer to an RTS to the last byte.
struct MessageTerms {
  bool whole = false;
  Kind kind = Kind::pipelined_cached; ///< of a long one: the stores that are faster here
  double transfer = 0;                ///< of as many consecutive bytes
  double packing = 0, unpacking = 0;  ///< gathering and scattering all blocks
  /// Of a message that leaves whole: the two copies of consecutive bytes that packing and unpacking replace. Of any other one: what
  /// the longest of the three hides.
  double overlap = 0;
  double total() const { return transfer + packing + unpacking - overlap; }
};

/// Whether the time of messages of so many bytes at this distance was measured.
bool knows_messages(const Profile& profile, Distance distance, std::uint64_t bytes);
/// Predicts the time of a message of `bytes` bytes, which is not 0, that lie in these blocks on both sides. The buffers were used last. The
/// costs of blocks must be complete(), and those of messages at this distance known (knows_messages()).
MessageTerms predict_message(const Profile& profile, Distance distance, std::span<const Blocks> all,
                             std::uint64_t bytes);

} // namespace near::profile
