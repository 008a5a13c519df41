// A process that takes a further row of the rank table while the job runs.
#include "ranks.h"

#include "transport/registry.h"

#include <array>
#include <csignal>
#include <cstring>
#include <deque>
#include <poll.h>
#include <stdexcept>
#include <sys/resource.h>

namespace {

using namespace near;
using namespace near::test;
using transport::Handler;
using transport::Transfer;

constexpr std::uint32_t early = 2, late = 2; // number of ranks at the start; row of the process that joins

/// A job whose processes start one by one.
class Joining : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(segment_.create(4, early, 2).ok()) << base::failure_text();
    for (auto& pipe_ends : news_) ASSERT_EQ(pipe(pipe_ends.data()), 0);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    }
    for (auto& pipe_ends : news_)
      for (const int end : pipe_ends) close(end);
  }

  /// Starts the process of a row, which runs `body` between the start and the end of its transport.
  void launch(std::uint32_t row, const std::function<void()>& body, const Environment& environment = {}) {
    launch_whole(row, [=, this] {
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      require(base::read_knobs(environ).ok(), "knobs");
      require(start(row).ok(), std::string(base::failure_text()).c_str());
      body();
      transport::stop();
    });
  }
  /// As launch(), but `body` starts and stops the transport itself.
  void launch_whole(std::uint32_t row, const std::function<void()>& body) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      require(base::read_knobs(environ).ok(), "knobs");
      require(datatype::make_predefined_types().ok(), "predefined types");
      own_row_ = row;
      body();
      _exit(0);
    }
    children_.push_back(child);
  }
  base::Result start(std::uint32_t row) { return shm::start({segment_.descriptor(), row, early}); }

  // Called in a child: sends news to the test's process, which waits for it or checks that there is none yet.
  void tell() const { require(write(news_[own_row_][1], "x", 1) == 1, "tell"); }
  void expect_news_of(std::uint32_t row) const {
    pollfd news{news_[row][0], POLLIN, 0};
    char word = 0;
    ASSERT_EQ(::poll(&news, 1, 60'000), 1);
    ASSERT_EQ(read(news_[row][0], &word, 1), 1);
  }
  bool has_news_of(std::uint32_t row) const {
    pollfd news{news_[row][0], POLLIN, 0};
    return ::poll(&news, 1, 200) == 1;
  }

private:
  segment::Segment segment_;
  std::vector<pid_t> children_;
  std::array<std::array<int, 2>, 3> news_{};
  std::uint32_t own_row_ = 0;
};

struct Message {
  transport::Peer* from = nullptr;
  transport::Envelope envelope;
  std::vector<std::byte> data;
  transport::RtsHeader rts{};
};
std::deque<Message> messages;

void keep_messages() {
  transport::set_handler(Handler::p2p_eager, [](transport::Arrival& arrival) {
    messages.push_back(
        {arrival.from, arrival.envelope, {arrival.payload, arrival.payload + arrival.payload_bytes}});
    transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
  });
  transport::set_handler(Handler::p2p_rts, [](transport::Arrival& arrival) {
    messages.push_back({arrival.from, arrival.envelope, {}, arrival.rts()});
  });
}

std::vector<std::byte> content(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 13 + seed + (i >> 8));
  return data;
}

Message next() {
  wait_for([] { return !messages.empty(); });
  Message first = std::move(messages.front());
  messages.pop_front();
  return first;
}

struct Side : Transfer {
  bool finished = false;
  Side() {
    done = [](Transfer& transfer, int error) {
      require(error == MPI_SUCCESS, "a transfer succeeds");
      static_cast<Side&>(transfer).finished = true;
    };
  }
};

void send(std::uint32_t to, int tag, std::vector<std::byte> data) {
  const auto buffer = byte_buffer(data.data(), data.size());
  if (data.size() <= transport::eager_limit())
    return wait_for([&] { return transport::try_send_eager(peer(to), {7, 0, tag, data.size()}, buffer); });
  Side side;
  require(transport::send_rts(peer(to), {7, 0, tag, data.size()}, buffer, side).ok(), "an RTS is sent");
  wait_for([&] { return side.finished; });
}

