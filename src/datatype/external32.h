// The "external32" representation: big-endian, fixed widths, no gaps. Source: MPI 5.0, sections 5.3
// and 14.5.2.
#pragma once

#include "datatype/datatype.h"

namespace near::datatype {

/// Bytes of one element in external32.
inline MPI_Count external_size(const Datatype& type) {
  return type.signature ? type.signature->total.external : 0;
}
/// Writes the whole buffer to `out`: external_size * count bytes. Fails with MPI_ERR_CONVERSION if a value
/// does not fit in its external width (a long beyond 32 bits, a wide character beyond 16).
Result pack_external(const Buffer& buffer, std::byte* out);
/// The inverse of pack_external(): reads `in` into the buffer.
Result unpack_external(const Buffer& buffer, const std::byte* in);

} // namespace near::datatype
