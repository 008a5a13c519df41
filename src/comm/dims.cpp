// MPI_Dims_create. Source: MPI 5.0, section 8.5.2.
//
// "As close to each other as possible" is made exact: the largest extent is as small as it can be, then the
// second largest, and so on.
#include "comm/comm.h"

namespace near::comm {

namespace {

/// base^exponent >= value, without overflow.
bool power_reaches(std::int64_t base, std::size_t exponent, std::int64_t value) {
  std::int64_t power = 1;
  for (std::size_t i = 0; i < exponent && base > 1; ++i) {
    power *= base;
    if (power >= value) return true;
  }
  return power >= value;
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= number; ++d)
    if (number % d == 0) {
      small.push_back(d);
      if (d != number / d) large.push_back(number / d);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// Fills `extents` with divisors that multiply to `product`, not increasing, none above `bound`; false when
/// there are none.
bool factor(std::int64_t product, std::int64_t bound, std::span<const std::int64_t> divisors,
            std::span<int> extents) {
  if (extents.empty()) return product == 1;
  for (std::int64_t first : divisors) {
    if (first > bound) return false;
    if (product % first != 0 || !power_reaches(first, extents.size(), product)) continue;
    if (factor(product / first, first, divisors, extents.subspan(1))) {
      extents[0] = static_cast<int>(first);
      return true;
    }
  }
  return false;
}

} // namespace

Result choose_dims(int processes, std::span<int> dims) {
  if (processes < 1) return base::fail(MPI_ERR_ARG, "nnodes is {}, which must be positive", processes);
  std::int64_t left = processes;
  std::size_t open = 0;
  for (int extent : dims) {
    if (extent < 0) return base::fail(MPI_ERR_DIMS, "a grid cannot have {} processes in a dimension", extent);
    if (extent == 0) {
      ++open;
      continue;
    }
    if (left % extent != 0)
      return base::fail(MPI_ERR_DIMS, "{} processes cannot be divided by the extents that are given",
                        processes);
    left /= extent;
  }
  if (open == 0) {
    if (left != 1 && !dims.empty())
      return base::fail(MPI_ERR_DIMS, "the extents that are given do not multiply to {} processes",
                        processes);
    return {};
  }
  std::vector<int> extents(open);
  factor(left, left, divisors_of(left), extents);
  std::size_t next = 0;
  for (int& extent : dims)
    if (extent == 0) extent = extents[next++];
  return {};
}

} // namespace near::comm
