// Strided copies for every processor of the architecture.
#include "copy/strided_blocks.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace near::copy {
namespace {

#if defined(__aarch64__)
/// NEON's structure loads read every second, third or fourth element into a register. They read the whole structure, so the
/// last element must be followed by another one.
template <std::size_t width, int apart>
struct Structures {
  static std::size_t copy(std::byte* packed, const std::byte* from, std::ptrdiff_t stride,
                          std::size_t count) {
    constexpr std::size_t elements = 16 / width;
    const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(elements) * stride;
    std::size_t i = 0;
    for (; i + elements < count; i += elements, packed += 16, from += step) copy_register(packed, from);
    return i;
  }

private:
  static void copy_register(std::byte* packed, const std::byte* from) {
    if constexpr (width == 8) {
      auto* const to = reinterpret_cast<std::uint64_t*>(packed);
      auto* const at = reinterpret_cast<const std::uint64_t*>(from);
      if constexpr (apart == 2) vst1q_u64(to, vld2q_u64(at).val[0]);
      if constexpr (apart == 3) vst1q_u64(to, vld3q_u64(at).val[0]);
      if constexpr (apart == 4) vst1q_u64(to, vld4q_u64(at).val[0]);
    } else if constexpr (width == 4) {
      auto* const to = reinterpret_cast<std::uint32_t*>(packed);
      auto* const at = reinterpret_cast<const std::uint32_t*>(from);
      if constexpr (apart == 2) vst1q_u32(to, vld2q_u32(at).val[0]);
      if constexpr (apart == 3) vst1q_u32(to, vld3q_u32(at).val[0]);
      if constexpr (apart == 4) vst1q_u32(to, vld4q_u32(at).val[0]);
    } else {
      auto* const to = reinterpret_cast<std::uint16_t*>(packed);
      auto* const at = reinterpret_cast<const std::uint16_t*>(from);
      if constexpr (apart == 2) vst1q_u16(to, vld2q_u16(at).val[0]);
      if constexpr (apart == 3) vst1q_u16(to, vld3q_u16(at).val[0]);
      if constexpr (apart == 4) vst1q_u16(to, vld4q_u16(at).val[0]);
    }
  }
};
#endif

struct Baseline : MovesByLength<Baseline> {
  static void move_line(std::byte* to, const std::byte* from) { std::memcpy(to, from, 64); }

  template <bool packs, std::size_t width>
  static CopyGrid elements([[maybe_unused]] std::ptrdiff_t stride, [[maybe_unused]] bool one_row) {
#if defined(__aarch64__)
    constexpr auto unit = static_cast<std::ptrdiff_t>(width);
    if constexpr (packs) {
      if (stride == 2 * unit) return elements_copy<true, width, Structures<width, 2>>(one_row);
      if (stride == 3 * unit) return elements_copy<true, width, Structures<width, 3>>(one_row);
      if (stride == 4 * unit) return elements_copy<true, width, Structures<width, 4>>(one_row);
    }
#endif
    return nullptr;
  }
};

} // namespace

const StridedKernel strided_baseline = strided_kernel_of<Baseline>;

} // namespace near::copy
