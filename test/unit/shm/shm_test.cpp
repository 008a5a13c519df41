#include "ranks.h"

#include "memory/allocate.h"
#include "os/memory.h"
#include "shm/provider.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <sys/resource.h>

namespace {

using namespace near;
using namespace near::test;
using transport::Arrival;
using transport::Envelope;
using transport::Handler;
using transport::Transfer;

struct Received {
  Envelope envelope;
  std::vector<std::byte> payload;
  transport::Peer* from;
  std::uint64_t packet;
  const std::byte* kept;
};
std::deque<Received> inbox;
bool keep_all_packets = false;

void on_eager(Arrival& arrival) {
  Received received{arrival.envelope,
                    {arrival.payload, arrival.payload + arrival.payload_bytes},
                    arrival.from,
                    arrival.packet,
                    arrival.payload};
  if (keep_all_packets && arrival.packet != 0)
    transport::keep_packet(arrival);
  else
    received.packet = 0;
  inbox.push_back(std::move(received));
  if (received.packet == 0) transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
}

struct ReceivedRts {
  Envelope envelope;
  transport::RtsHeader header;
  transport::Peer* from;
};
std::deque<ReceivedRts> rts_inbox;
void on_rts(Arrival& arrival) { rts_inbox.push_back({arrival.envelope, arrival.rts(), arrival.from}); }

void register_handlers() {
  transport::set_handler(Handler::p2p_eager, on_eager);
  transport::set_handler(Handler::p2p_rts, on_rts);
}

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 31 + seed + (i >> 8));
  return data;
}

void send_or_wait(std::uint32_t to, int tag, std::vector<unsigned char>& data) {
  auto buffer = byte_buffer(data.data(), data.size());
  wait_for([&] { return transport::try_send_eager(peer(to), {7, 0, tag, data.size()}, buffer); });
}

TEST(Shm, eager_messages_of_every_size_arrive_in_order_and_whole) {
  run_ranks(2, [](std::uint32_t rank) {
    register_handlers();
    const std::size_t sizes[] = {0, 1, 8, 87, 88, 89, 1000, 8192};
    if (rank == 0) {
      for (int round = 0; round < 200; ++round)
        for (std::size_t bytes : sizes) {
          auto data = pattern(bytes, static_cast<unsigned>(round));
          send_or_wait(1, round, data);
        }
      return;
    }
    for (int round = 0; round < 200; ++round)
      for (std::size_t bytes : sizes) {
        wait_for([] { return !inbox.empty(); });
        auto& got = inbox.front();
        auto expected = pattern(bytes, static_cast<unsigned>(round));
        require(got.envelope.tag == round && got.envelope.bytes == bytes, "envelope");
        require(std::equal(got.payload.begin(), got.payload.end(), expected.begin(), expected.end(),
                           [](std::byte a, unsigned char b) { return a == std::byte{b}; }),
                "payload");
        inbox.pop_front();
      }
  });
}

TEST(Shm, a_sender_without_credit_is_refused_and_goes_on_when_memory_is_released) {
  run_ranks(2,
            [](std::uint32_t rank) {
              transport::set_handler(Handler::p2p_eager, [](Arrival& arrival) {
                inbox.push_back({arrival.envelope, {}, arrival.from, 0, nullptr}); // keeps the credit
              });
              auto data = pattern(8, 0);
              auto buffer = byte_buffer(data.data(), data.size());
              auto try_once = [&](int tag) {
                return transport::try_send_eager(peer(1), {7, 0, tag, 8}, buffer);
              };
              if (rank == 0) {
                int sent = 0;
                while (sent < 100 && try_once(sent)) ++sent;
                require(sent == 4, "exactly as many as credits go out");
                wait_for([&] { return try_once(sent); });
                return;
              }
              wait_for([] { return inbox.size() == 4; });
              transport::give_back_credit(*inbox.front().from, inbox.front().envelope.bytes);
              wait_for([] { return inbox.size() == 5; });
            },
            {{"NEAR_CREDITS", "4"}});
}

