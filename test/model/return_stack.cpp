// Packets that come home: each once, with the reader done with it, also when it goes out again at once.
#include "model.h"

#include "queue/return_stack.h"

#include <array>

namespace {

using namespace near::model;
using Link = Weak::Atomic<std::uint32_t>;

/// An owner's pool: a stack, and packets with a link and a payload.
template <std::size_t Count>
struct Pool {
  explicit Pool(Stage& stage) {
    stage.name(stack.head, "head");
    for (std::size_t i = 0; i < Count; ++i) {
      stage.name(links[i], "next[" + std::to_string(i) + "]");
      put(&payload[i], fresh);
    }
  }
  auto next() {
    return [this](std::uint32_t index) -> Link& { return links[index]; };
  }
  /// A reader's last look at the payload.
  void read(std::uint32_t index) {
    require(get<std::uint32_t>(&payload[index]) == fresh, "a packet is read as it was sent");
  }
  void push(std::uint32_t index) {
    read(index);
    stack.push_chain(index, index, next());
  }
  /// The owner takes what came home and writes it again; returns the packets as bits.
  std::uint32_t collect() {
    std::uint32_t home = 0;
    for (std::uint32_t link = stack.take_all(); link != 0;) {
      std::uint32_t index = link - 1;
      require((home >> index & 1) == 0, "a packet comes home once");
      home |= 1u << index;
      link = links[index].load_relaxed();
      put(&payload[index], used);
      put(&payload[index], fresh);
    }
    return home;
  }

  static constexpr std::uint32_t fresh = 7, used = 8;
  near::queue::ReturnStack<Weak> stack;
  std::array<Link, Count> links;
  std::array<std::uint32_t, Count> payload{};
};

MODEL_SCENARIO(return_stack, chains_of_two_readers_come_home, {{3, 2, 1, 0}}) {
  Pool<3> pool(stage);
  stage.thread("reader of two", [&] {
    pool.read(0);
    pool.read(1);
    pool.links[0].store_relaxed(1 + 1);
    pool.stack.push_chain(0, 1, pool.next());
  });
  stage.thread("reader of one", [&] { pool.push(2); });
  stage.thread("owner", [&] {
    std::uint32_t home = 0;
    while (home != 7)
      until([&] {
        std::uint32_t now = pool.collect();
        require((home & now) == 0, "a packet comes home once");
        home |= now;
        return now != 0;
      });
  });
  stage.go();
  require(pool.stack.take_all() == 0, "nothing is left behind");
}

MODEL_SCENARIO(return_stack, a_packet_goes_out_again_while_another_push_is_under_way, {{3, 1, 0, 0}}) {
  // The pusher of packet 1 may have read `head` when packet 0 was there the first time, and swap when it is
  // there again: what lies below it then is another chain.
  Pool<2> pool(stage);
  Weak::Atomic<std::uint32_t> mail{0};
  stage.name(mail, "mail");
  stage.thread("traveller", [&] {
    pool.push(0);
    until([&] { return mail.load_acquire() != 0; });
    pool.push(0);
  });
  stage.thread("pusher", [&] { pool.push(1); });
  stage.thread("owner", [&] {
    std::array<std::uint32_t, 2> came{};
    while (came[0] + came[1] < 3)
      until([&] {
        std::uint32_t now = pool.collect();
        for (std::uint32_t index = 0; index < 2; ++index) came[index] += now >> index & 1;
        if ((now & 1) != 0 && came[0] == 1) mail.store_release(1);
        return now != 0;
      });
    require(came[0] == 2 && came[1] == 1, "a packet comes home as often as it went out");
  });
  stage.go();
  require(pool.stack.take_all() == 0, "nothing is left behind");
}

} // namespace
