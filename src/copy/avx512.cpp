// Processors with AVX-512: a line at a time.
#if defined(__x86_64__)
#include "copy/kernel.h"

#include <immintrin.h>

namespace near::copy {
namespace {

struct Avx512 {
  using Vector = __m512i;
  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_si512(to, value); }
  static void stream(std::byte* to, Vector value) {
    _mm512_stream_si512(reinterpret_cast<Vector*>(to), value);
  }
  static void order_streams() { _mm_sfence(); }
};

} // namespace

void streaming_avx512(void* to, const void* from, std::size_t bytes) { stream_by<Avx512>(to, from, bytes); }

void looping_avx512(void* to, const void* from, std::size_t bytes) { loop_by<Avx512>(to, from, bytes); }

} // namespace near::copy
#endif
