// MPI_Pack and MPI_Unpack: in the native form, which is the packed bytes themselves, and in external32.
// Source: MPI 5.0, sections 5.2 and 5.3.
#include "datatype/external32.h"
#include "mpi/buffer_argument.h"
#include "mpi/impl.h"

#include <cstring>

namespace near::mpi::impl {
namespace {

Result total_bytes(MPI_Count count, MPI_Count each, MPI_Count& bytes) {
  if (!__builtin_mul_overflow(count, each, &bytes)) return {};
  return base::fail(MPI_ERR_COUNT, "{} elements of {} bytes exceed 2^63 - 1 bytes", count, each);
}

Result check_position(MPI_Count position, MPI_Count size, MPI_Count bytes) {
  if (position >= 0 && position <= size && bytes <= size - position) return {};
  return base::fail(MPI_ERR_ARG, "{} bytes at position {} exceed a packing buffer of {}", bytes, position,
                    size);
}

Result check_representation(const char* name) {
  if (std::strcmp(name, "external32") == 0) return {};
  return base::fail(MPI_ERR_ARG, "the data representation \"{}\" is not \"external32\"", name);
}

const std::byte* at(const void* buffer, MPI_Count position) {
  return static_cast<const std::byte*>(buffer) + position;
}
std::byte* at(void* buffer, MPI_Count position) { return static_cast<std::byte*>(buffer) + position; }

} // namespace

Result Pack(const void* inbuf, MPI_Count incount, Datatype& datatype, void* outbuf, MPI_Count outsize,
            MPI_Count& position, Communicator&) {
  MPI_Count bytes = 0;
  NEAR_TRY(total_bytes(incount, datatype.size, bytes));
  NEAR_TRY(check_position(position, outsize, bytes));
  if (bytes != 0) pack(buffer_of(inbuf, incount, datatype), 0, at(outbuf, position), bytes);
  position += bytes;
  return {};
}

Result Unpack(const void* inbuf, MPI_Count insize, MPI_Count& position, void* outbuf, MPI_Count outcount,
              Datatype& datatype, Communicator&) {
  MPI_Count bytes = 0;
  NEAR_TRY(total_bytes(outcount, datatype.size, bytes));
  NEAR_TRY(check_position(position, insize, bytes));
  if (bytes != 0) unpack(buffer_of(outbuf, outcount, datatype), 0, at(inbuf, position), bytes);
  position += bytes;
  return {};
}

Result Pack_size(MPI_Count incount, Datatype& datatype, Communicator&, MPI_Count& size) {
  return total_bytes(incount, datatype.size, size);
}

Result Pack_external(const char* datarep, const void* inbuf, MPI_Count incount, Datatype& datatype,
                     void* outbuf, MPI_Count outsize, MPI_Count& position) {
  NEAR_TRY(check_representation(datarep));
  MPI_Count bytes = 0, native = 0;
  NEAR_TRY(total_bytes(incount, external_size(datatype), bytes));
  NEAR_TRY(total_bytes(incount, datatype.size, native));
  NEAR_TRY(check_position(position, outsize, bytes));
  if (bytes != 0) NEAR_TRY(pack_external(buffer_of(inbuf, incount, datatype), at(outbuf, position)));
  position += bytes;
  return {};
}

Result Unpack_external(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count& position,
                       void* outbuf, MPI_Count outcount, Datatype& datatype) {
  NEAR_TRY(check_representation(datarep));
  MPI_Count bytes = 0, native = 0;
  NEAR_TRY(total_bytes(outcount, external_size(datatype), bytes));
  NEAR_TRY(total_bytes(outcount, datatype.size, native));
  NEAR_TRY(check_position(position, insize, bytes));
  if (bytes != 0) NEAR_TRY(unpack_external(buffer_of(outbuf, outcount, datatype), at(inbuf, position)));
  position += bytes;
  return {};
}

Result Pack_external_size(const char* datarep, MPI_Count incount, Datatype& datatype, MPI_Count& size) {
  NEAR_TRY(check_representation(datarep));
  return total_bytes(incount, external_size(datatype), size);
}

} // namespace near::mpi::impl
