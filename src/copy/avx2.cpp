// Processors with AVX2: 32 bytes at a time.
#if defined(__x86_64__)
#include "copy/kernel.h"

#include <immintrin.h>

namespace near::copy {
namespace {

struct Avx2 {
  using Vector = __m256i;
  static Vector load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const Vector*>(from));
  }
  static void store(std::byte* to, Vector value) {
    _mm256_storeu_si256(reinterpret_cast<Vector*>(to), value);
  }
  static void stream(std::byte* to, Vector value) {
    _mm256_stream_si256(reinterpret_cast<Vector*>(to), value);
  }
  static void order_streams() { _mm_sfence(); }
};

} // namespace

void streaming_avx2(void* to, const void* from, std::size_t bytes) { stream_by<Avx2>(to, from, bytes); }

void looping_avx2(void* to, const void* from, std::size_t bytes) { loop_by<Avx2>(to, from, bytes); }

} // namespace near::copy
#endif
