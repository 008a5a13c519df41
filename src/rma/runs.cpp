// See runs.h.
#include "rma/runs.h"

#include "base/checked.h"
#include "copy/raw.h"

#include <algorithm>

namespace near::rma {

void append(std::vector<Run>& runs, std::uint64_t address, std::uint64_t bytes) {
  if (!runs.empty()) {
    Run& last = runs.back();
    if (last.count == 1 && address == last.begin + last.bytes) {
      last.bytes += bytes;
      return;
    }
    if (last.count == 1 && bytes == last.bytes) {
      last.stride = static_cast<std::int64_t>(address - last.begin);
      last.count = 2;
      return;
    }
    if (bytes == last.bytes && address == last.begin + static_cast<std::uint64_t>(last.stride) * last.count) {
      ++last.count;
      return;
    }
  }
  runs.push_back({address, bytes, 0, 1});
}

bool count_bytes(std::span<const Run> runs, std::uint64_t& bytes) {
  std::int64_t sum = 0;
  for (const Run& run : runs) {
    std::int64_t all = 0;
    if (static_cast<std::int64_t>(run.bytes) < 0 || static_cast<std::int64_t>(run.count) < 0 ||
        !base::checked_multiply(static_cast<std::int64_t>(run.bytes), static_cast<std::int64_t>(run.count),
                                all) ||
        !base::checked_add(sum, all, sum))
      return false;
  }
  bytes = static_cast<std::uint64_t>(sum);
  return true;
}

bool are_inside(std::span<const Run> runs, std::uint64_t begin, std::uint64_t bytes) {
  using Wide = datatype::Int128;
  return std::all_of(runs.begin(), runs.end(), [&](const Run& run) {
    const Wide first = Wide(run.begin) - Wide(begin);
    const Wide last = first + Wide(run.stride) * (Wide(run.count) - 1);
    return run.count == 0 ||
           (std::min(first, last) >= 0 && std::max(first, last) + Wide(run.bytes) <= Wide(bytes));
  });
}

void gather(std::span<const Run> runs, std::byte* packed) {
  each_piece(runs, [&](std::uint64_t address, std::uint64_t bytes) {
    copy::raw(packed, reinterpret_cast<const void*>(address), bytes);
    packed += bytes;
    return true;
  });
}

void scatter(std::span<const Run> runs, const std::byte* packed) {
  each_piece(runs, [&](std::uint64_t address, std::uint64_t bytes) {
    copy::raw(reinterpret_cast<void*>(address), packed, bytes);
    packed += bytes;
    return true;
  });
}

bool Fragments::next(Fragment& fragment) {
  const MPI_Count left = there_.bytes() - at_;
  if (left == 0) return false;
  pieces_.clear();
  const MPI_Count most = std::max(most_bytes - most_bytes % unit_, unit_);
  const MPI_Count covered = datatype::pieces(there_, at_, std::min(left, most), pieces_,
                                             most_pieces + static_cast<std::size_t>(unit_));
  fragment.at = at_;
  fragment.bytes = covered - covered % unit_;
  fragment.runs.clear();
  MPI_Count listed = 0;
  for (const auto& piece : pieces_) {
    const MPI_Count bytes = std::min(static_cast<MPI_Count>(piece.bytes), fragment.bytes - listed);
    if (bytes == 0) break;
    append(fragment.runs, reinterpret_cast<std::uint64_t>(piece.address), static_cast<std::uint64_t>(bytes));
    listed += bytes;
  }
  at_ += fragment.bytes;
  return true;
}

} // namespace near::rma
