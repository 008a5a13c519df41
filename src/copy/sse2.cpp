// Every x86-64 processor: 16 bytes at a time.
#if defined(__x86_64__)
#include "copy/kernel.h"

#include <immintrin.h>

namespace near::copy {
namespace {

struct Sse2 {
  using Vector = __m128i;
  static Vector load(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const Vector*>(from)); }
  static void store(std::byte* to, Vector value) { _mm_storeu_si128(reinterpret_cast<Vector*>(to), value); }
  static void stream(std::byte* to, Vector value) { _mm_stream_si128(reinterpret_cast<Vector*>(to), value); }
  static void order_streams() { _mm_sfence(); }
};

} // namespace

void streaming_sse2(void* to, const void* from, std::size_t bytes) { stream_by<Sse2>(to, from, bytes); }

void looping_sse2(void* to, const void* from, std::size_t bytes) { loop_by<Sse2>(to, from, bytes); }

} // namespace near::copy
#endif
