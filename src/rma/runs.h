// The target's side of an operation as described in messages: runs of bytes, in packed order. A run stands for any
// number of pieces of equal length at equal distances, so a vector is one run.
#pragma once

#include "datatype/datatype.h"

#include <cstdint>
#include <span>
#include <vector>

namespace near::rma {

/// `count` pieces of `bytes` bytes each, `stride` bytes apart, starting at the address `begin`.
struct Run {
  std::uint64_t begin = 0, bytes = 0;
  std::int64_t stride = 0;
  std::uint64_t count = 1;
};
static_assert(sizeof(Run) == 32, "what follows runs in a message keeps their alignment");

/// Appends a piece. It joins the last run if it continues that run.
void append(std::vector<Run>& runs, std::uint64_t address, std::uint64_t bytes);

/// Calls visit(address, bytes) for each piece in packed order until a call returns false. Returns whether all returned true.
template <class Visit>
bool each_piece(std::span<const Run> runs, Visit&& visit) {
  for (const Run& run : runs)
    for (std::uint64_t i = 0; i < run.count; ++i)
      if (!visit(run.begin + static_cast<std::uint64_t>(run.stride) * i, run.bytes)) return false;
  return true;
}

/// Counts the bytes of all pieces. Returns false if the number does not fit in 63 bits.
bool count_bytes(std::span<const Run> runs, std::uint64_t& bytes);
/// Whether all pieces lie in [begin, begin + bytes).
bool are_inside(std::span<const Run> runs, std::uint64_t begin, std::uint64_t bytes);

/// Copies the pieces from this process's memory to `packed`.
void gather(std::span<const Run> runs, std::byte* packed);
/// Copies `packed` to the pieces.
void scatter(std::span<const Run> runs, const std::byte* packed);

/// The part of an operation that one message carries.
struct Fragment {
  MPI_Count at = 0, bytes = 0; ///< within the packed bytes
  std::vector<Run> runs;       ///< the target's memory
};
/// Cuts the target's side of an operation into fragments of bounded size, at multiples of `unit` packed bytes.
class Fragments {
public:
  /// The largest fragment, in packed bytes and in pieces of memory.
  static constexpr MPI_Count most_bytes = 1 << 20;
  static constexpr std::size_t most_pieces = 16384;

  Fragments(const datatype::Buffer& there, MPI_Count unit) : there_(there), unit_(unit) {}
  /// Makes the next fragment. Returns false if none is left.
  bool next(Fragment& fragment);
  bool is_last(const Fragment& fragment) const { return fragment.at + fragment.bytes == there_.bytes(); }

private:
  datatype::Buffer there_;
  MPI_Count unit_, at_ = 0;
  std::vector<datatype::Piece> pieces_;
};

} // namespace near::rma
