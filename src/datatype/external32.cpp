// Conversion to and from external32, one run of basic types at a time,
// through a buffer of native packed bytes.
#include "datatype/external32.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace near::datatype {
namespace {

constexpr bool swap_needed = std::endian::native == std::endian::little;

template <class T>
T big_endian(T value) {
  if constexpr (!swap_needed || sizeof(T) == 1)
    return value;
  else if constexpr (sizeof(T) == 2)
    return static_cast<T>(__builtin_bswap16(value));
  else if constexpr (sizeof(T) == 4)
    return static_cast<T>(__builtin_bswap32(value));
  else if constexpr (sizeof(T) == 8)
    return static_cast<T>(__builtin_bswap64(value));
  else
    return (static_cast<T>(__builtin_bswap64(static_cast<std::uint64_t>(value))) << 64) |
           __builtin_bswap64(static_cast<std::uint64_t>(value >> 64));
}

/// The width is the same on both sides, so one function serves both directions.
template <class T>
void swap_units(const std::byte* from, std::byte* to, MPI_Count n) {
  constexpr auto width = static_cast<MPI_Count>(sizeof(T));
  for (MPI_Count i = 0; i < n; ++i) store<T>(to + i * width, big_endian(load<T>(from + i * width)));
}

void swap_all(MPI_Count width, const std::byte* from, std::byte* to, MPI_Count n) {
  switch (width) {
  case 1: copy::raw(to, from, static_cast<std::size_t>(n)); return;
  case 2: swap_units<std::uint16_t>(from, to, n); return;
  case 4: swap_units<std::uint32_t>(from, to, n); return;
  case 8: swap_units<std::uint64_t>(from, to, n); return;
  default: swap_units<UnsignedInt128>(from, to, n);
  }
}

/// How one basic type is converted.
struct Conversion {
  MPI_Count native = 0, external = 0; ///< bytes of one unit
  MPI_Count units = 1;                ///< a complex value has two
  Basic basic = Basic::none;
};

Conversion conversion_of(const Datatype& basic) {
  Conversion c{basic.size, external_size(basic), 1, basic.basic};
  switch (basic.basic) {
  case Basic::complex16:
  case Basic::complex32:
  case Basic::complex64:
  case Basic::complex80:
  case Basic::complex128:
    c.units = 2;
    c.native /= 2;
    c.external /= 2;
    break;
  default: break;
  }
  return c;
}

bool is_extended(Basic basic) { return basic == Basic::float80 || basic == Basic::complex80; }

/// Writes the low `external` bytes of the integer, if they hold the whole value.
template <class Wide, class Narrow>
Result narrow_units(const std::byte* from, std::byte* to, MPI_Count n) {
  using Bits = std::make_unsigned_t<Narrow>;
  for (MPI_Count i = 0; i < n; ++i) {
    Wide value = load<Wide>(from + i * static_cast<MPI_Count>(sizeof(Wide)));
    if (value < std::numeric_limits<Narrow>::min() || value > std::numeric_limits<Narrow>::max())
      return base::fail(MPI_ERR_CONVERSION,
                        "the value {} does not fit the {} bytes that external32 has for it", value,
                        sizeof(Narrow));
    store<Bits>(to + i * static_cast<MPI_Count>(sizeof(Narrow)),
                big_endian(static_cast<Bits>(static_cast<Narrow>(value))));
  }
  return {};
}

template <class Wide, class Narrow>
void widen_units(const std::byte* from, std::byte* to, MPI_Count n) {
  using Bits = std::make_unsigned_t<Narrow>;
  for (MPI_Count i = 0; i < n; ++i) {
    Bits bits = big_endian(load<Bits>(from + i * static_cast<MPI_Count>(sizeof(Narrow))));
    store<Wide>(to + i * static_cast<MPI_Count>(sizeof(Wide)), static_cast<Wide>(static_cast<Narrow>(bits)));
  }
}

Result to_external(const Conversion& c, const std::byte* from, std::byte* to, MPI_Count n) {
  if (is_extended(c.basic)) {
    for (MPI_Count i = 0; i < n; ++i) {
      auto value = static_cast<Float128>(load<long double>(from + i * c.native));
      store(to + i * c.external, big_endian(std::bit_cast<UnsignedInt128>(value)));
    }
    return {};
  }
  if (c.native == c.external) {
    swap_all(c.native, from, to, n);
    return {};
  }
  if (c.basic == Basic::int64) return narrow_units<std::int64_t, std::int32_t>(from, to, n);
  if (c.basic == Basic::uint64) return narrow_units<std::uint64_t, std::uint32_t>(from, to, n);
  return narrow_units<std::uint32_t, std::uint16_t>(from, to, n); // wide characters
}

void from_external(const Conversion& c, const std::byte* from, std::byte* to, MPI_Count n) {
  if (is_extended(c.basic)) {
    for (MPI_Count i = 0; i < n; ++i) {
      auto value = std::bit_cast<Float128>(big_endian(load<UnsignedInt128>(from + i * c.external)));
      store(to + i * c.native, static_cast<long double>(value));
    }
    return;
  }
  if (c.native == c.external) return swap_all(c.native, from, to, n);
  if (c.basic == Basic::int64) return widen_units<std::int64_t, std::int32_t>(from, to, n);
  if (c.basic == Basic::uint64) return widen_units<std::uint64_t, std::uint32_t>(from, to, n);
  widen_units<std::uint32_t, std::uint16_t>(from, to, n);
}

/// Calls move(conversion, packed native offset, values) for each run of basic types, in parts that fit into
/// the scratch memory.
constexpr MPI_Count scratch_bytes = 4096;

template <class F>
Result each_part(const Buffer& buffer, F move) {
  SignaturePointer whole = repeat_signature(buffer.type->signature, buffer.count);
  if (!whole) return {};
  Result result;
  MPI_Count offset = 0;
  auto visit = [&](const Datatype& basic, MPI_Count count) {
    Conversion c = conversion_of(basic);
    MPI_Count most = scratch_bytes / basic.size;
    while (count != 0 && result.ok()) {
      MPI_Count part = std::min(count, most);
      result = move(c, offset, part);
      offset += part * basic.size;
      count -= part;
    }
    return result.ok();
  };
  each_run(*whole, visit);
  return result;
}

} // namespace

Result pack_external(const Buffer& buffer, std::byte* out) {
  return each_part(buffer, [&](const Conversion& c, MPI_Count offset, MPI_Count values) {
    alignas(16) std::byte scratch[scratch_bytes];
    MPI_Count units = values * c.units;
    pack(buffer, offset, scratch, units * c.native);
    Result result = to_external(c, scratch, out, units);
    out += units * c.external;
    return result;
  });
}

Result unpack_external(const Buffer& buffer, const std::byte* in) {
  return each_part(buffer, [&](const Conversion& c, MPI_Count offset, MPI_Count values) {
    alignas(16) std::byte scratch[scratch_bytes] = {};
    MPI_Count units = values * c.units;
    from_external(c, in, scratch, units);
    unpack(buffer, offset, scratch, units * c.native);
    in += units * c.external;
    return Result();
  });
}

} // namespace near::datatype
