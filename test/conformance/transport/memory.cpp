// Access to the memory of a peer (transport/access.h). In each test the receiver owns the memory, registers
// it and sends its key; the sender accesses it.
#include "suite.h"

#include "memory/allocate.h"

#include <array>
#include <csignal>
#include <sys/mman.h>

namespace near::test {
namespace {

using transport::AtomicKind;
using transport::AtomicOperation;
using transport::Capabilities;
using transport::MemoryKey;
using transport::Registration;

/// Memory of the receiver, as known to the sender.
struct Known {
  MemoryKey key;
  std::uint64_t address = 0;
};

/// An access that records its completion.
struct Watched : transport::Access {
  bool finished = false;
  int error = -1;
  Watched() {
    done = [](transport::Access& access, int its_error) {
      auto& self = static_cast<Watched&>(access);
      require(!self.finished, "done() is called once");
      self.finished = true;
      self.error = its_error;
    };
  }
};

int outcome(Watched& access) {
  wait_for([&] { return access.finished; });
  return access.error;
}

int flush(Peer& peer) {
  int error = MPI_SUCCESS;
  wait_for([&] { return transport::flush(peer, error); });
  return error;
}

os::Run there(const Known& memory, std::size_t at, std::size_t bytes) {
  return {reinterpret_cast<void*>(memory.address + at), bytes};
}

/// Allocates memory that is shareable, as from MPI_Alloc_mem, or private to this process.
unsigned char* allocate(std::size_t bytes, bool shareable) {
  void* made = shareable && memory::space().segment.mapped() ? memory::allocate_shareable(bytes, {})
                                                             : new unsigned char[bytes];
  require(made != nullptr, "there is memory");
  return static_cast<unsigned char*>(made);
}

class Memory : public Conformance {
protected:
  /// For each kind of memory, with `bytes` bytes: runs origin(part, memory) in the sender; runs
  /// before(memory), then meanwhile(part, memory) without progress, and after(memory) when the origin has
  /// finished, in the receiver.
  void run_on(std::size_t bytes, const std::function<void(Part&, const Known&)>& origin,
              const std::function<void(unsigned char*)>& before,
              const std::function<void(const unsigned char*)>& after,
              const std::function<void(Part&, const unsigned char*)>& meanwhile = {}) {
    if (!kind().reaches_memory()) GTEST_SKIP() << "this transport reaches no memory of its peers";
    run([&](Part& part) {
      for (const bool shareable : {false, true}) {
        Registration registration;
        if (part.receives) {
          unsigned char* mine = allocate(bytes, shareable);
          before(mine);
          require(
              transport::register_memory(*part.other, mine, bytes, copy::MemoryKind::host, registration).ok(),
              "memory can be registered");
          const Known known{registration.key, reinterpret_cast<std::uint64_t>(mine)};
          Bytes sent(sizeof known);
          std::memcpy(sent.data(), &known, sizeof known);
          send_eager(*part.other, 1, sent);
          if (meanwhile) meanwhile(part, mine);
          require(next().envelope.tag == 2, "the other one has finished");
          after(mine);
          transport::deregister_memory(*part.other, registration);
        }
        if (part.sends) {
          Known known;
          const Arrived message = next();
          std::memcpy(&known, message.data.data(), sizeof known);
          origin(part, known);
          send_eager(*part.other, 2, {});
        }
      }
    });
  }
};

bool copies(Peer& peer, const Known& memory) { return transport::capabilities(peer, memory.key).copies; }
bool has_atomics(Peer& peer, const Known& memory) {
  return transport::capabilities(peer, memory.key).atomics;
}

INSTANTIATE_TEST_SUITE_P(Transport, Memory, testing::ValuesIn(kind_names()),
                         [](const auto& each) { return each.param; });

TEST_P(Memory, get_and_put_move_runs_between_two_processes) {
  constexpr std::size_t bytes = 300'000;
  run_on(
      bytes,
      [](Part& part, const Known& memory) {
        Peer& peer = *part.other;
        if (!copies(peer, memory)) return; // the kernel forbids copies
        const Bytes expected = pattern(bytes, 1);
        Bytes whole(bytes), some(1000);
        Watched first, second;
        std::array theirs{there(memory, 0, bytes)};
        std::array mine{os::Run{whole.data(), bytes}};
        transport::get(peer, memory.key, theirs, mine, first);
        require(outcome(first) == MPI_SUCCESS && whole == expected, "get brings all bytes");
        // Runs with different borders on the two sides; their arrays need be valid only during the call.
        std::array pieces{there(memory, 10, 100), there(memory, 5000, 700), there(memory, 299'800, 200)};
        std::array into{os::Run{some.data() + 600, 400}, os::Run{some.data(), 600}};
        transport::get(peer, memory.key, pieces, into, second);
        pieces = {}, into = {};
        require(outcome(second) == MPI_SUCCESS, "get takes several runs");
        auto from = [&](std::size_t begin, std::size_t at, std::size_t length) {
          return std::equal(some.begin() + static_cast<std::ptrdiff_t>(at),
                            some.begin() + static_cast<std::ptrdiff_t>(at + length),
                            expected.begin() + static_cast<std::ptrdiff_t>(begin));
        };
        require(from(10, 600, 100) && from(5000, 700, 300) && from(5300, 0, 400) && from(299'800, 400, 200),
                "each byte in its place");
        Watched third;
        Bytes sent = pattern(2000, 7);
        std::array to{there(memory, 1, 500), there(memory, 100'000, 1500)};
        std::array out{os::Run{sent.data(), 2000}};
        transport::put(peer, memory.key, to, out, third);
        require(outcome(third) == MPI_SUCCESS, "put takes several runs");
        std::fill(sent.begin(), sent.end(), 0); // the buffer is free again
        require(flush(peer) == MPI_SUCCESS, "and they arrive");
      },
      [](unsigned char* memory) { std::ranges::copy(pattern(bytes, 1), memory); },
      [kind = &kind()](const unsigned char* memory) {
        Bytes expected = pattern(bytes, 1);
        const Bytes sent = pattern(2000, 7);
        std::copy_n(sent.begin(), 500, expected.begin() + 1);
        std::copy_n(sent.begin() + 500, 1500, expected.begin() + 100'000);
        const Bytes untouched = pattern(bytes, 1);
        require(std::equal(expected.begin(), expected.end(), memory) ||
                    (kind->may_forbid_copies() && std::equal(untouched.begin(), untouched.end(), memory)),
                "the bytes that were put, and no others, have changed");
      });
}

TEST_P(Memory, puts_are_complete_at_their_target_when_flush_is_true) {
  if (kind().writes_wait()) GTEST_SKIP() << "its target makes no progress in this test";
  constexpr std::size_t words = 500;
  // Tells the owner, without the transport, what the origin knows before the owner makes progress.
  auto* flushed =
      static_cast<bool*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(flushed, MAP_FAILED);
  auto is_whole = [](const unsigned char* memory) {
    for (std::uint64_t i = 0, word = 0; i < words; ++i) {
      std::memcpy(&word, memory + i * 8, 8);
      if (word != i) return false;
    }
    return true;
  };
  run_on(
      words * 8,
      [flushed](Part& part, const Known& memory) {
        Peer& peer = *part.other;
        *flushed = false;
        int error = -1;
        require(transport::flush(peer, error) && error == MPI_SUCCESS, "nothing is under way at first");
        const bool can = copies(peer, memory);
        for (std::uint64_t i = 0; can && i < words; ++i) {
          Watched access;
          std::array to{there(memory, i * 8, 8)};
          std::array out{os::Run{&i, 8}};
          transport::put(peer, memory.key, to, out, access);
          require(outcome(access) == MPI_SUCCESS, "a put is done");
        }
        *flushed = can && transport::flush(peer, error);
        part.meet();
        part.meet();
        require(flush(peer) == MPI_SUCCESS, "all are complete in the end");
        *flushed = can;
      },
      [](unsigned char* memory) { std::fill_n(memory, words * 8, 0xff); },
      [flushed, is_whole](const unsigned char* memory) {
        require(!*flushed || is_whole(memory), "and have arrived");
      },
      [flushed, is_whole](Part& part, const unsigned char* memory) {
        part.meet();
        require(!*flushed || is_whole(memory), "what is said to be complete is there");
        part.meet();
      });
  munmap(flushed, 4096);
}

TEST_P(Memory, atomic_operations_change_one_word_and_return_its_old_value) {
  run_on(
      64,
      [](Part& part, const Known& memory) {
        Peer& peer = *part.other;
        if (!has_atomics(peer, memory)) {
          Watched access;
          transport::apply_atomic(peer, memory.key, memory.address, {AtomicKind::add, 8, 1}, access);
          require(outcome(access) == MPI_ERR_UNSUPPORTED_OPERATION, "and it says so");
          return;
        }
        auto word = [&](std::size_t at, AtomicOperation operation) {
          Watched access;
          std::uint64_t before = 0;
          operation.before = &before;
          transport::apply_atomic(peer, memory.key, memory.address + at, operation, access);
          require(outcome(access) == MPI_SUCCESS, "an atomic operation succeeds");
          return before; // for 4 bytes, the upper half stays 0
        };
        for (const std::uint8_t bytes : {std::uint8_t{4}, std::uint8_t{8}}) {
          const std::size_t at = bytes == 4 ? 20 : 40;
          const std::uint64_t all = bytes == 4 ? 0xffffffffu : ~std::uint64_t{0};
          require(word(at, {AtomicKind::read, bytes}) == all, "read");
          require(word(at, {AtomicKind::add, bytes, 5}) == all, "add returns the old value");
          require(word(at, {AtomicKind::add, bytes, all}) == 4, "and wraps around, so all is -1");
          require(word(at, {AtomicKind::replace, bytes, 0b1100}) == 3, "add with a negative operand");
          require(word(at, {AtomicKind::bit_and, bytes, 0b0110}) == 0b1100, "replace");
          require(word(at, {AtomicKind::bit_or, bytes, 0b0011}) == 0b0100, "and");
          require(word(at, {AtomicKind::bit_xor, bytes, 0b1111}) == 0b0111, "or");
          require(word(at, {AtomicKind::compare_and_swap, bytes, 77, 9}) == 0b1000, "xor");
          require(word(at, {AtomicKind::compare_and_swap, bytes, 99, 0b1000}) == 0b1000,
                  "a comparison that failed has changed nothing");
          require(word(at, {AtomicKind::read, bytes}) == 99, "one that holds has");
        }
        Watched unwanted;
        transport::apply_atomic(peer, memory.key, memory.address + 40, {AtomicKind::add, 8, 1}, unwanted);
        require(outcome(unwanted) == MPI_SUCCESS && flush(peer) == MPI_SUCCESS, "the old value is optional");
      },
      [](unsigned char* memory) { std::fill_n(memory, 64, 0xff); },
      [](const unsigned char* memory) {
        if (memory[20] == 0xff) return; // no atomic operations here
        Bytes expected(64, 0xff);
        const std::uint32_t first = 99;
        const std::uint64_t second = 100;
        std::memcpy(expected.data() + 20, &first, sizeof first);
        std::memcpy(expected.data() + 40, &second, sizeof second);
        require(std::equal(expected.begin(), expected.end(), memory), "the neighbours are untouched");
      });
}

TEST_P(Memory, atomic_operations_refuse_words_that_are_not_aligned_or_of_another_size) {
  run_on(
      64,
      [](Part& part, const Known& memory) {
        Peer& peer = *part.other;
        if (!has_atomics(peer, memory)) return;
        for (const AtomicOperation& wrong :
             {AtomicOperation{AtomicKind::add, 2, 1}, {AtomicKind::add, 8, 1}, {AtomicKind::add, 0, 1}}) {
          Watched access;
          transport::apply_atomic(peer, memory.key, memory.address + 4, wrong, access);
          require(outcome(access) == MPI_ERR_ARG, "the argument is wrong");
        }
      },
      [](unsigned char* memory) { std::fill_n(memory, 64, 0xff); },
      [](const unsigned char* memory) {
        require(std::all_of(memory, memory + 64, [](auto byte) { return byte == 0xff; }),
                "nothing has changed");
      });
}

TEST_P(Memory, accesses_outside_the_registered_memory_fail_and_change_nothing) {
  constexpr std::size_t bytes = 4096;
  run_on(
      bytes,
      [](Part& part, const Known& memory) {
        Peer& peer = *part.other;
        if (transport::capabilities(peer).copies && !has_atomics(peer, memory))
          return; // no bounds are checked, as for a debugger
        if (!copies(peer, memory)) return;
        Bytes data(64, 1);
        for (const std::size_t at : {bytes - 63, bytes, std::size_t{0} - 1}) {
          std::array outside{there(memory, at, 64)};
          std::array mine{os::Run{data.data(), 64}};
          Watched getting, putting, adding;
          transport::get(peer, memory.key, outside, mine, getting);
          require(outcome(getting) == MPI_ERR_RMA_RANGE, "a get fails");
          outside = {there(memory, at, 64)};
          mine = {os::Run{data.data(), 64}};
          transport::put(peer, memory.key, outside, mine, putting);
          const int at_once = outcome(putting), later = flush(peer);
          require((at_once == MPI_ERR_RMA_RANGE) != (later == MPI_ERR_RMA_RANGE),
                  "a put fails, now or at the flush");
          require(flush(peer) == MPI_SUCCESS, "and is reported once");
          // The first aligned word that is not entirely inside.
          const std::uint64_t word = at < bytes ? memory.address + bytes : memory.address + at / 8 * 8;
          transport::apply_atomic(peer, memory.key, word, {AtomicKind::add, 8, 1}, adding);
          require(outcome(adding) == MPI_ERR_RMA_RANGE, "an atomic operation fails");
        }
        require(std::all_of(data.begin(), data.end(), [](auto byte) { return byte == 1; }),
                "nothing was read");
      },
      [](unsigned char* memory) { std::fill_n(memory, bytes, 0xff); },
      [](const unsigned char* memory) {
        require(std::all_of(memory, memory + bytes, [](auto byte) { return byte == 0xff; }),
                "nothing was written");
      });
}

TEST_P(Memory, accesses_to_the_memory_of_a_peer_that_dies_fail) {
  if (!kind().fails_alone()) GTEST_SKIP() << "the job ends with it";
  if (!kind().reaches_memory()) GTEST_SKIP() << "this transport reaches no memory of its peers";
  run(
      [](Part& part) {
        Peer& peer = *part.other;
        std::uint64_t word = 7;
        if (part.receives) {
          Registration registration;
          require(
              transport::register_memory(peer, &word, sizeof word, copy::MemoryKind::host, registration).ok(),
              "memory can be registered");
          const Known known{registration.key, reinterpret_cast<std::uint64_t>(&word)};
          Bytes sent(sizeof known);
          std::memcpy(sent.data(), &known, sizeof known);
          send_eager(peer, 1, sent);
          part.meet();
          raise(SIGKILL);
        }
        Known known;
        const Arrived message = next();
        std::memcpy(&known, message.data.data(), sizeof known);
        std::array theirs{there(known, 0, 8)};
        std::array mine{os::Run{&word, 8}};
        Watched getting, adding, later;
        transport::get(peer, known.key, theirs, mine, getting);
        transport::apply_atomic(peer, known.key, known.address, {AtomicKind::add, 8, 1}, adding);
        part.meet();
        require(outcome(getting) == MPI_ERR_PROC_ABORTED && outcome(adding) == MPI_ERR_PROC_ABORTED,
                "what is under way fails");
        theirs = {there(known, 0, 8)}, mine = {os::Run{&word, 8}};
        transport::put(peer, known.key, theirs, mine, later);
        require(outcome(later) == MPI_ERR_PROC_ABORTED && flush(peer) == MPI_ERR_PROC_ABORTED,
                "and so does what is begun later");
        require(!transport::capabilities(peer, known.key).copies, "nothing of it is reached any more");
      },
      true);
}

TEST_P(Memory, a_transport_that_reaches_no_memory_says_so) {
  if (kind().reaches_memory()) GTEST_SKIP() << "it reaches some";
  run([](Part& part) {
    Peer& peer = *part.other;
    const Capabilities found = transport::capabilities(peer);
    require(!found.copies && !found.atomics && !transport::reaches_memory_of(peer), "it has no capability");
    std::uint64_t word = 0;
    Registration registration;
    require(
        transport::register_memory(peer, &word, sizeof word, copy::MemoryKind::host, registration).code() ==
            MPI_ERR_UNSUPPORTED_OPERATION,
        "memory cannot be registered");
    std::array runs{os::Run{&word, sizeof word}};
    Watched getting, putting, adding;
    transport::get(peer, {}, runs, runs, getting);
    transport::put(peer, {}, runs, runs, putting);
    transport::apply_atomic(peer, {}, reinterpret_cast<std::uint64_t>(&word), {AtomicKind::add, 8, 1},
                            adding);
    for (Watched* each : {&getting, &putting, &adding})
      require(outcome(*each) == MPI_ERR_UNSUPPORTED_OPERATION, "and no access succeeds");
    require(flush(peer) == MPI_SUCCESS, "so nothing is under way");
  });
}

} // namespace
} // namespace near::test