TEST(Shm, kept_packets_run_out_for_eager_messages_but_not_for_a_pipelined_transfer) {
  run_ranks(
      2,
      [](std::uint32_t rank) {
        register_handlers();
        constexpr std::size_t large = 3'000'000;
        if (rank == 0) {
          auto small = pattern(1000, 1);
          auto buffer = byte_buffer(small.data(), small.size());
          int sent = 0;
          while (transport::try_send_eager(peer(1), {7, 0, sent, small.size()}, buffer)) ++sent;
          require(sent == 16 - 8, "all packets but the reserve");
          auto data = pattern(large, 2);
          Transfer transfer;
          static bool finished;
          finished = false;
          transfer.done = [](Transfer&, int) { finished = true; };
          require(
              transport::send_rts(peer(1), {7, 0, 99, large}, byte_buffer(data.data(), large), transfer).ok(),
              "RTS");
          wait_for([] { return finished; });
          return;
        }
        keep_all_packets = true;
        wait_for([] { return !rts_inbox.empty(); });
        std::vector<unsigned char> data(large);
        Transfer transfer;
        static bool finished;
        finished = false;
        transfer.done = [](Transfer&, int) { finished = true; };
        auto& received = rts_inbox.front();
        require(transport::accept(*received.from, received.header, received.envelope.bytes,
                                  byte_buffer(data.data(), large), transfer),
                "accept");
        wait_for([] { return finished; });
        require(data == pattern(large, 2), "data");
        require(inbox.size() == 8, "the kept messages are all here");
        for (auto& message : inbox) {
          auto expected = pattern(1000, 1);
          require(std::memcmp(message.kept, expected.data(), 1000) == 0, "a kept packet stays as it was");
          transport::give_back_packet(*message.from, message.packet);
        }
      },
      {{"NEAR_COPY", "pipelined"}, {"NEAR_PACKETS", "16"}, {"NEAR_PIPELINE", "256k"}});
}

/// This rank sends and receives so many bytes at the same time. Returns the most packets and runs that it has kept meanwhile.
std::uint32_t exchange(std::uint32_t rank, std::size_t out_bytes, std::size_t bytes) {
  const std::uint32_t other = 1 - rank;
  auto out = pattern(out_bytes, rank);
  std::vector<unsigned char> in(bytes + 1, 0xee);
  Transfer sending, receiving;
  static int finished;
  static std::uint32_t kept;
  finished = 0;
  kept = 0;
  sending.done = receiving.done = [](Transfer&, int error) {
    require(error == MPI_SUCCESS, "transfer error");
    ++finished;
  };
  require(transport::send_rts(peer(other), {7, 0, 1, out_bytes}, byte_buffer(out.data(), out_bytes), sending)
              .ok(),
          "RTS");
  wait_for([] { return !rts_inbox.empty(); });
  auto received = rts_inbox.front();
  rts_inbox.pop_front();
  require(transport::rts_is_live(*received.from, received.header), "live");
  require(transport::accept(*received.from, received.header, received.envelope.bytes,
                            byte_buffer(in.data(), bytes), receiving),
          "accept");
  wait_for([] {
    kept = std::max(kept, shm::engine().kept_packets);
    return finished == 2;
  });
  require(!transport::rts_is_live(*received.from, received.header), "an accepted RTS is not live any more");
  require(in.back() == 0xee, "nothing behind the buffer");
  in.pop_back();
  require(in == pattern(bytes, other), "data");
  return kept;
}

std::uint32_t exchange(std::uint32_t rank, std::size_t bytes) { return exchange(rank, bytes, bytes); }

void transfer_both_ways(std::uint32_t rank) {
  register_handlers();
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{200000}, std::size_t{5000001}})
    exchange(rank, bytes);
}

TEST(Shm, messages_travel_by_cross_memory_attach) {
  run_ranks(2, transfer_both_ways, {{"NEAR_COPY", "cma"}});
}

TEST(Shm, messages_travel_pipelined) { run_ranks(2, transfer_both_ways, {{"NEAR_COPY", "pipelined"}}); }

TEST(Shm, messages_travel_pipelined_with_streaming_stores) {
  run_ranks(2, transfer_both_ways, {{"NEAR_COPY", "pipelined"}, {"NEAR_STORES", "streaming"}});
}

/// A rank that sleeps returns what it keeps, so one exchange proves nothing.
bool keeps_some(std::uint32_t rank, std::size_t bytes) {
  bool kept = false;
  for (int i = 0; i < 20; ++i) kept |= exchange(rank, bytes) > 0;
  return kept;
}

