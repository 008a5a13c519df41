// Bytes that are on their way at once.
#include "shm/backlog.h"

#include "ranks.h"
#include "shm/engine.h"

#include <array>

namespace {

using namespace near;
using namespace near::test;
using shm::Backlog;
using transport::Transfer;

TEST(Backlog, is_the_most_that_was_on_its_way_since_there_was_nothing) {
  Backlog backlog;
  EXPECT_EQ(backlog.most(), 0u);
  backlog.add(100);
  backlog.add(200);
  EXPECT_EQ(backlog.most(), 300u);
  backlog.remove(100);
  EXPECT_EQ(backlog.most(), 300u) << "the last messages of a window are part of it";
  backlog.add(50);
  EXPECT_EQ(backlog.most(), 300u) << "250 are on their way";
  backlog.remove(200);
  backlog.remove(50);
  EXPECT_EQ(backlog.most(), 0u) << "the window is over";
  backlog.add(10);
  EXPECT_EQ(backlog.most(), 10u) << "a new window";
}

TEST(Backlog, of_messages_that_never_pause_stays_bounded) {
  Backlog backlog;
  backlog.add(100);
  for (int i = 0; i < 1000; ++i) {
    backlog.add(100);
    backlog.remove(100);
  }
  EXPECT_EQ(backlog.most(), 200u);
}

std::vector<std::pair<transport::RtsHeader, transport::Peer*>> announced;

/// Rank 0 sends this window, and rank 1 receives half of its second message. Before that, rank 0 withdraws a message, and one that
/// nobody receives until the end stays on its way.
void send_window(std::uint32_t rank) {
  constexpr std::size_t bytes = 1 << 20, messages = 4;
  static std::size_t finished;
  finished = 0;
  transport::set_handler(transport::Handler::p2p_rts, [](transport::Arrival& arrival) {
    announced.emplace_back(arrival.rts(), arrival.from);
  });
  shm::Peer& other = shm::peer_in(1 - rank);
  std::vector<std::byte> data((messages + 1) * bytes, std::byte{static_cast<unsigned char>(1 - rank)});
  std::array<Transfer, messages> window;
  Transfer late;
  for (Transfer& each : window) each.done = [](Transfer&, int) { ++finished; };
  late.done = window[0].done;
  auto part = [&](std::size_t i, std::size_t some) { return byte_buffer(data.data() + i * bytes, some); };
  auto expect_empty = [&] {
    require(other.to_send.most() == 0 && other.asked_for.most() == 0, "nothing is on its way any more");
  };
  if (rank == 0) {
    Transfer withdrawn;
    require(transport::send_rts(other, {7, 0, 0, bytes}, part(0, bytes), withdrawn).ok(), "RTS");
    require(transport::cancel_rts(withdrawn), "cancel");
    require(transport::send_rts(other, {7, 0, 2, bytes}, part(messages, bytes), late).ok(), "RTS");
    for (std::size_t i = 0; i < messages; ++i)
      require(transport::send_rts(other, {7, 0, 1, bytes}, part(i, bytes), window[i]).ok(), "RTS");
    require(other.to_send.most() == 0, "nobody has asked for anything");
  } else {
    wait_for([] { return announced.size() == messages + 2; });
    for (std::size_t i = 0; i < messages; ++i) {
      auto& [header, from] = announced[i + 2];
      require(transport::accept(*from, header, bytes, part(i, i == 1 ? bytes / 2 : bytes), window[i]),
              "accept");
    }
    require(other.asked_for.most() == messages * bytes - bytes / 2, "as much as there is space for");
  }
  wait_for([] { return finished == messages; });
  expect_empty();
  if (rank == 1) {
    auto& [header, from] = announced[1];
    require(transport::accept(*from, header, bytes, part(messages, bytes), late), "accept");
  }
  wait_for([] { return finished == messages + 1; });
  require(rank == 0 || data[bytes + bytes / 2] == std::byte{0}, "nothing behind the buffer");
  require(rank == 0 || data.back() == std::byte{1}, "data");
  expect_empty();
}

TEST(Backlog, contains_what_is_sent_even_if_messages_are_cut_or_withdrawn) {
  run_ranks(2, send_window, {{"NEAR_COPY", "pipelined"}});
}

} // namespace
