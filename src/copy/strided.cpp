// See strided.h.
#include "copy/strided.h"

#include "copy/copy.h"
#include "copy/processor.h"
#include "copy/raw.h"
#include "copy/strided_kernel.h"
#include "copy/strided_sets.h"

namespace near::copy {
namespace {

std::byte* only_read(const std::byte* memory) { return const_cast<std::byte*>(memory); }

const StridedKernel& kernel() { return *chosen().strided; }

constexpr unsigned zen5 = 26; // the family

} // namespace

StoreLines store_lines = amd_family() == zen5 ? StoreLines::together : StoreLines::in_turn;

CopyGrid gathering(const Grid& grid) { return kernel().gathering(grid); }

CopyGrid scattering(const Grid& grid) { return kernel().scattering(grid); }

bool is_by_columns(const Grid& grid) { return grid.at == nullptr && is_transposed(grid); }

bool is_faster_in_parts(const Grid& to_grid) {
  constexpr std::size_t most = 4096; // blocks; 16,384 of 64 bytes took 1.3 times as long
  return to_grid.count * to_grid.rows <= most && moves_of_line<false>(to_grid) > 1;
}

void gather(std::byte* packed, const std::byte* from, const Grid& grid) {
  gathering(grid)(packed, only_read(from), grid);
}

void scatter(std::byte* to, const std::byte* packed, const Grid& grid) {
  scattering(grid)(only_read(packed), to, grid);
}

void between(std::byte* to, const Grid& to_grid, const std::byte* from, const Grid& from_grid) {
  const std::size_t bytes = to_grid.bytes, count = to_grid.count;
  // The length is a compile-time constant in the loop, unless it is 0.
  const auto copy_all = [&]<std::size_t width>() {
    for (std::size_t row = 0; row < to_grid.rows; ++row) {
      std::byte* block = to + static_cast<std::ptrdiff_t>(row) * to_grid.row_stride;
      const std::byte* source = from + static_cast<std::ptrdiff_t>(row) * from_grid.row_stride;
      for (std::size_t i = 0; i < count; ++i, block += to_grid.stride, source += from_grid.stride)
        raw(block, source, width != 0 ? width : bytes);
    }
  };
  switch (bytes) {
  case 16: return copy_all.operator()<16>();
  case 24: return copy_all.operator()<24>();
  case 32: return copy_all.operator()<32>();
  case 64: return copy_all.operator()<64>();
  default: return copy_all.operator()<0>();
  }
}

void gather(std::byte* packed, const std::byte* from, std::size_t bytes, Offsets offsets) {
  kernel().gather_listed(packed, only_read(from), bytes, offsets);
}

void scatter(std::byte* to, const std::byte* packed, std::size_t bytes, Offsets offsets) {
  kernel().scatter_listed(only_read(packed), to, bytes, offsets);
}

void gather(std::byte* packed, const std::byte* from, std::size_t bytes, WideOffsets offsets) {
  kernel().gather_widely(packed, only_read(from), bytes, offsets);
}

void scatter(std::byte* to, const std::byte* packed, std::size_t bytes, WideOffsets offsets) {
  kernel().scatter_widely(only_read(packed), to, bytes, offsets);
}

void gather(std::byte* packed, const std::byte* from, std::size_t bytes, ShortOffsets offsets) {
  kernel().gather_shortly(packed, only_read(from), bytes, offsets);
}

void scatter(std::byte* to, const std::byte* packed, std::size_t bytes, ShortOffsets offsets) {
  kernel().scatter_shortly(only_read(packed), to, bytes, offsets);
}

void gather(std::byte* packed, const std::byte* from, Blocks blocks) {
  kernel().gather_unequal(packed, only_read(from), blocks);
}

void scatter(std::byte* to, const std::byte* packed, Blocks blocks) {
  kernel().scatter_unequal(only_read(packed), to, blocks);
}

void gather(std::byte* packed, const std::byte* from, Blocks blocks, const Repeats& repeats) {
  kernel().gather_repeated(packed, only_read(from), blocks, repeats);
}

void scatter(std::byte* to, const std::byte* packed, Blocks blocks, const Repeats& repeats) {
  kernel().scatter_repeated(only_read(packed), to, blocks, repeats);
}

} // namespace near::copy