/// Only a long message with many packets to rotate through has them back at once (doc/adr/0014).
TEST(Shm, packets_are_kept_except_those_of_long_messages_that_have_enough) {
  run_ranks(2,
            [](std::uint32_t rank) {
              register_handlers();
              for (int i = 0; i < 5; ++i)
                require(exchange(rank, rank == 0 ? 5'000'000 : 0, rank == 0 ? 0 : 5'000'000) == 0,
                        "none is kept if only one sends");
              exchange(rank, 5'000'000);
              require(shm::engine().kept_packets == 0, "nor, after both have sent, any run");
              require(keeps_some(rank, 1'000'000), "those of a shorter one are kept");
            },
            {{"NEAR_COPY", "pipelined"}, {"NEAR_PACKETS", "160"}});
  run_ranks(2,
            [](std::uint32_t rank) {
              register_handlers();
              require(keeps_some(rank, 3'000'000), "those of a long message are kept if they are few");
            },
            {{"NEAR_COPY", "pipelined"}, {"NEAR_PACKETS", "48"}});
}

TEST(Shm, a_pipeline_that_gets_no_more_memory_works_with_its_first_packets) {
  run_ranks(2, transfer_both_ways, {{"NEAR_COPY", "pipelined"}, {"NEAR_PIPELINE", "0"}});
}

TEST(Shm, a_message_in_memory_of_the_segment_is_loaded_directly) {
  run_ranks(2, [](std::uint32_t rank) {
    register_handlers();
    constexpr std::size_t bytes = 1 << 20;
    static bool finished;
    finished = false;
    Transfer transfer;
    transfer.done = [](Transfer&, int) { finished = true; };
    if (rank == 0) {
      void* shared = memory::allocate_shareable(bytes, {.alignment = 64});
      require(shared != nullptr, "allocation");
      auto data = pattern(bytes, 3);
      std::memcpy(shared, data.data(), bytes);
      require(transport::send_rts(peer(1), {7, 0, 1, bytes}, byte_buffer(shared, bytes), transfer).ok(),
              "RTS");
      wait_for([] { return finished; });
      require(transport::own_traffic(segment::Path::direct).bytes == bytes, "path");
      require(memory::free_shareable(shared), "release");
      require(!memory::free_shareable(data.data()), "foreign memory is not ours to free");
      return;
    }
    wait_for([] { return !rts_inbox.empty(); });
    std::vector<unsigned char> in(bytes);
    auto& received = rts_inbox.front();
    require(
        transport::accept(*received.from, received.header, bytes, byte_buffer(in.data(), bytes), transfer),
        "accept");
    require(finished, "a direct pull is finished at once");
    require(in == pattern(bytes, 3), "data");
  });
}

