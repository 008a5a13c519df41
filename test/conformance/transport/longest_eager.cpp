// Messages that leave before they are received although they are longer than eager_limit().
#include "suite.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

namespace near::test {
namespace {

/// Sends a message eagerly if the transport takes it, otherwise by an RTS; returns whether it has left.
bool send_either_way(Peer& to, int tag, Bytes& data, Side& side) {
  const Buffer buffer = buffer_of(data.data(), data.size());
  switch (transport::send_eager(to, {5, 0, tag, data.size()}, buffer, &side)) {
  case Eager::left: return side.finished = true;
  case Eager::waits: return false;
  case Eager::refused: announce(to, tag, buffer, side); return false;
  }
  return false;
}

/// The receiver takes messages while they arrive, or the last ones first, into buffers of their size, shorter ones, and none.
TEST_P(Conformance, messages_between_the_eager_limits_arrive_whole_whenever_they_are_taken) {
  const bool leave_early = GetParam() == "shm" || GetParam() == "shm_scarce" || GetParam() == "shm_pipelined";
  run([=](Part& part) {
    constexpr int warm_up = 200, count = 120, at_once = 4;
    const std::size_t least = transport::eager_limit() + 1, most = transport::longest_eager();
    auto length = [&](int i) { return least + static_cast<std::size_t>(i) * 4099 % (most - least + 1); };
    auto room = [&](int i) { return i % 7 == 3 ? length(i) / 2 : i % 7 == 5 ? 0 : length(i); };
    auto data = [&](int i) { return pattern(length(i), static_cast<unsigned>(i)); };
    if (most < least) return;
    if (part.sends) {
      for (int i = 0; i < warm_up; ++i) send_eager(*part.other, -1, pattern(8, 1));
      int left = 0;
      for (int i = 0; i < count; i += at_once) {
        std::array<Bytes, at_once> out;
        std::array<Side, at_once> sides;
        for (int j = 0; j < at_once; ++j) {
          const auto at = static_cast<std::size_t>(j);
          left += send_either_way(*part.other, i + j, out[at] = data(i + j), sides[at]);
        }
        wait_for([&] {
          return std::all_of(sides.begin(), sides.end(), [](const Side& side) { return side.finished; });
        });
      }
      require(!leave_early || left != 0, "some leave before they are received");
    }
    if (part.receives) {
      for (int i = 0; i < warm_up; ++i) (void)next();
      for (int i = 0; i < count; i += at_once) {
        std::array<Bytes, at_once> in;
        std::array<Side, at_once> sides;
        std::vector<Arrived> some;
        auto begin = [&](const Arrived& message) {
          const auto at = static_cast<std::size_t>(message.envelope.tag - i);
          in[at].resize(room(message.envelope.tag));
          if (message.is_rts) return take(message, buffer_of(in[at].data(), in[at].size()), sides[at]);
          std::copy_n(message.data.begin(), in[at].size(), in[at].begin());
          sides[at].finished = true;
          sides[at].error = MPI_SUCCESS;
        };
        for (int j = 0; j < at_once; ++j) {
          some.push_back(next());
          require(some.back().envelope.tag == i + j && some.back().envelope.bytes == length(i + j),
                  "messages arrive in order, with their lengths");
          if (i % 8 == 0) begin(some.back());
        }
        if (i % 8 != 0) std::for_each(some.rbegin(), some.rend(), begin);
        for (int j = 0; j < at_once; ++j) {
          const auto at = static_cast<std::size_t>(j);
          wait_for([&] { return sides[at].finished; });
          Bytes expected = data(i + j);
          expected.resize(room(i + j));
          require(sides[at].error == MPI_SUCCESS && in[at] == expected, "and their bytes");
        }
      }
    }
  });
}

/// With gaps on either side or on both; the receiver takes the message when it is announced, or when the next one has arrived.
TEST_P(Conformance, messages_with_gaps_between_the_eager_limits_are_packed_and_unpacked) {
  run([](Part& part) {
    constexpr std::size_t block = 50, spread = 2 * block;
    for (std::size_t packed = 20'000; packed <= 320'000; packed *= 2) {
      const auto blocks = static_cast<MPI_Count>(packed / block);
      datatype::Datatype* with_gaps = nullptr;
      require(
          datatype::make_vector(blocks, block, spread, false, *datatype::find_datatype(MPI_BYTE), with_gaps)
              .ok(),
          "type");
      const Bytes data = pattern(2 * packed, static_cast<unsigned>(packed));
      for (int way = 0; way < 8; ++way) {
        const bool gaps_out = (way & 1) != 0, gaps_in = (way & 2) != 0, late = (way & 4) != 0;
        Bytes out = data, in(2 * packed, 0x55);
        Side sending, receiving;
        if (part.sends) {
          const Buffer buffer = gaps_out ? Buffer{out.data(), 1, with_gaps} : buffer_of(out.data(), packed);
          switch (transport::send_eager(*part.other, {5, 0, 1, packed}, buffer, &sending)) {
          case Eager::left: sending.finished = true; break;
          case Eager::waits: break;
          case Eager::refused: announce(*part.other, 1, buffer, sending); break;
          }
          send_eager(*part.other, 2, {});
        }
        if (part.receives) {
          const Arrived message = next();
          if (late) (void)next();
          const Buffer buffer = gaps_in ? Buffer{in.data(), 1, with_gaps} : buffer_of(in.data(), packed);
          if (message.is_rts) {
            take(message, buffer, receiving);
            wait_for([&] { return receiving.finished; });
          } else {
            datatype::unpack(buffer, 0, reinterpret_cast<const std::byte*>(message.data.data()),
                             static_cast<MPI_Count>(packed));
          }
          if (!late) (void)next();
          auto at = [](bool gaps, std::size_t i) { return gaps ? i / block * spread + i % block : i; };
          for (std::size_t i = 0; i < packed; ++i)
            require(in[at(gaps_in, i)] == data[at(gaps_out, i)], "each byte is in its place");
          for (std::size_t i = block; gaps_in && i < 2 * packed - block; i += spread)
            require(in[i] == 0x55, "gaps are left alone");
        }
        if (part.sends) wait_for([&] { return sending.finished; });
      }
    }
  });
}

/// Both send, and one dies while messages are on their way in both directions; the other one receives what comes.
TEST_P(Conformance, a_peer_that_dies_ends_messages_between_the_eager_limits) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can die";
  if (!kind().fails_alone()) GTEST_SKIP() << "the job ends with it";
  run(
      [](Part& part) {
        constexpr std::size_t count = 24;
        const std::size_t bytes = transport::longest_eager();
        static std::array<Bytes, count> out, in;
        static std::array<Side, count> sending, receiving;
        part.meet();
        for (std::size_t i = 0; i < count; ++i)
          (void)send_either_way(*part.other, static_cast<int>(i),
                                out[i] = pattern(bytes, static_cast<unsigned>(i)), sending[i]);
        if (part.receives) {
          (void)next();
          raise(SIGKILL);
        }
        std::size_t taken = 0;
        auto accept_what_came = [&] {
          for (; !inbox.empty(); inbox.pop_front()) {
            const Arrived& message = inbox.front();
            if (!message.is_rts) continue;
            in[taken].resize(bytes);
            Side& side = receiving[taken];
            taken +=
                transport::accept(*message.from, message.rts, bytes, buffer_of(in[taken].data(), bytes), side)
                    ? 1
                    : 0;
          }
        };
        auto have_ended = [](const auto& first, std::size_t number) {
          return std::all_of(first.begin(), first.begin() + number,
                             [](const Side& side) { return side.finished; });
        };
        wait_for([&] {
          accept_what_came();
          return transport::has_ended(*part.other) && have_ended(sending, count) &&
                 have_ended(receiving, taken);
        });
        for (std::size_t i = 0; i < taken; ++i) {
          require(receiving[i].error == MPI_ERR_PROC_ABORTED ||
                      in[i] == pattern(bytes, static_cast<unsigned>(i)),
                  "what has arrived is right");
        }
        transport::receive_no_more();
        wait_for([] { return transport::sends_settled(); });
      },
      true);
}

/// What a process had sent before it died is received in its order: what has arrived whole, and an error in the place of what has not.
TEST_P(Conformance, messages_of_a_peer_that_dies_keep_their_places) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can die";
  if (!kind().fails_alone()) GTEST_SKIP() << "the job ends with it";
  run(
      [](Part& part) {
        static Bytes announced = pattern(1 << 20, 2), between = pattern(transport::longest_eager(), 3);
        static Side announcing, leaving;
        part.meet();
        if (part.receives) {
          announce(*part.other, 1, buffer_of(announced.data(), announced.size()), announcing);
          const Buffer buffer = buffer_of(between.data(), between.size());
          const Eager eager = transport::send_eager(*part.other, {5, 0, 2, between.size()}, buffer, &leaving);
          if (eager == Eager::refused) announce(*part.other, 2, buffer, leaving);
          if (eager == Eager::waits) wait_for([] { return leaving.finished; });
          send_eager(*part.other, 3, Bytes(1, eager != Eager::refused));
          (void)next();
          raise(SIGKILL);
        }
        const std::array<Arrived, 3> came{next(), next(), next()};
        send_eager(*part.other, 0, {});
        wait_for([&] { return transport::has_ended(*part.other); });
        Bytes in(announced.size());
        for (const Arrived& message : came) {
          require(message.envelope.tag == 1 + (&message - came.data()), "messages arrive in order");
          if (!message.is_rts) continue;
          require(transport::rts_is_live(*message.from, message.rts), "none is lost");
          Side side;
          take(message, buffer_of(in.data(), message.envelope.bytes), side);
          require(side.finished, "nothing is waited for");
          const bool is_whole = message.envelope.tag == 2 && came[2].data[0] != 0;
          require(side.error == (is_whole ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED),
                  "what is incomplete is an error");
          require(!is_whole || std::equal(between.begin(), between.end(), in.begin()),
                  "what is whole is right");
        }
        transport::receive_no_more();
        wait_for([] { return transport::sends_settled(); });
      },
      true);
}

