// Processors with AVX-512: a line at a time.
#if defined(__x86_64__)
#include "copy/kernel.h"

#include <immintrin.h>

namespace near::copy {
namespace {

struct Avx512 {
  using Vector = __m512i;
  static Vector load(const std::byte* from) {
    return _mm512_loadu_si512(reinterpret_cast<const Vector*>(from));
  }
  static void store(std::byte* to, Vector value) { _mm512_store_si512(reinterpret_cast<Vector*>(to), value); }
  static void stream(std::byte* to, Vector value) {
    _mm512_stream_si512(reinterpret_cast<Vector*>(to), value);
  }
  static void order_streams() { _mm_sfence(); }
};

} // namespace

void cached_avx512(void* to, const void* from, std::size_t bytes) noexcept {
  copy_by<Avx512, false>(to, from, bytes);
}
void streaming_avx512(void* to, const void* from, std::size_t bytes) noexcept {
  copy_by<Avx512, true>(to, from, bytes);
}

} // namespace near::copy
#endif
