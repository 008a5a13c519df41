// The loops behind the predefined operations, one for each operation and basic type it is defined on.
#pragma once

#include "datatype/operation.h"

namespace near::datatype {

/// inout[i] = in[i] op inout[i] for n elements; unaligned buffers are fine, overlapping ones are not.
using Kernel = void (*)(const void* in, void* inout, MPI_Count n);

/// nullptr when there is none. `find_kernel` asks each of the others.
Kernel find_kernel(Builtin builtin, Basic basic);
Kernel arithmetic_kernel(Builtin builtin, Basic basic); ///< sum, product, minimum, maximum
Kernel bit_kernel(Builtin builtin, Basic basic);        ///< bitwise and logical operations

/// minimum_location and maximum_location on pairs `extent` bytes apart.
void reduce_pairs(Builtin builtin, const PairIndex& pair, MPI_Count extent, const void* in, void* inout,
                  MPI_Count n);

/// The loop of every kernel. Loads and stores are memcpy, so nothing is assumed of alignment; compilers still
/// vectorise it.
template <class T, class F>
void each_element(const void* in, void* inout, MPI_Count n, F combine) {
  const char* __restrict from = static_cast<const char*>(in);
  char* __restrict to = static_cast<char*>(inout);
  for (MPI_Count i = 0; i < n; ++i) {
    MPI_Count at = i * static_cast<MPI_Count>(sizeof(T));
    store(to + at, combine(load<T>(from + at), load<T>(to + at)));
  }
}

} // namespace near::datatype