constexpr std::size_t lengths[] = {0, 8, 80, 1000, 8000, 100'000, 3'000'000};

void send_all(std::uint32_t to, std::uint32_t own_row) {
  for (int round = 0; round < 40; ++round) // enough messages to get a lane
    for (const std::size_t bytes : {8, 800}) send(to, static_cast<int>(bytes), content(bytes, own_row));
  for (const std::size_t bytes : lengths) send(to, static_cast<int>(bytes), content(bytes, own_row));
}

void receive_all(std::uint32_t from) {
  for (std::size_t i = 0; i < 80 + std::size(lengths); ++i) {
    Message message = next();
    require(message.from == &peer(from), "the sender is known");
    const std::size_t bytes = i < 80 ? (i % 2 == 0 ? 8 : 800) : lengths[i - 80];
    require(message.envelope.tag == static_cast<int>(bytes), "messages arrive in order");
    if (bytes > transport::eager_limit()) {
      message.data.resize(bytes);
      Side side;
      require(
          transport::accept(*message.from, message.rts, bytes, byte_buffer(message.data.data(), bytes), side),
          "an RTS can be accepted");
      wait_for([&] { return side.finished; });
    }
    require(message.data == content(bytes, from), "and whole");
  }
}

TEST_F(Joining, a_process_that_joins_later_exchanges_messages_with_the_early_ones) {
  for (const std::uint32_t row : {0u, 1u})
    launch(row, [this, row] {
      keep_messages();
      bool reached = true;
      try {
        (void)peer(late);
      } catch (const std::runtime_error&) { reached = false; }
      require(!reached, "a row without a process is not a peer");
      if (row == 0) {
        send_all(1, row);
        receive_all(1);
      } else {
        receive_all(0);
        send_all(0, row);
      }
      tell();
      receive_all(late);
      send_all(late, row);
    });
  for (const std::uint32_t row : {0u, 1u}) expect_news_of(row);
  launch(late, [] {
    keep_messages();
    for (const std::uint32_t other : {0u, 1u}) {
      send_all(other, late);
      receive_all(other);
    }
  });
}

TEST_F(Joining, the_first_processes_wait_for_each_other_and_later_ones_for_them) {
  auto body = [this](std::uint32_t row) {
    return [this, row] {
      keep_messages();
      tell();
      if (row == late) {
        for (const std::uint32_t other : {0u, 1u}) send_all(other, row);
      } else {
        receive_all(late);
      }
    };
  };
  launch(late, body(late));
  launch(0, body(0));
  EXPECT_FALSE(has_news_of(0)) << "it went on without the other one";
  EXPECT_FALSE(has_news_of(late));
  launch(1, body(1));
  for (const std::uint32_t row : {0u, 1u, late}) expect_news_of(row);
}

TEST_F(Joining, a_process_that_has_joined_is_woken_when_there_is_space_for_its_message) {
  const Environment scarce = {{"NEAR_QUEUE_SLOTS", "4"}, {"NEAR_LANES", "0"}};
  launch(
      0,
      [this] {
        keep_messages();
        tell();
        usleep(300'000); // meanwhile the other process fills the queue and sleeps
        for (int i = 0; i < 12; ++i) require(next().envelope.tag == i, "in order");
      },
      scarce);
  launch(1, [] {}, scarce);
  expect_news_of(0);
  launch(
      late,
      [] {
        const auto usual = transport::wait_settings;
        auto word = content(8, 1);
        std::deque<Side> waiters(12);
        for (int i = 0; i < 12; ++i)
          if (transport::send_eager(peer(0), {7, 0, i, 8}, byte_buffer(word.data(), 8),
                                    &waiters[static_cast<std::size_t>(i)]) != transport::Eager::waits)
            waiters[static_cast<std::size_t>(i)].finished = true;
        require(!waiters.back().finished, "the queue is full");
        // Sleeps last until a wake-up.
        transport::wait_settings.first_sleep_ns = transport::wait_settings.longest_sleep_ns =
            3'600'000'000'000;
        wait_for([&] { return waiters.back().finished; });
        transport::wait_settings = usual;
      },
      scarce);
}

TEST_F(Joining, a_process_that_has_mapped_less_than_the_others_is_refused) {
  for (const std::uint32_t row : {0u, 1u}) launch(row, [this] { tell(); });
  for (const std::uint32_t row : {0u, 1u}) expect_news_of(row);
  launch_whole(late, [this] {
    // The regions fit, but the far arenas do not, and the others already allocate there.
    std::uint64_t pages = 0;
    FILE* statm = std::fopen("/proc/self/statm", "r");
    require(statm != nullptr && std::fscanf(statm, "%lu", &pages) == 1, "size");
    const std::uint64_t most = pages * 4096 + (40ull << 30);
    const rlimit limit{most, most};
    require(setrlimit(RLIMIT_AS, &limit) == 0, "limit");
    require(start(late).is(base::Code::limit), "it is refused");
    require(base::failure_text().find("address space") != std::string_view::npos, "with the reason");
  });
}

} // namespace
