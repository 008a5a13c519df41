// See strided.h.
#include "copy/strided.h"

#include "copy/copy.h"
#include "copy/strided_kernel.h"

namespace near::copy {
namespace {

std::byte* only_read(const std::byte* memory) { return const_cast<std::byte*>(memory); }

const StridedKernel& kernel() { return *chosen().strided; }

} // namespace

CopyGrid gathering(const Grid& grid) { return kernel().gathering(grid); }

CopyGrid scattering(const Grid& grid) { return kernel().scattering(grid); }

bool is_by_columns(const Grid& grid) { return grid.at == nullptr && is_transposed(grid); }

void gather(std::byte* packed, const std::byte* from, const Grid& grid) {
  gathering(grid)(packed, only_read(from), grid);
}

void scatter(std::byte* to, const std::byte* packed, const Grid& grid) {
  scattering(grid)(only_read(packed), to, grid);
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
