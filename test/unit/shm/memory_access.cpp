// Get, put and atomic operations on the memory of other ranks of the node.
#include "ranks.h"

#include "memory/allocate.h"

#include <array>
#include <cstring>

namespace {

using namespace near;
using namespace near::test;
using transport::AtomicKind;
using transport::AtomicOperation;

struct Outcome : transport::Access {
  int error = -1;
  Outcome() {
    done = [](transport::Access& access, int its_error) { static_cast<Outcome&>(access).error = its_error; };
  }
};

int apply(std::uint32_t rank, const transport::MemoryKey& key, std::uint64_t address,
          const AtomicOperation& operation) {
  Outcome outcome;
  transport::apply_atomic(peer(rank), key, address, operation, outcome);
  return outcome.error; // it completes at once
}

transport::Registration registered(void* address, std::size_t bytes) {
  transport::Registration made;
  require(transport::register_memory(peer(0), address, bytes, copy::MemoryKind::host, made).ok(),
          "registered");
  return made;
}

bool is_empty(const transport::MemoryKey& key) {
  return std::all_of(std::begin(key.words), std::end(key.words),
                     [](std::uint64_t word) { return word == 0; });
}

struct Known {
  transport::MemoryKey key;
  std::uint64_t address = 0;
};
Known known;
bool is_known = false;
int finished = 0;

void register_access_handlers() {
  transport::set_handler(transport::Handler::p2p_eager, [](transport::Arrival& arrival) {
    if (arrival.envelope.tag == 1) {
      std::memcpy(&known, arrival.payload, sizeof known);
      is_known = true;
    } else {
      ++finished;
    }
    transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
  });
}

void send(std::uint32_t to, int tag, void* data, std::size_t bytes) {
  const auto buffer = byte_buffer(data, bytes);
  wait_for([&] { return transport::try_send_eager(peer(to), {7, 0, tag, bytes}, buffer); });
}

TEST(MemoryAccess, atomic_operations_of_several_ranks_lose_no_update) {
  run_ranks(3, [](std::uint32_t rank) {
    constexpr std::uint64_t rounds = 20'000;
    register_access_handlers();
    struct Words {
      std::uint64_t sum, by_comparison;
      std::uint32_t narrow, bits;
    };
    if (rank == 0) {
      auto* words = static_cast<Words*>(memory::allocate_shareable(sizeof(Words), {}));
      *words = {};
      known = {registered(words, sizeof *words).key, reinterpret_cast<std::uint64_t>(words)};
      for (std::uint32_t other : {1u, 2u}) send(other, 1, &known, sizeof known);
    }
    wait_for([&] { return rank == 0 || is_known; });
    for (std::uint64_t i = 0; i < rounds; ++i) {
      auto at = [](std::size_t offset) { return known.address + offset; };
      require(apply(0, known.key, at(offsetof(Words, sum)), {AtomicKind::add, 8, 3}) == MPI_SUCCESS, "add");
      require(apply(0, known.key, at(offsetof(Words, narrow)), {AtomicKind::add, 4, 1}) == MPI_SUCCESS,
              "add 4");
      require(apply(0, known.key, at(offsetof(Words, bits)), {AtomicKind::bit_xor, 4, 1u << rank}) ==
                  MPI_SUCCESS,
              "xor");
      std::uint64_t expected = 0;
      for (;;) {
        std::uint64_t before = 0;
        require(apply(0, known.key, at(offsetof(Words, by_comparison)),
                      {AtomicKind::compare_and_swap, 8, expected + 1, expected, &before}) == MPI_SUCCESS,
                "compare and swap");
        if (before == expected) break;
        expected = before;
      }
    }
    if (rank != 0) return send(0, 2, nullptr, 0);
    wait_for([] { return finished == 2; });
    Words words;
    std::memcpy(&words, reinterpret_cast<void*>(known.address), sizeof words);
    require(words.sum == 9 * rounds && words.narrow == 3 * rounds && words.by_comparison == 3 * rounds &&
                words.bits == 0,
            "every update counts");
  });
}

TEST(MemoryAccess, only_memory_of_the_segment_has_a_key_and_atomic_operations) {
  run_ranks(1, [](std::uint32_t) {
    std::uint64_t own = 0;
    const auto shareable = registered(memory::allocate_shareable(4096, {}), 4096), priv = registered(&own, 8);
    require(!is_empty(shareable.key) && transport::capabilities(peer(0), shareable.key).atomics, "shareable");
    require(is_empty(priv.key) && !transport::capabilities(peer(0), priv.key).atomics, "private");
    require(apply(0, priv.key, reinterpret_cast<std::uint64_t>(&own), {AtomicKind::add, 8, 1}) ==
                    MPI_ERR_UNSUPPORTED_OPERATION &&
                own == 0,
            "no atomic operation pretends to have happened");
    transport::Registration device;
    require(transport::register_memory(peer(0), &own, 8, copy::MemoryKind::device, device).code() ==
                MPI_ERR_UNSUPPORTED_OPERATION,
            "devices are not supported yet");
  });
}

TEST(MemoryAccess, a_key_that_points_outside_the_segment_is_refused) {
  run_ranks(1, [](std::uint32_t) {
    auto* words = static_cast<std::uint64_t*>(memory::allocate_shareable(4096, {}));
    transport::MemoryKey key = registered(words, 4096).key;
    const std::uint64_t end = memory::space().segment.bytes();
    for (const auto& [at, value] :
         {std::pair<int, std::uint64_t>{2, end}, {2, ~std::uint64_t{0}}, {1, end}}) {
      transport::MemoryKey forged = key;
      forged.words[at] = value;
      require(apply(0, forged, reinterpret_cast<std::uint64_t>(words), {AtomicKind::add, 8, 1}) ==
                  MPI_ERR_RMA_RANGE,
              "it is checked against the segment");
    }
  });
}

} // namespace
