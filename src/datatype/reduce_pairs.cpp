// MPI_MINLOC and MPI_MAXLOC: the lesser (greater) value, and of equal ones the lesser index.
// Source: MPI 5.0, section 6.9.4.
#include "datatype/reduce.h"

namespace near::datatype {
namespace {

/// -1, 0 or 1.
template <class T>
int compare_as(const char* a, const char* b) {
  T x = load<T>(a), y = load<T>(b);
  return x < y ? -1 : y < x ? 1 : 0;
}

using Compare = int (*)(const char*, const char*);

/// The types that pairs have.
Compare comparison(Basic basic, MPI_Count& size) {
  switch (basic) {
  case Basic::int16: size = 2; return compare_as<std::int16_t>;
  case Basic::int32: size = 4; return compare_as<std::int32_t>;
  case Basic::int64: size = 8; return compare_as<std::int64_t>;
  case Basic::float32: size = 4; return compare_as<float>;
  case Basic::float64: size = 8; return compare_as<double>;
  default: size = sizeof(long double); return compare_as<long double>;
  }
}

} // namespace

void reduce_pairs(Builtin builtin, const PairIndex& pair, MPI_Count extent, const void* in, void* inout,
                  MPI_Count n) {
  MPI_Count value_size = 0, index_size = 0;
  Compare values = comparison(pair.value, value_size), indices = comparison(pair.index, index_size);
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(inout);
  int wins = builtin == Builtin::minimum_location ? -1 : 1;
  for (MPI_Count i = 0; i < n; ++i, from += extent, to += extent) {
    int order = values(from, to);
    if (order == wins) copy::raw(to, from, static_cast<std::size_t>(value_size));
    if (order == wins || (order == 0 && indices(from + pair.at, to + pair.at) < 0))
      copy::raw(to + pair.at, from + pair.at, static_cast<std::size_t>(index_size));
  }
}

} // namespace near::datatype