/// A receive that ends because its sender has died gives its buffer back: nothing is written there any more, although bytes may still
/// lie in the network.
TEST_P(Conformance, a_receive_from_a_peer_that_dies_leaves_its_buffer_alone_once_it_has_ended) {
  if (!kind().has_processes()) GTEST_SKIP() << "nobody else can die";
  if (!kind().fails_alone()) GTEST_SKIP() << "the job ends with it";
  run(
      [](Part& part) {
        constexpr std::size_t count = 12;
        static std::array<Bytes, count> data;
        static std::array<Side, count> sides;
        auto length = [](std::size_t i) -> std::size_t { return i % 3 == 0 ? 8 << 20 : 512 << 10; };
        auto polls_for = [](std::chrono::milliseconds time) {
          const auto until = std::chrono::steady_clock::now() + time;
          while (std::chrono::steady_clock::now() < until) (void)transport::progress();
        };
        part.meet();
        if (part.receives) {
          for (std::size_t i = 0; i < count; ++i)
            (void)send_either_way(*part.other, static_cast<int>(i),
                                  data[i] = pattern(length(i), static_cast<unsigned>(i)), sides[i]);
          polls_for(std::chrono::milliseconds(100));
          raise(SIGKILL);
        }
        std::size_t taken = 0;
        auto take_what_has_come = [&] {
          for (; !inbox.empty(); inbox.pop_front()) {
            data[taken].resize(inbox.front().envelope.bytes);
            take(inbox.front(), buffer_of(data[taken].data(), data[taken].size()), sides[taken]);
            ++taken;
          }
        };
        wait_for([] { return !inbox.empty(); });
        take_what_has_come();
        part.wait_for_end(); // makes no progress
        constexpr unsigned char reused = 0xaa;
        std::array<bool, count> filled{};
        wait_for([&] {
          take_what_has_come();
          for (std::size_t i = 0; i < taken; ++i)
            if (sides[i].finished && sides[i].error != MPI_SUCCESS && !std::exchange(filled[i], true))
              std::fill(data[i].begin(), data[i].end(), reused);
          return transport::has_ended(*part.other) &&
                 std::all_of(sides.begin(), sides.begin() + taken,
                             [](const Side& side) { return side.finished; });
        });
        polls_for(std::chrono::milliseconds(200));
        for (std::size_t i = 0; i < taken; ++i)
          require(!filled[i] || std::count(data[i].begin(), data[i].end(), reused) ==
                                    static_cast<std::ptrdiff_t>(data[i].size()),
                  "nothing is written to a buffer after its receive has ended");
        require(std::count(filled.begin(), filled.end(), true) != 0, "some messages were under way");
        transport::receive_no_more();
        wait_for([] { return transport::sends_settled(); });
      },
      true);
}

} // namespace
} // namespace near::test
