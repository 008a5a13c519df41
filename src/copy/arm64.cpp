// Every arm64 processor: two vectors of 16 bytes at a time. STNP hints that the line will not be read here
// soon; it is an ordinary store otherwise, ordered by a release like any other.
#if defined(__aarch64__)
#include "copy/kernel.h"

#include <arm_neon.h>

namespace near::copy {
namespace {

struct Neon {
  using Vector = uint8x16x2_t;
  static Vector load(const std::byte* from) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
    return {{vld1q_u8(bytes), vld1q_u8(bytes + 16)}};
  }
  static void store(std::byte* to, Vector value) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(to);
    vst1q_u8(bytes, value.val[0]);
    vst1q_u8(bytes + 16, value.val[1]);
  }
  static void stream(std::byte* to, Vector value) {
    // There is no intrinsic for it that both compilers have.
    auto* pair = reinterpret_cast<uint8x16x2_t*>(to);
    asm("stnp %q1, %q2, %0" : "=Ump"(*pair) : "w"(value.val[0]), "w"(value.val[1]));
  }
  static void order_streams() {}
};

} // namespace

void cached_neon(void* to, const void* from, std::size_t bytes) noexcept {
  copy_by<Neon, false>(to, from, bytes);
}
void streaming_neon(void* to, const void* from, std::size_t bytes) noexcept {
  copy_by<Neon, true>(to, from, bytes);
}

} // namespace near::copy
#endif
