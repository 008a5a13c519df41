// Moving bytes through the normal form: pack, unpack, copy, pieces.
#include "datatype/datatype.h"

#include "base/atomic.h"
#include "copy/raw.h"
#include "copy/strided.h"
#include "datatype/walk.h"

#include <utility>

namespace near::datatype {
namespace {

std::byte* pointer(std::intptr_t address) { return reinterpret_cast<std::byte*>(address); }

std::intptr_t address_of(const Buffer& buffer) { return reinterpret_cast<std::intptr_t>(buffer.address); }

std::size_t size_of(MPI_Count bytes) { return static_cast<std::size_t>(bytes); }

/// Calls copy(list) for the offsets [first, first + count).
template <class Copy>
void with_offsets(const CompactNumbers& offsets, std::size_t first, std::size_t count, Copy copy) {
  if (offsets.is_narrow())
    copy(copy::Offsets{offsets.narrow() + first, count});
  else if (offsets.is_short())
    copy(offsets.part(first, count));
  else
    copy(copy::WideOffsets{offsets.wide() + first, count});
}

struct PackSink {
  std::byte* out;
  bool block(std::intptr_t address, MPI_Count bytes) {
    copy::block(out, pointer(address), size_of(bytes));
    out += bytes;
    return true;
  }
  bool grid(std::intptr_t address, const copy::Grid& grid) {
    copy::gather(out, pointer(address), grid);
    out += grid.bytes * grid.count * grid.rows;
    return true;
  }
  bool listed(std::intptr_t address, MPI_Count bytes, const CompactNumbers& offsets, std::size_t first,
              std::size_t count) {
    with_offsets(offsets, first, count,
                 [&](auto list) { copy::gather(out, pointer(address), size_of(bytes), list); });
    out += size_of(bytes) * count;
    return true;
  }
  bool unequal(std::intptr_t address, copy::Blocks blocks) {
    copy::gather(out, pointer(address), blocks);
    out += blocks.start[blocks.count] - blocks.start[0];
    return true;
  }
  bool repeated(std::intptr_t address, copy::Blocks blocks, const copy::Repeats& repeats) {
    copy::gather(out, pointer(address), blocks, repeats);
    out += repeats.bytes * repeats.count;
    return true;
  }
};

struct UnpackSink {
  const std::byte* in;
  bool block(std::intptr_t address, MPI_Count bytes) {
    copy::block(pointer(address), in, size_of(bytes));
    in += bytes;
    return true;
  }
  bool grid(std::intptr_t address, const copy::Grid& grid) {
    copy::scatter(pointer(address), in, grid);
    in += grid.bytes * grid.count * grid.rows;
    return true;
  }
  bool listed(std::intptr_t address, MPI_Count bytes, const CompactNumbers& offsets, std::size_t first,
              std::size_t count) {
    with_offsets(offsets, first, count,
                 [&](auto list) { copy::scatter(pointer(address), in, size_of(bytes), list); });
    in += size_of(bytes) * count;
    return true;
  }
  bool unequal(std::intptr_t address, copy::Blocks blocks) {
    copy::scatter(pointer(address), in, blocks);
    in += blocks.start[blocks.count] - blocks.start[0];
    return true;
  }
  bool repeated(std::intptr_t address, copy::Blocks blocks, const copy::Repeats& repeats) {
    copy::scatter(pointer(address), in, blocks, repeats);
    in += repeats.bytes * repeats.count;
    return true;
  }
};

struct PieceSink : BlockByBlock<PieceSink> {
  PieceSink(std::vector<Piece>& pieces, std::size_t most) : out(pieces), own(pieces.size()), limit(most) {}
  std::vector<Piece>& out;
  std::size_t own; ///< number of pieces before this call
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
};

template <class Sink>
void walk_buffer(const Buffer& buffer, MPI_Count offset, MPI_Count bytes, Sink& sink) {
  const Datatype& type = *buffer.type;
  if (bytes == 0) return;
  if (bytes == buffer.bytes()) // nothing to divide
    walk_whole(*type.form.form, type.extent, address_of(buffer) + type.form.at, buffer.count, sink);
  else
    walk_copies(*type.form.form, type.extent, address_of(buffer) + type.form.at, offset, bytes, sink);
}

/// The grid without its pointers. GCC would copy the whole grid by string
/// instructions, which take as long to start as copying some blocks.
copy::Grid shape_of(const copy::Grid& grid) {
  return {.bytes = grid.bytes,
          .count = grid.count,
          .stride = grid.stride,
          .rows = grid.rows,
          .row_stride = grid.row_stride};
}

bool adjoin(const copy::Grid& grid) { return grid.row_stride == static_cast<std::ptrdiff_t>(grid.bytes); }

/// Copies all of one buffer to another if their blocks agree in length and number: each is
/// copied once. Returns whether this was done. Short blocks are copied faster through
/// consecutive memory, by registers that hold several, as are blocks that share sets of a cache.
bool copy_grids(const Buffer& from, const Buffer& to, MPI_Count bytes) {
  constexpr std::size_t shortest = 16;
  const Datatype &source = *from.type, &target = *to.type;
  if (bytes != from.bytes() || bytes != to.bytes() || source.gather == nullptr || target.gather == nullptr ||
      source.grid.bytes == 0 || source.grid.bytes != target.grid.bytes || source.grid.at != nullptr ||
      target.grid.at != nullptr)
    return false;
  copy::Grid from_grid = shape_of(source.grid), to_grid = shape_of(target.grid);
  if (from.count != 1 && !repeat_grid(from_grid, from.count, source.extent)) return false;
  if (to.count != 1 && !repeat_grid(to_grid, to.count, target.extent)) return false;
  if (from_grid.count != to_grid.count || from_grid.rows != to_grid.rows) return false;
  // In columns of both matrices, blocks of neighbouring rows adjoin:
  // as a row they are one block, which parts of 8 KiB would divide.
  const bool as_rows = from_grid.rows > 1 && adjoin(from_grid) && adjoin(to_grid);
  if (as_rows)
    for (copy::Grid* grid : {&from_grid, &to_grid}) grid->bytes *= std::exchange(grid->rows, 1);
  if (from_grid.bytes < shortest || (!as_rows && copy::is_faster_in_parts(to_grid))) return false;
  copy::between(first_byte(to.address, target), to_grid, first_byte(from.address, source), from_grid);
  return true;
}

/// Moves packed bytes [0, bytes) if they are the whole buffer and it is a grid: the common case, which needs no walk. `of_one`
/// is the function for one element, choose(grid) that for several. Returns whether this was done.
template <class Choose>
bool move_grid(const Buffer& buffer, std::byte* packed, MPI_Count bytes, copy::CopyGrid of_one,
               Choose choose) {
  const Datatype& type = *buffer.type;
  if (of_one == nullptr || bytes != buffer.bytes()) return false;
  std::byte* const strided = first_byte(buffer.address, type);
  if (buffer.count == 1) [[likely]] {
    of_one(packed, strided, type.grid);
    return true;
  }
  if (type.grid.at != nullptr) return false;
  copy::Grid grid = shape_of(type.grid);
  if (!repeat_grid(grid, buffer.count, type.extent)) return false;
  choose(grid)(packed, strided, grid);
  return true;
}

/// Moves packed bytes [0, bytes) without a walk if they are the whole buffer. Elements with few blocks go to by_columns(element,
/// blocks, repeats), others are moved one by one, by the functions for an element or its parts. Returns whether this was done.
template <class ByColumns>
bool move_elements(const Buffer& buffer, std::byte* packed, MPI_Count bytes, copy::CopyGrid of_one,
                   copy::CopyGrid Part::* of_part, ByColumns by_columns) {
  const Datatype& type = *buffer.type;
  if (bytes != buffer.bytes()) return false;
  std::intptr_t element = address_of(buffer) + type.form.at;
  // Each block selects a move for all elements.
  if (type.few != nullptr && type.few->by_columns && buffer.count >= 4 &&
      size_of(buffer.count) >= type.few->blocks.count) {
    by_columns(pointer(element), type.few->blocks,
               copy::Repeats{size_of(buffer.count), type.extent, size_of(type.size)});
    return true;
  }
  if (of_one == nullptr && type.parts.empty()) return false;
  for (MPI_Count i = 0; i < buffer.count; ++i, element += type.extent) {
    if (of_one != nullptr) {
      of_one(packed, pointer(element), type.grid);
      packed += type.size;
      continue;
    }
    for (const Part& part : type.parts) {
      (part.*of_part)(packed, pointer(element + part.at), part.grid);
      packed += part.bytes;
    }
  }
  return true;
}

/// Moves packed bytes [offset, offset + bytes) of small elements: whole ones by several(sink, first, count), which uses windows,
/// and partial elements at either end by a walk.
template <class Sink, class Several>
void move_small_elements(const Buffer& buffer, MPI_Count offset, MPI_Count bytes, Sink sink,
                         Several several) {
  const Datatype& type = *buffer.type;
  std::intptr_t element = address_of(buffer) + type.form.at;
  MPI_Count whole = buffer.count, rest = 0;
  if (bytes != buffer.bytes()) {
    const MPI_Count first = offset / type.size, within = offset - first * type.size;
    element += first * type.extent;
    if (within != 0) {
      const MPI_Count part = std::min(type.size - within, bytes);
      walk(*type.form.form, element, within, part, sink);
      bytes -= part;
      element += type.extent;
    }
    whole = bytes / type.size;
    rest = bytes - whole * type.size;
  }
  several(sink, pointer(element), whole);
  if (rest != 0) walk(*type.form.form, element + whole * type.extent, 0, rest, sink);
}

} // namespace

Result refuse_kind(const Buffer& buffer) {
  if (buffer.bytes() == 0) return {};
  return base::fail(
      MPI_ERR_BUFFER,
      "the buffer at {} lies in the memory of a GPU, which NearMPI cannot copy: pass host memory",
      buffer.address);
}

// Separate functions, so that the copy of consecutive bytes needs no registers but its own.
[[gnu::noinline]] static void pack_gaps(const Buffer& buffer, MPI_Count offset, std::byte* out,
                                        MPI_Count bytes) {
  const copy::CopyGrid of_one = buffer.type->gather;
  if (const Datatype& type = *buffer.type; buffer.count != 1 && buffer.count <= type.most_by_windows)
    return move_small_elements(buffer, offset, bytes, PackSink{out},
                               [&](PackSink& sink, std::byte* first, MPI_Count count) {
                                 type.gather_several(sink.out, first, *type.windows, size_of(count));
                                 sink.out += count * type.size;
                               });
  if (offset == 0 && move_grid(buffer, out, bytes, of_one, copy::gathering)) [[likely]]
    return;
  const auto by_columns = [=](const std::byte* element, copy::Blocks few, const copy::Repeats& repeats) {
    copy::gather(out, element, few, repeats);
  };
  if (offset == 0 && move_elements(buffer, out, bytes, of_one, &Part::gather, by_columns)) return;
  PackSink sink{out};
  walk_buffer(buffer, offset, bytes, sink);
}
[[gnu::noinline]] static void unpack_gaps(const Buffer& buffer, MPI_Count offset, const std::byte* in,
                                          MPI_Count bytes) {
  const copy::CopyGrid of_one = buffer.type->scatter;
  auto* const packed = const_cast<std::byte*>(in);
  if (const Datatype& type = *buffer.type; buffer.count != 1 && buffer.count <= type.most_by_windows)
    return move_small_elements(
        buffer, offset, bytes, UnpackSink{in}, [&](UnpackSink& sink, std::byte* first, MPI_Count count) {
          type.scatter_several(const_cast<std::byte*>(sink.in), first, *type.windows, size_of(count));
          sink.in += count * type.size;
        });
  if (offset == 0 && move_grid(buffer, packed, bytes, of_one, copy::scattering)) [[likely]]
    return;
  const auto by_columns = [=](std::byte* element, copy::Blocks few, const copy::Repeats& repeats) {
    copy::scatter(element, in, few, repeats);
  };
  if (offset == 0 && move_elements(buffer, packed, bytes, of_one, &Part::scatter, by_columns)) return;
  UnpackSink sink{in};
  walk_buffer(buffer, offset, bytes, sink);
}

void pack(const Buffer& buffer, MPI_Count offset, void* out, MPI_Count bytes) {
  if (bytes == 0) return;
  if (!buffer.type->contiguous) return pack_gaps(buffer, offset, static_cast<std::byte*>(out), bytes);
  copy::raw(out, buffer.contiguous_start() + offset, static_cast<std::size_t>(bytes));
}

void unpack(const Buffer& buffer, MPI_Count offset, const void* in, MPI_Count bytes) {
  if (bytes == 0) return;
  if (!buffer.type->contiguous) return unpack_gaps(buffer, offset, static_cast<const std::byte*>(in), bytes);
  copy::raw(buffer.contiguous_start() + offset, in, static_cast<std::size_t>(bytes));
}

bool loses_by_parts(const Buffer& buffer) {
  const Datatype& type = *buffer.type;
  if (type.contiguous || type.gather == nullptr) return false;
  if (type.grid.at != nullptr) return false;
  copy::Grid grid = shape_of(type.grid);
  return (buffer.count == 1 || repeat_grid(grid, buffer.count, type.extent)) && copy::is_by_columns(grid);
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
  if (copy_grids(from, to, bytes)) return;
  // Through a buffer that stays in the first-level cache. Finding the way back in costs little in comparison.
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
  PieceSink sink(out, limit);
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
