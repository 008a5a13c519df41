// Series of messages that are longer than what a transport numbers, or lets its peers send at once.
#include "suite.h"

namespace near::test {
namespace {

TEST_P(Conformance, a_long_series_of_messages_stays_in_order) {
  run([](Part& part) {
    constexpr int count = 70'000;
    if (part.sends)
      for (int i = 0; i < count; ++i) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(&i);
        send_eager(*part.other, i, Bytes(bytes, bytes + sizeof i));
      }
    if (part.receives)
      for (int i = 0; i < count; ++i) {
        const Arrived message = next();
        int sent = -1;
        require(message.data.size() == sizeof sent, "a message is whole");
        std::memcpy(&sent, message.data.data(), sizeof sent);
        require(sent == i && message.envelope.tag == i, "messages arrive in order");
      }
  });
}

TEST_P(Conformance, both_sides_may_announce_more_messages_than_a_window_holds) {
  if (!kind().has_window()) GTEST_SKIP() << "this transport has no window";
  run([](Part& part) {
    constexpr int count = 3000;
    int accepted = 0;
    std::deque<Side> sending(count), receiving(count);
    for (int i = 0; i < count; ++i)
      announce(*part.other, i, buffer_of(nullptr, 0), sending[static_cast<std::size_t>(i)]);
    part.meet();
    for (; accepted < count; ++accepted) {
      const Arrived message = next();
      require(message.envelope.tag == accepted, "messages arrive in order");
      take(message, buffer_of(nullptr, 0), receiving[static_cast<std::size_t>(accepted)]);
    }
    wait_for([&] {
      return std::all_of(sending.begin(), sending.end(), [](const Side& side) { return side.finished; });
    });
  });
}

} // namespace
} // namespace near::test
