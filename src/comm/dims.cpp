// MPI_Dims_create. Source: MPI 5.0, section 8.5.2.
//
// "As close to each other as possible" is understood as J. L. Traeff and F. D. Luebbe propose ("Specification
// Guideline Violations by MPI_Dims_create", EuroMPI 2015): the difference between the largest and the
// smallest extent is minimal. Ties are broken by the smallest largest extent, then by the smallest second
// one, and so on.
#include "comm/comm.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace near::comm {

namespace {

/// base^exponent; if that exceeds `most`, any number above `most`.
std::int64_t power_up_to(std::int64_t most, std::int64_t base, std::size_t exponent) {
  std::int64_t power = 1;
  for (std::size_t i = 0; i < exponent && base > 1 && power <= most; ++i) power *= base;
  return power;
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

class Factorisation {
public:
  explicit Factorisation(std::int64_t number) : number_(number), divisors_(divisors_of(number)) {}

  /// The best extents in non-increasing order. `dimensions` is at least 2, since fewer dimensions leave no
  /// choice.
  std::vector<std::int64_t> best(std::size_t dimensions) {
    std::vector<std::int64_t> found, rest(dimensions - 1);
    std::int64_t difference = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t largest : divisors_) {
      if (power_up_to(number_, largest, dimensions) < number_) continue;
      // Only a smaller difference than the best so far is of interest. The smallest extent cannot exceed the
      // root.
      std::int64_t least = std::max<std::int64_t>(1, largest - difference + 1);
      if (power_up_to(number_, least, dimensions) > number_) break;
      while (fill(number_ / largest, least, largest, rest)) {
        found.assign(1, largest);
        found.insert(found.end(), rest.begin(), rest.end());
        difference = largest - rest.back();
        least = rest.back() + 1;
      }
    }
    return found;
  }

private:
  /// Fills `extents` in non-increasing order with divisors from `least` to `most` whose product is `product`,
  /// the first ones as small as possible. Returns false if there are none.
  bool fill(std::int64_t product, std::int64_t least, std::int64_t most, std::span<std::int64_t> extents) {
    failed_.clear();
    return fill_below(product, least, most, extents);
  }

  bool fill_below(std::int64_t product, std::int64_t least, std::int64_t most,
                  std::span<std::int64_t> extents) {
    if (extents.size() == 1) {
      extents[0] = product;
      return product >= least && product <= most;
    }
    if (power_up_to(product, most, extents.size()) < product ||
        power_up_to(product, least, extents.size()) > product ||
        failed_.contains({product, most, extents.size()}))
      return false;
    for (auto first = std::lower_bound(divisors_.begin(), divisors_.end(), least);
         first != divisors_.end() && *first <= most; ++first) {
      if (product % *first != 0 || power_up_to(product, *first, extents.size()) < product) continue;
      if (fill_below(product / *first, least, *first, extents.subspan(1))) {
        extents[0] = *first;
        return true;
      }
    }
    failed_.insert({product, most, extents.size()});
    return false;
  }

  const std::int64_t number_;
  const std::vector<std::int64_t> divisors_;
  /// Products, largest extents and dimensions for which fill() has failed.
  std::set<std::tuple<std::int64_t, std::int64_t, std::size_t>> failed_;
};

/// The extents of the open dimensions, whose product is `number`.
std::vector<std::int64_t> open_extents(std::int64_t number, std::size_t dimensions) {
  if (dimensions == 1) return {number};
  // An int has fewer than 31 prime factors, so the smallest of 32 extents is 1, as are all further ones.
  std::vector<std::int64_t> extents = Factorisation(number).best(std::min<std::size_t>(dimensions, 32));
  extents.resize(dimensions, 1);
  return extents;
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
  std::vector<std::int64_t> extents = open_extents(left, open);
  std::size_t next = 0;
  for (int& extent : dims)
    if (extent == 0) extent = static_cast<int>(extents[next++]);
  return {};
}

} // namespace near::comm