TEST(Shm, waits_poll_for_longer_where_ranks_share_processors_unless_told_otherwise) {
  const auto check = [](std::uint32_t ranks, const Environment& environment, std::uint64_t expected_ns) {
    run_ranks(
        ranks,
        [=](std::uint32_t) {
          require(transport::wait_settings.oversubscribed == (ranks > 2), "two processors");
          require(transport::wait_settings.spin_ns == expected_ns, "for how long a wait polls");
        },
        environment);
  };
  check(2, {}, 100'000);
  check(4, {}, 1'000'000);
  check(4, {{"NEAR_SPIN", "50"}}, 50'000);
  check(4, {{"NEAR_WAIT", "sleep"}}, 0);
}

TEST(Shm, a_short_rendezvous_message_is_loaded_from_behind_its_descriptor) {
  run_ranks(2, [](std::uint32_t rank) {
    register_handlers();
    // The least and the most bytes for each size of descriptors; more messages than a page has descriptors, but not more than
    // there may be of the longest descriptors.
    const std::vector<std::size_t> lengths = {1, 64, 65, 448, 449, 4032};
    constexpr std::size_t times = 32;
    static std::size_t finished;
    finished = 0;
    std::deque<Transfer> transfers(lengths.size() * times);
    std::deque<std::vector<unsigned char>> data;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      std::size_t length = lengths[i % lengths.size()];
      bytes += length;
      transfers[i].done = [](Transfer&, int error) {
        require(error == MPI_SUCCESS, "transfer error");
        ++finished;
      };
      if (rank == 1) {
        wait_for([] { return !rts_inbox.empty(); });
        data.emplace_back(length);
        auto received = rts_inbox.front();
        rts_inbox.pop_front();
        require(transport::accept(*received.from, received.header, length,
                                  byte_buffer(data[i].data(), length), transfers[i]),
                "accept");
        require(finished == i + 1, "a short message is there at once");
        require(data[i] == pattern(length, static_cast<std::uint32_t>(i)), "data");
      } else {
        data.push_back(pattern(length, static_cast<std::uint32_t>(i)));
        require(
            transport::send_rts(peer(1), {7, 0, 1, length}, byte_buffer(data[i].data(), length), transfers[i])
                .ok(),
            "RTS");
      }
    }
    if (rank == 1) return;
    wait_for([&] { return finished == transfers.size(); });
    require(transport::own_traffic(segment::Path::direct).bytes == bytes, "path");
  });
}

TEST(Shm, the_longest_descriptors_are_few_and_used_again) {
  run_ranks(2, [](std::uint32_t rank) {
    register_handlers();
    constexpr std::size_t length = 4000, at_once = 100, most = 64, rounds = 3;
    static std::size_t finished;
    const auto data = pattern(length, 5);
    for (std::size_t round = 1; round <= rounds; ++round) {
      finished = 0;
      std::deque<Transfer> transfers(at_once);
      for (Transfer& transfer : transfers) {
        transfer.done = [](Transfer&, int error) {
          require(error == MPI_SUCCESS, "transfer error");
          ++finished;
        };
        if (rank == 1) continue;
        auto* const at = const_cast<unsigned char*>(data.data());
        require(transport::send_rts(peer(1), {7, 0, 1, length}, byte_buffer(at, length), transfer).ok(),
                "RTS");
      }
      if (rank == 1)
        wait_for([] { return rts_inbox.size() == at_once; }); // so that all are under way at once
      for (std::size_t i = 0; rank == 1 && i < at_once; ++i) {
        auto received = rts_inbox.front();
        rts_inbox.pop_front();
        std::vector<unsigned char> in(length);
        require(transport::accept(*received.from, received.header, length, byte_buffer(in.data(), length),
                                  transfers[i]),
                "accept");
        wait_for([&] { return finished > i; });
        require(in == data, "data");
      }
      wait_for([] { return finished == at_once; });
      if (rank == 0)
        require(transport::own_traffic(segment::Path::direct).messages == round * most,
                "the others go otherwise");
    }
  });
}

TEST(Shm, a_shorter_receive_takes_its_part_and_both_sides_finish) {
  for (const char* protocol : {"cma", "pipelined"})
    run_ranks(2,
              [](std::uint32_t rank) {
                register_handlers();
                static bool finished;
                finished = false;
                Transfer transfer;
                transfer.done = [](Transfer&, int) { finished = true; };
                auto data = pattern(100000, 5);
                if (rank == 0) {
                  require(transport::send_rts(peer(1), {7, 0, 1, data.size()},
                                              byte_buffer(data.data(), data.size()), transfer)
                              .ok(),
                          "RTS");
                  wait_for([] { return finished; });
                  return;
                }
                wait_for([] { return !rts_inbox.empty(); });
                std::vector<unsigned char> in(40001, 0xee);
                auto& received = rts_inbox.front();
                require(transport::accept(*received.from, received.header, data.size(),
                                          byte_buffer(in.data(), 40000), transfer),
                        "accept");
                wait_for([] { return finished; });
                require(std::memcmp(in.data(), data.data(), 40000) == 0 && in[40000] == 0xee, "data");
              },
              {{"NEAR_COPY", protocol}});
}

TEST(Shm, a_cancelled_rts_cannot_be_accepted_and_an_accepted_one_not_cancelled) {
  run_ranks(2, [](std::uint32_t rank) {
    register_handlers();
    auto data = pattern(100, 0);
    static int finished;
    finished = 0;
    Transfer first, second;
    first.done = second.done = [](Transfer&, int) { ++finished; };
    if (rank == 0) {
      require(transport::send_rts(peer(1), {7, 0, 1, 100}, byte_buffer(data.data(), 100), first).ok(), "RTS");
      require(transport::cancel_rts(first), "an RTS that nobody matched can be cancelled");
      require(transport::send_rts(peer(1), {7, 0, 2, 100}, byte_buffer(data.data(), 100), second).ok(),
              "RTS");
      wait_for([] { return finished == 1; });
      require(!second.busy, "the second is done");
      return;
    }
    wait_for([] { return rts_inbox.size() == 2; });
    std::vector<unsigned char> in(100);
    require(!transport::rts_is_live(*rts_inbox[0].from, rts_inbox[0].header), "cancelled");
    require(
        !transport::accept(*rts_inbox[0].from, rts_inbox[0].header, 100, byte_buffer(in.data(), 100), first),
        "accept");
    require(
        transport::accept(*rts_inbox[1].from, rts_inbox[1].header, 100, byte_buffer(in.data(), 100), second),
        "accept");
    wait_for([] { return finished == 1; });
    require(in == data, "data");
  });
}

TEST(Shm, eight_ranks_that_flood_each_other_through_small_queues_do_not_deadlock) {
  constexpr int each = 300;
  run_ranks(8,
            [](std::uint32_t rank) {
              static int received;
              received = 0;
              transport::set_handler(Handler::p2p_eager, [](Arrival& arrival) {
                ++received;
                transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
              });
              auto data = pattern(300, rank);
              auto buffer = byte_buffer(data.data(), data.size());
              for (int i = 0; i < each; ++i)
                for (std::uint32_t to = 0; to < 8; ++to)
                  wait_for(
                      [&] { return transport::try_send_eager(peer(to), {7, 0, i, data.size()}, buffer); });
              wait_for([] { return received == 8 * each; });
            },
            {{"NEAR_QUEUE_SLOTS", "4"}});
}

TEST(Shm, the_arena_says_which_limit_was_met) {
  run_ranks(1, [](std::uint32_t) {
    require(memory::allocate_shareable(1ull << 60, {.alignment = 64}) == nullptr, "an absurd size");
    require(base::failure_text().find("segment") != std::string_view::npos, "the text names the limit");
    require(memory::allocate_shareable(1ull << 42, {.alignment = 64}) == nullptr,
            "more than the machine has");
    require(base::failure_text().find("memory") != std::string_view::npos, "the text names the memory");
    void* a = memory::allocate_shareable(10000, {.alignment = 4096});
    void* b = memory::allocate_shareable(10000, {.alignment = 65536});
    require(a != nullptr && b != nullptr && a != b, "two allocations");
    require(reinterpret_cast<std::uintptr_t>(b) % 65536 == 0, "alignment");
    std::memset(a, 1, 10000);
    require(memory::free_shareable(a) && !memory::free_shareable(a), "freed once");
  });
}

/// The use of a block according to the list for tools; `missing` if the block is not listed.
constexpr std::uint32_t missing = 99;
std::uint32_t listed_use(const void* at) {
  const auto& segment = transport::job_segment();
  const auto& control = segment.control(0);
  for (std::uint32_t i = 0; i < control.block_count.load_relaxed(); ++i) {
    const auto& block = segment.at<segment::Block>(control.blocks)[i];
    if (block.bytes.load_relaxed() != 0 && block.begin.load_relaxed() == segment.offset_of(at))
      return block.use.load_relaxed();
  }
  return missing;
}
constexpr auto kept_use = static_cast<std::uint32_t>(segment::BlockUse::kept),
               allocated_use = static_cast<std::uint32_t>(segment::BlockUse::allocated),
               window_use = static_cast<std::uint32_t>(segment::BlockUse::window);

TEST(Shm, freed_memory_is_kept_for_the_next_allocation_of_its_kind) {
  run_ranks(1, [](std::uint32_t) {
    void* a = memory::allocate_shareable(1 << 20, {});
    require(a != nullptr && listed_use(a) == allocated_use, "listed as allocated");
    std::memset(a, 7, 1 << 20);
    require(memory::free_shareable(a) && listed_use(a) == kept_use, "listed as kept");
    require(!memory::free_shareable(a), "kept memory is free");
    require(!memory::free_shareable(a, segment::BlockUse::window), "and no window's");
    void* b = memory::allocate_shareable((1 << 20) - 5000, {.alignment = 4096});
    require(b == a && static_cast<char*>(b)[9] == 7, "a little less takes the same pages");
    require(memory::free_shareable(b), "release");
    void* c = memory::allocate_shareable(4096, {});
    require(c != a, "a small block does not take a large one");
    void* w = memory::allocate_shareable(1 << 20, {}, segment::BlockUse::window);
    require(w == a && listed_use(w) == window_use, "a window may take them");
    const char* bytes = static_cast<char*>(w);
    require(std::all_of(bytes, bytes + (1 << 20), [](char byte) { return byte == 0; }), "and finds zeros");
    require(!memory::free_shareable(w), "it is a window's");
    require(memory::free_shareable(w, segment::BlockUse::window), "release");
  });
}

TEST(Shm, memory_whose_pages_may_come_later_is_not_taken_for_a_hint_of_a_node) {
  run_ranks(1, [](std::uint32_t) {
    constexpr std::size_t bytes = 20u << 20;
    void* later = memory::allocate_shareable(bytes, {});
    require(later != nullptr && memory::free_shareable(later) && listed_use(later) == kept_use,
            "one is kept, untouched");
    const memory::AllocationHints hints{.node = os::current_node()};
    void* now = memory::allocate_shareable(bytes, hints);
    require(now != nullptr && os::bytes_in_core(now, bytes) >= bytes, "all pages exist");
    require(memory::shortfall(now, bytes, hints).empty(), "and are where they should be");
  });
}

TEST(Shm, kept_memory_is_bounded_and_goes_when_it_is_needed) {
  run_ranks(1, [](std::uint32_t) {
    constexpr std::size_t each = 4u << 20;
    const std::uint64_t most = memory::most_kept_bytes();
    require(most >= 2 * each, "this machine has too little memory to test that");
    std::vector<void*> blocks;
    for (std::uint64_t bytes = 0; bytes < most + 3 * each; bytes += each)
      blocks.push_back(memory::allocate_shareable(each, {}));
    for (void* block : blocks)
      require(block != nullptr && memory::free_shareable(block), "allocated and released");
    auto kept = static_cast<std::uint64_t>(
        std::count_if(blocks.begin(), blocks.end(), [](void* at) { return listed_use(at) == kept_use; }));
    require(kept == most / each, "as many are kept as the bound allows");
    require(listed_use(blocks.front()) == missing, "the first ones went");
    require(memory::allocate_shareable(1ull << 42, {}) == nullptr, "more than the machine has");
    for (void* block : blocks)
      require(listed_use(block) == missing, "no block is kept while memory is needed");
    void* fresh = memory::allocate_shareable(each, {});
    require(fresh != nullptr && *static_cast<char*>(fresh) == 0, "new pages are zeros");
    std::vector<void*> small;
    for (int i = 0; i < 300; ++i) small.push_back(memory::allocate_shareable(1, {}));
    for (void* at : small) require(memory::free_shareable(at), "release");
    require(static_cast<std::size_t>(std::count_if(
                small.begin(), small.end(), [](void* at) { return listed_use(at) == kept_use; })) == 256,
            "blocks are counted too");
  });
}

TEST(Shm, memory_has_one_owner_also_when_the_list_is_full) {
  run_ranks(1, [](std::uint32_t) {
    void* kept = memory::allocate_shareable(1, {});
    require(kept != nullptr && memory::free_shareable(kept) && listed_use(kept) == kept_use, "one is kept");
    std::vector<void*> blocks;
    for (std::uint32_t i = 0; i < segment::most_blocks; ++i)
      blocks.push_back(memory::allocate_shareable(2 * os::page_size(), {}));
    require(listed_use(kept) == missing, "what is kept makes room in the list");
    require(listed_use(blocks.back()) == allocated_use, "for what is in use");
    void* w = memory::allocate_shareable(os::page_size(), {}, segment::BlockUse::window);
    require(w != nullptr && listed_use(w) == missing, "then the list is full");
    require(!memory::free_shareable(w), "it still belongs to the window");
    void* a = memory::allocate_shareable(os::page_size(), {});
    require(a != nullptr && a != w, "and nobody else gets it");
    require(!memory::free_shareable(a, segment::BlockUse::window), "this does not belong to a window");
    require(memory::free_shareable(a) && !memory::free_shareable(a), "freed once");
    require(memory::free_shareable(w, segment::BlockUse::window), "release");
    require(!memory::free_shareable(w, segment::BlockUse::window), "once");
    for (void* block : blocks) require(memory::free_shareable(block), "release of the others");
  });
}

TEST(Shm, addresses_that_others_have_placed_pages_in_are_not_freed_as_memory) {
  run_ranks(1, [](std::uint32_t) {
    void* row = memory::reserve_shareable(2 * os::page_size(), {});
    require(row != nullptr && !memory::free_shareable(row), "nobody has allocated that");
    require(memory::free_shareable(row, segment::BlockUse::window), "its window ends it");
  });
}

TEST(Shm, what_is_kept_makes_room_for_the_transports_own_memory) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    // With little address space left there is only one arena, which can be used up. A sanitizer has already
    // taken terabytes of it.
    std::uint64_t pages = 0;
    require(static_cast<bool>(std::ifstream("/proc/self/statm") >> pages), "size");
    const std::uint64_t most = pages * os::page_size() + (4ull << 30);
    const rlimit limit{most, most};
    require(setrlimit(RLIMIT_AS, &limit) == 0, "limit");
    require(base::read_knobs(environ).ok() && shm::start({}).ok(), "start");
    void* kept = memory::allocate_shareable(1, {});
    require(kept != nullptr && memory::free_shareable(kept) && listed_use(kept) == kept_use, "one is kept");
    auto& arena = memory::space().ordinary_arena();
    require(&arena == &memory::space().arena, "there is one arena");
    void* made = nullptr;
    for (std::uint64_t bytes = 1ull << 32; bytes >= os::page_size(); bytes /= 2)
      while (arena.reserve(bytes, 1, made).ok()) {}
    require(!arena.allocate(1, 1, 0, made).ok(), "it is used up");
    require(memory::allocate_pages(1, made).ok() && made == kept, "but for what is kept");
    require(!memory::allocate_pages(1, made).ok(), "now altogether");
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Shm, large_memory_comes_when_it_is_touched_and_is_counted_before) {
  std::string policy = os::shared_huge_pages_policy();
  if (os::refuses_overcommitment() || (!policy.empty() && policy != "never" && policy != "deny"))
    GTEST_SKIP() << "on this machine all pages are made at once";
  run_ranks(2, [](std::uint32_t rank) {
    if (rank != 0) return;
    constexpr std::size_t bytes = 48u << 20;
    auto* a = static_cast<char*>(memory::allocate_shareable(bytes, {}, segment::BlockUse::window));
    require(a != nullptr && os::bytes_in_core(a, bytes) == 0, "nothing is touched");
    a[0] = a[bytes - 1] = 1;
    require(os::bytes_in_core(a, bytes) == 2 * os::page_size(), "two pages are");
    require(memory::free_shareable(a, segment::BlockUse::window), "release");
    auto* b = static_cast<char*>(memory::allocate_shareable(bytes, {}, segment::BlockUse::window));
    require(b != nullptr && b[0] == 0 && b[bytes - 1] == 0, "they are zeros again");
    require(memory::free_shareable(b, segment::BlockUse::window), "release");

    std::size_t half = 0;
    for (std::size_t most = os::physical_memory(); half == 0 && most > bytes; most -= most / 8)
      if (void* at = memory::allocate_shareable(most, {}); at != nullptr) {
        half = most / 16 * 10;
        require(memory::free_shareable(at), "release");
      }
    void* first = memory::allocate_shareable(half, {});
    require(first != nullptr, "there is room for one");
    require(memory::allocate_shareable(half, {}) == nullptr, "but not for two, though none is touched");
    require(base::failure_text().find("promised") != std::string_view::npos, "the text says why");
    require(memory::free_shareable(first), "release");
    void* second = memory::allocate_shareable(half, {});
    require(second != nullptr && memory::free_shareable(second), "now there is room");
  });
}

TEST(Shm, every_protocol_can_be_chosen) {
  for (const auto& provider : shm::ladder()) {
    bool choice = provider.protocol != shm::Protocol::count;
    pid_t child = fork();
    if (child == 0) {
      setenv("NEAR_COPY", provider.name, 1);
      require(base::read_knobs(environ).ok(), "knobs");
      require(shm::start({}).ok() == choice, provider.name);
      _exit(0);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << provider.name;
  }
}

TEST(Shm, an_unknown_protocol_is_an_error_with_the_nearest_name) {
  pid_t child = fork();
  if (child == 0) {
    setenv("NEAR_COPY", "pipelned", 1);
    require(base::read_knobs(environ).ok(), "knobs");
    require(!shm::start({}).ok(), "start");
    require(base::failure_text().find("did you mean pipelined?") != std::string_view::npos, "suggestion");
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

} // namespace
