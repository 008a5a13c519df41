// Arrays of counts and displacements, as `int` and `_c` calls pass them, without a widening copy.
#pragma once

#include "abi/types.h"

#include <vector>

namespace near::datatype {

class Counts {
public:
  Counts() = default;
  explicit Counts(const int* narrow) : narrow_(narrow) {}
  /// MPI_Count and MPI_Aint are the same 64-bit integer in the ABI that NearMPI implements.
  explicit Counts(const MPI_Count* wide) : wide_(wide) {}
  MPI_Count operator[](MPI_Count i) const { return wide_ != nullptr ? wide_[i] : narrow_[i]; }
  /// Whether the caller passed a null pointer.
  bool empty() const { return narrow_ == nullptr && wide_ == nullptr; }
  /// Whether the values came through a `_c` call (or are addresses).
  bool wide() const { return wide_ != nullptr; }
  std::vector<MPI_Count> widen(MPI_Count n) const {
    std::vector<MPI_Count> all(static_cast<std::size_t>(n));
    for (MPI_Count i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = (*this)[i];
    return all;
  }

private:
  const int* narrow_ = nullptr;
  const MPI_Count* wide_ = nullptr;
};

} // namespace near::datatype
