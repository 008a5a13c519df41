// Moving bytes through the normal form: pack, unpack, copy, pieces.
#include "datatype/datatype.h"

#include "copy/raw.h"
#include "datatype/walk.h"

namespace near::datatype {
namespace {

std::byte* pointer(std::intptr_t address) { return reinterpret_cast<std::byte*>(address); }

std::intptr_t address_of(const Buffer& buffer) { return reinterpret_cast<std::intptr_t>(buffer.address); }

/// Blocks of a size that the compiler knows are single moves.
template <MPI_Count bytes>
void gather_fixed(std::byte* out, const std::byte* from, MPI_Count stride, MPI_Count count) {
  for (MPI_Count i = 0; i < count; ++i) copy::raw(out + i * bytes, from + i * stride, bytes);
}
template <MPI_Count bytes>
void scatter_fixed(std::byte* to, const std::byte* in, MPI_Count stride, MPI_Count count) {
  for (MPI_Count i = 0; i < count; ++i) copy::raw(to + i * stride, in + i * bytes, bytes);
}

struct PackSink {
  std::byte* out;
  bool block(std::intptr_t address, MPI_Count bytes) {
    copy::raw(out, pointer(address), static_cast<std::size_t>(bytes));
    out += bytes;
    return true;
  }
  bool strided(std::intptr_t address, MPI_Count bytes, MPI_Count stride, MPI_Count count) {
    const std::byte* from = pointer(address);
    switch (bytes) {
    case 1: gather_fixed<1>(out, from, stride, count); break;
    case 2: gather_fixed<2>(out, from, stride, count); break;
    case 4: gather_fixed<4>(out, from, stride, count); break;
    case 8: gather_fixed<8>(out, from, stride, count); break;
    case 16: gather_fixed<16>(out, from, stride, count); break;
    default:
      for (MPI_Count i = 0; i < count; ++i)
        copy::raw(out + i * bytes, from + i * stride, static_cast<std::size_t>(bytes));
    }
    out += bytes * count;
    return true;
  }
};

struct UnpackSink {
  const std::byte* in;
  bool block(std::intptr_t address, MPI_Count bytes) {
    copy::raw(pointer(address), in, static_cast<std::size_t>(bytes));
    in += bytes;
    return true;
  }
  bool strided(std::intptr_t address, MPI_Count bytes, MPI_Count stride, MPI_Count count) {
    std::byte* to = pointer(address);
    switch (bytes) {
    case 1: scatter_fixed<1>(to, in, stride, count); break;
    case 2: scatter_fixed<2>(to, in, stride, count); break;
    case 4: scatter_fixed<4>(to, in, stride, count); break;
    case 8: scatter_fixed<8>(to, in, stride, count); break;
    case 16: scatter_fixed<16>(to, in, stride, count); break;
    default:
      for (MPI_Count i = 0; i < count; ++i)
        copy::raw(to + i * stride, in + i * bytes, static_cast<std::size_t>(bytes));
    }
    in += bytes * count;
    return true;
  }
};

struct PieceSink {
  std::vector<Piece>& out;
  std::size_t own; ///< pieces before this call's
  std::size_t limit;
  MPI_Count covered = 0;
  bool block(std::intptr_t address, MPI_Count bytes) {
    if (out.size() > own && out.back().address + out.back().bytes == pointer(address)) {
      out.back().bytes += static_cast<std::size_t>(bytes);
    } else {
      if (out.size() - own == limit) return false;
      out.push_back({pointer(address), static_cast<std::size_t>(bytes)});
    }
    covered += bytes;
    return true;
  }
  bool strided(std::intptr_t address, MPI_Count bytes, MPI_Count stride, MPI_Count count) {
    for (MPI_Count i = 0; i < count; ++i)
      if (!block(address + i * stride, bytes)) return false;
    return true;
  }
};

template <class Sink>
void walk_buffer(const Buffer& buffer, MPI_Count offset, MPI_Count bytes, Sink& sink) {
  const Datatype& type = *buffer.type;
  if (bytes == 0) return;
  walk_copies(*type.form.form, type.extent, address_of(buffer) + type.form.at, offset, bytes, sink);
}

} // namespace

Result refuse_kind(const Buffer& buffer) {
  if (buffer.bytes() == 0) return {};
  return base::fail(
      MPI_ERR_BUFFER,
      "the buffer at {} lies in the memory of a GPU, which NearMPI cannot copy: pass host memory",
      buffer.address);
}

void pack(const Buffer& buffer, MPI_Count offset, void* out, MPI_Count bytes) {
  if (bytes == 0) return;
  if (buffer.type->contiguous) {
    copy::raw(out, buffer.contiguous_start() + offset, static_cast<std::size_t>(bytes));
    return;
  }
  PackSink sink{static_cast<std::byte*>(out)};
  walk_buffer(buffer, offset, bytes, sink);
}

void unpack(const Buffer& buffer, MPI_Count offset, const void* in, MPI_Count bytes) {
  if (bytes == 0) return;
  if (buffer.type->contiguous) {
    copy::raw(buffer.contiguous_start() + offset, in, static_cast<std::size_t>(bytes));
    return;
  }
  UnpackSink sink{static_cast<const std::byte*>(in)};
  walk_buffer(buffer, offset, bytes, sink);
}

void copy(const Buffer& from, const Buffer& to, MPI_Count bytes) {
  if (bytes == 0) return;
  if (from.type->contiguous) {
    unpack(to, 0, from.contiguous_start(), bytes);
    return;
  }
  if (to.type->contiguous) {
    pack(from, 0, to.contiguous_start(), bytes);
    return;
  }
  // Through a buffer that stays in the first-level cache; finding the way back in costs little against it.
  alignas(64) std::byte buffer[8192];
  for (MPI_Count done = 0; done < bytes;) {
    MPI_Count part = std::min<MPI_Count>(sizeof buffer, bytes - done);
    pack(from, done, buffer, part);
    unpack(to, done, buffer, part);
    done += part;
  }
}

MPI_Count pieces(const Buffer& buffer, MPI_Count offset, MPI_Count bytes, std::vector<Piece>& out,
                 std::size_t limit) {
  PieceSink sink{out, out.size(), limit};
  if (bytes != 0 && buffer.type->contiguous)
    sink.block(reinterpret_cast<std::intptr_t>(buffer.contiguous_start()) + offset, bytes);
  else
    walk_buffer(buffer, offset, bytes, sink);
  return sink.covered;
}

MPI_Count elements_in(const Datatype& type, MPI_Count bytes) {
  if (type.size == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
  MPI_Count rest = elements_before(*type.signature, bytes % type.size);
  if (rest < 0) return rest;
  return bytes / type.size * type.element_count + rest;
}

MPI_Count bytes_of_elements(const Datatype& type, MPI_Count elements) {
  if (elements == 0) return 0;
  if (type.element_count == 0) return -1;
  MPI_Count bytes;
  if (__builtin_mul_overflow(elements / type.element_count, type.size, &bytes) ||
      __builtin_add_overflow(bytes, bytes_before(*type.signature, elements % type.element_count), &bytes))
    return -1;
  return bytes;
}

} // namespace near::datatype
