// Eager messages of which the sender waits until their buffers may be used again.
#include "suite.h"

#include <algorithm>

namespace near::test {
namespace {

/// The sender changes its buffer as soon as it is told that the message has left.
TEST_P(Conformance, eager_messages_have_left_when_the_sender_is_told) {
  run([](Part& part) {
    constexpr int count = 200;
    const std::size_t longest = std::min<std::size_t>(transport::longest_eager(), 128 << 10);
    auto length = [&](int i) { return 1 + static_cast<std::size_t>(i) * 7919 % longest; };
    if (part.sends)
      for (int i = 0; i < count; ++i) {
        Bytes data = pattern(length(i), static_cast<unsigned>(i));
        const Buffer buffer = buffer_of(data.data(), data.size());
        Side side;
        switch (transport::send_eager(*part.other, {5, 0, i, data.size()}, buffer, &side)) {
        case transport::Eager::refused: announce(*part.other, i, buffer, side); break;
        case transport::Eager::left: side.finished = true; break;
        case transport::Eager::waits: break;
        }
        wait_for([&] { return side.finished; });
        std::fill(data.begin(), data.end(), static_cast<unsigned char>(0xee));
      }
    if (part.receives)
      for (int i = 0; i < count; ++i) {
        const Arrived message = next();
        require(message.envelope.tag == i && message.envelope.bytes == length(i),
                "messages arrive in order, with their lengths");
        Bytes got = message.data;
        if (message.is_rts) {
          got.resize(length(i));
          Side side;
          take(message, buffer_of(got.data(), got.size()), side);
          wait_for([&] { return side.finished; });
        }
        require(got == pattern(length(i), static_cast<unsigned>(i)), "and their bytes");
      }
  });
}

} // namespace
} // namespace near::test
