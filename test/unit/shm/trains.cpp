// Into how many parts a packet train is divided (packet_train.cpp): many if its receiver waits for it, few if not.
#include "ranks.h"
#include "shm/engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

namespace near::test {
namespace {

constexpr std::uint32_t packets_of_train = 4;
constexpr std::size_t train_bytes = packets_of_train * (16 << 10);

struct AnnouncedTrain {
  transport::RtsHeader header;
  transport::Envelope envelope;
};
std::deque<AnnouncedTrain> announced;

/// Two processes that are forked later meet here. Meeting makes no progress in the library.
class MeetingPoint {
public:
  static MeetingPoint& make() {
    void* const at =
        mmap(nullptr, sizeof(MeetingPoint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return *new (at) MeetingPoint;
  }
  void meet() { pthread_barrier_wait(&barrier_); }

  std::atomic<int> lanes{0};         ///< that are open
  std::atomic<bool> has_left{false}; ///< rank 0's last train

private:
  MeetingPoint() {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&barrier_, &shared, 2);
  }
  pthread_barrier_t barrier_;
};

std::vector<unsigned char> bytes_of(std::uint32_t rank, int number, std::size_t bytes = train_bytes) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<unsigned char>(i * 31 + rank + 2 * static_cast<unsigned>(number) + (i >> 8));
  return data;
}

shm::Peer& other_of(std::uint32_t rank) { return static_cast<shm::Peer&>(peer(1 - rank)); }

bool try_to_send_train(std::uint32_t rank, int number, std::size_t bytes) {
  auto data = bytes_of(rank, number, bytes);
  return transport::try_send_eager(other_of(rank), {7, 0, number, data.size()},
                                   byte_buffer(data.data(), data.size()));
}

void send_train(std::uint32_t rank, int number, std::size_t bytes = train_bytes) {
  require(try_to_send_train(rank, number, bytes), "a train leaves");
}

/// Receives a train in a buffer for it, and checks it. Returns in how many parts it came.
std::uint32_t take_train(std::uint32_t rank, int number, std::size_t bytes = train_bytes) {
  shm::Peer& other = other_of(rank);
  const std::uint32_t before = other.receive.expected_sequence;
  wait_for([] { return !announced.empty(); });
  AnnouncedTrain train = announced.front();
  announced.pop_front();
  std::vector<unsigned char> data(bytes);
  static bool finished;
  finished = false;
  transport::Transfer transfer;
  transfer.done = [](transport::Transfer&, int error) {
    require(error == MPI_SUCCESS, "a train does not fail");
    finished = true;
  };
  require(transport::accept(other, train.header, train.envelope.bytes, byte_buffer(data.data(), data.size()),
                            transfer),
          "accepted");
  wait_for([] { return finished; });
  require(data == bytes_of(1 - rank, number, bytes), "a train brings its bytes");
  return other.receive.expected_sequence - before;
}

void register_handlers() {
  transport::set_handler(transport::Handler::p2p_eager, [](transport::Arrival& arrival) {
    transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
  });
  transport::set_handler(transport::Handler::p2p_rts, [](transport::Arrival& arrival) {
    announced.push_back({arrival.rts(), arrival.envelope});
  });
}

/// Trains need a lane, which a pair gets after a number of short messages. Takes all of these.
void open_lane(std::uint32_t rank, MeetingPoint& point) {
  char byte = 0;
  wait_for([&] {
    transport::try_send_eager(other_of(rank), {7, 0, 0, 1}, byte_buffer(&byte, 1));
    return other_of(rank).lane_open;
  });
  ++point.lanes;
  wait_for([&] { return point.lanes == 2; });
  point.meet();
  while (shm::make_progress()) {}
  point.meet();
}

/// Runs body(rank, meeting point) as two ranks between which trains can travel.
template <class Body>
void run_pair(Body body, const Environment& environment = {}) {
  MeetingPoint& point = MeetingPoint::make();
  const auto run = [&](std::uint32_t rank) {
    register_handlers();
    open_lane(rank, point);
    body(rank, point);
  };
  run_ranks(2, run, environment);
}

TEST(Packet_trains, that_cross_come_in_one_part) {
  run_pair([](std::uint32_t rank, MeetingPoint& point) {
    for (int number = 0; number < 5; ++number) {
      send_train(rank, number);
      point.meet(); // both have sent before either looks for messages
      const std::uint32_t parts = take_train(rank, number);
      require(number == 0 || parts == 1, "a rank that is sending itself gets all packets at once");
      point.meet();
    }
  });
}

TEST(Packet_trains, that_are_waited_for_have_a_part_for_each_packet) {
  run_pair([](std::uint32_t rank, MeetingPoint& point) {
    for (int number = 0; number < 6; ++number) {
      const bool sends = rank == static_cast<std::uint32_t>(number % 2);
      if (!sends) require(!shm::make_progress(), "the receiver looks for the train in vain");
      point.meet();
      if (sends) send_train(rank, number);
      if (!sends) require(take_train(rank, number) == packets_of_train, "it gets each packet on its own");
    }
  });
}

TEST(Packet_trains, come_in_one_part_while_one_of_the_two_never_waits) {
  run_pair([](std::uint32_t rank, MeetingPoint& point) {
    // Rank 1 never looks before rank 0 has sent, so it is the one that is waited for.
    for (int number = 0; number < 6; ++number) {
      const bool sends = rank == static_cast<std::uint32_t>(number % 2);
      if (!sends && rank == 0) require(!shm::make_progress(), "rank 0 looks in vain");
      point.meet();
      if (sends) send_train(rank, number);
      point.meet();
      if (sends) continue;
      const std::uint32_t parts = take_train(rank, number);
      require(number < 3 || parts == 1, "both get all packets at once");
    }
  });
}

/// A receive that is posted before its train comes.
struct Posted {
  std::vector<unsigned char> buffer;
  transport::Transfer transfer;
  bool finished = false;
};
Posted* posted = nullptr;

void receive_posted(transport::Arrival& arrival) {
  require(posted != nullptr, "a receive is posted");
  posted->transfer.done = [](transport::Transfer&, int error) {
    require(error == MPI_SUCCESS, "a train does not fail");
    posted->finished = true;
  };
  const std::size_t room = posted->buffer.size() - 1; // the last byte is not part of the receive
  require(transport::accept(*arrival.from, arrival.rts(), std::min(arrival.envelope.bytes, room),
                            byte_buffer(posted->buffer.data(), room), posted->transfer),
          "accepted");
}

TEST(Packet_trains, of_any_length_fill_posted_receives_also_shorter_ones) {
  run_pair([](std::uint32_t rank, MeetingPoint& point) {
    transport::set_handler(transport::Handler::p2p_rts, receive_posted);
    int number = 0;
    for (int round = 0; round < 3; ++round)
      for (const std::size_t bytes : {20'000, 40'000, 65'536, 70'001, 131'072, 300'003, 524'288})
        for (const std::size_t room : {bytes, bytes - 100, bytes / 2, std::size_t{17'000}}) {
          Posted receive{std::vector<unsigned char>(room + 1, 0xee), {}};
          posted = &receive;
          send_train(rank, number, bytes);
          point.meet(); // so that they cross, and have few parts
          const std::uint32_t before = other_of(rank).receive.expected_sequence;
          wait_for([&] { return receive.finished; });
          while (shm::make_progress()) {} // what the buffer has no room for
          if (number > 0 && bytes > 32'768)
            require(other_of(rank).receive.expected_sequence - before <= bytes / 131'072 + 1,
                    "eight packets come in one part");
          require(receive.buffer.back() == 0xee, "nothing behind the buffer");
          receive.buffer.pop_back();
          auto expected = bytes_of(1 - rank, number, bytes);
          expected.resize(room);
          require(receive.buffer == expected, "a train brings its bytes");
          posted = nullptr;
          ++number;
          point.meet();
        }
  });
}

TEST(Packet_trains, that_answer_a_short_message_have_a_part_for_each_packet) {
  run_pair([](std::uint32_t rank, MeetingPoint& point) {
    char request = 0;
    for (int number = 0; number < 6; ++number) {
      if (rank == 0)
        require(transport::try_send_eager(other_of(rank), {7, 0, number, 1}, byte_buffer(&request, 1)),
                "a request leaves");
      point.meet();
      if (rank == 1) {
        require(shm::make_progress(), "a request comes");
        send_train(rank, number);
      }
      if (rank == 0) require(take_train(rank, number) == packets_of_train, "the client waits for its answer");
    }
  });
}

constexpr std::size_t longest_in_turns = 256u << 10;

TEST(Packet_trains, that_nothing_answers_are_long_where_ranks_share_processors) {
  run_pair([](std::uint32_t rank, MeetingPoint& point) {
    for (int number = 0; number < 16; ++number) {
      shm::engine().oversubscribed = number >= 8;
      if (rank == 0) point.has_left = try_to_send_train(rank, number, longest_in_turns);
      point.meet();
      if (number >= 4)
        require(point.has_left == (number >= 8), "long trains leave if ranks share processors");
      if (rank == 1 && point.has_left) take_train(rank, number, longest_in_turns);
      point.meet();
    }
    require(rank != 0 || !try_to_send_train(rank, 16, longest_in_turns + 1), "but longer ones do not");
  });
}

TEST(Packet_trains, that_find_no_packets_add_some_where_ranks_share_processors) {
  const Environment few_packets = {{"NEAR_PACKETS", "32"}};
  constexpr int trains = 3; // the packets from the beginning hold one
  run_pair(
      [](std::uint32_t rank, MeetingPoint& point) {
        const auto& packets = shm::engine().packets;
        shm::engine().oversubscribed = true;
        for (int number = 0; rank == 0 && number < trains; ++number)
          for (std::uint32_t before = packets.count(); !try_to_send_train(rank, number, longest_in_turns);
               before = packets.count())
            require(packets.count() == before + 1,
                    "each attempt adds a packet, so the train leaves in the end");
        point.meet();
        for (int number = 0; rank == 1 && number < trains; ++number)
          take_train(rank, number, longest_in_turns);
      },
      few_packets);
}

} // namespace
} // namespace near::test
