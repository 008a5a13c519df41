// Windows of processes that reach each other by messages, as on several machines: each test lets the processes of one
// machine forget where the parts of the others are mapped.
#include "rma/remote.h"
#include "comm/exchange.h"
#include "memory/segments.h"
#include "transport/registry.h"
#include "world.h"

#include <cstring>
#include <numeric>

namespace near::rma {
namespace {

using test::require;

struct Scene {
  Window& window;
  int rank, size;
  std::int64_t* own; ///< this process's part
  datatype::Datatype& type = *datatype::find_predefined(MPI_INT64_T);

  Buffer buffer(std::int64_t* values, MPI_Count count = 1) const { return {values, count, &type}; }
  Target target(int to, MPI_Aint at, MPI_Count count = 1) const { return {to, at, count, &type}; }
  void barrier() const { require(coll::barrier(*window.communicator).ok(), "barrier"); }
};

/// Whether a process is on the machine of another one, and whether its memory is registered.
struct Machines {
  int each = 1; ///< that many neighbours share a machine
  bool registers = false;
};

/// Lets the processes forget each other's parts, as if they were on machines of their own.
void separate(Window& window, const Machines& machines) {
  State& state = state_of(window);
  const int rank = state.rank, size = window.communicator->size;
  auto mine = state.members[static_cast<std::size_t>(rank)];
  transport::Registration made;
  if (machines.registers) {
    auto& peer = peer_of(window, (rank + 1) % size);
    require(transport::register_memory(peer, reinterpret_cast<void*>(mine.address),
                                       static_cast<std::size_t>(mine.size), copy::MemoryKind::host, made)
                .ok(),
            "registration");
    state.exposure = std::make_unique<Exposure>(peer, made);
    mine.registered = 1;
    mine.key = made.key;
  }
  std::vector<Member> all(static_cast<std::size_t>(size));
  require(coll::all_gather(comm::byte_buffer(&mine, sizeof mine), comm::byte_buffer(all.data(), sizeof mine),
                           *window.communicator)
              .ok(),
          "keys");
  for (int other = 0; other < size; ++other) {
    Member& member = state.members[static_cast<std::size_t>(other)];
    member.registered = all[static_cast<std::size_t>(other)].registered;
    member.key = all[static_cast<std::size_t>(other)].key;
    if (other / machines.each == rank / machines.each) continue;
    member.segment = nullptr;
    member.here = nullptr;
    member.locks = nullptr;
  }
  require(reach_other_machines(window).ok(), "service");
}

void on_machines(std::uint32_t ranks, MPI_Aint cells, const Machines& machines,
                 const std::function<void(const Scene&)>& body) {
  test::run_ranks(ranks, [&](std::uint32_t rank) {
    object::Communicator& communicator = test::world(rank, ranks);
    Window* window = nullptr;
    void* base = nullptr;
    require(allocate(communicator, 8 * cells, 8, nullptr, {}, base, window).ok(), "window");
    separate(*window, machines);
    body(Scene{*window, static_cast<int>(rank), static_cast<int>(ranks), static_cast<std::int64_t*>(base)});
    require(free_window(*window).ok(), "free");
  });
}

/// Every layout at the target that messages describe in another way: contiguous, a vector, backwards, without a pattern.
std::vector<datatype::Datatype*> layouts(int count, datatype::Datatype& old) {
  std::vector<datatype::Datatype*> made(4);
  std::vector<MPI_Count> places(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) places[static_cast<std::size_t>(i)] = i * 7 % count * 2 + i % 2;
  require(datatype::make_contiguous(count, old, made[0]).ok(), "contiguous");
  require(datatype::make_vector(count, 1, 2, false, old, made[1]).ok(), "vector");
  require(datatype::make_vector(count, 1, -1, false, old, made[2]).ok(), "backwards");
  require(datatype::make_indexed_block(1, places, false, old, made[3]).ok(), "indexed");
  for (auto* each : made) require(datatype::commit(*each).ok(), "commit");
  return made;
}

void puts_and_gets(const Machines& machines, int count) {
  on_machines(2, 3 * count + 1, machines, [&](const Scene& scene) {
    if (scene.rank == 0) {
      std::vector<std::int64_t> out(static_cast<std::size_t>(count)), in(out.size());
      std::iota(out.begin(), out.end(), 1000);
      std::int64_t turn = 0;
      require(lock(MPI_LOCK_EXCLUSIVE, 1, 0, scene.window).ok(), "lock");
      for (datatype::Datatype* layout : layouts(count, scene.type)) {
        const Target target{1, count, 1, layout};
        for (auto& each : out) each += ++turn;
        std::fill(in.begin(), in.end(), -1);
        require(put(scene.buffer(out.data(), count), target, scene.window).ok(), "put");
        require(flush(1, Where::target, scene.window).ok(), "flush");
        require(get(scene.buffer(in.data(), count), target, scene.window).ok(), "get");
        require(flush(1, Where::origin, scene.window).ok(), "local flush");
        require(in == out, "what was put is got");
      }
      require(unlock(1, scene.window).ok(), "unlock");
    }
    scene.barrier();
    if (scene.rank == 1) {
      require(scene.own[0] == 0 && scene.own[3 * count] == 0, "nothing else has changed");
      require(scene.own[2 * count - 1] != 0, "the last element");
    }
  });
}

TEST(Remote, puts_and_gets_of_every_layout_arrive_by_messages) { puts_and_gets({}, 10); }
TEST(Remote, a_long_put_goes_in_fragments) { puts_and_gets({}, 300'000); }
TEST(Remote, registered_memory_is_written_and_read_without_messages_where_pieces_are_long) {
  puts_and_gets({.registers = true}, 40'000);
}

TEST(Remote, accumulates_of_one_origin_keep_their_order_and_fetches_see_what_came_before) {
  on_machines(2, 8, {}, [](const Scene& scene) {
    if (scene.rank == 0) {
      require(lock_all(0, scene.window).ok(), "lock");
      std::int64_t seen[8], two = 2, five = 5;
      const Target target = scene.target(1, 3);
      for (int i = 0; i < 4; ++i) {
        Buffer before = scene.buffer(&seen[2 * i]);
        require(
            accumulate(scene.buffer(&five), nullptr, target, *datatype::find_operation(MPI_SUM), scene.window)
                .ok(),
            "sum");
        require(
            accumulate(scene.buffer(&two), &before, target, *datatype::find_operation(MPI_PROD), scene.window)
                .ok(),
            "product");
        require(compare_and_swap(&five, &seen[0], &seen[2 * i + 1], target, scene.window).ok(), "swap");
      }
      require(unlock_all(scene.window).ok(), "unlock");
      // ((0 + 5) * 2 + 5) * 2 ...; the swap compares with what `seen` held when it was called
      for (std::int64_t i = 0, value = 0; i < 4; ++i) {
        require(seen[2 * i] == value + 5, "before the product");
        value = (value + 5) * 2;
        require(seen[2 * i + 1] == value, "before the swap");
      }
    }
    scene.barrier();
  });
}

TEST(Remote, elements_with_gaps_are_reduced) {
  struct Pair {
    double value;
    int place;
  };
  on_machines(2, 2 * 40'000, {}, [](const Scene& scene) {
    datatype::Datatype& type = *datatype::find_predefined(MPI_DOUBLE_INT);
    constexpr int count = 40'000; // more than one message
    auto* own = reinterpret_cast<Pair*>(scene.own);
    for (int i = 0; i < count; ++i) own[i] = {static_cast<double>(i % 10), -1};
    require(fence(0, scene.window).ok(), "fence");
    std::vector<Pair> mine(count), before(count);
    for (int i = 0; i < count; ++i) mine[static_cast<std::size_t>(i)] = {5.0, scene.rank};
    const Buffer origin{mine.data(), count, &type};
    const Buffer old{before.data(), count, &type};
    const int other = 1 - scene.rank;
    require(accumulate(origin, &old, {other, 0, count, &type}, *datatype::find_operation(MPI_MAXLOC),
                       scene.window)
                .ok(),
            "accumulate");
    require(fence(0, scene.window).ok(), "fence");
    for (int i = 0; i < count; ++i) {
      const bool greater = i % 10 > 5;
      require(own[i].value == (greater ? i % 10 : 5) &&
                  (i % 10 == 5 || own[i].place == (greater ? -1 : other)),
              "the maximum");
      require(before[static_cast<std::size_t>(i)].value == i % 10, "the old value");
    }
  });
}

TEST(Remote, no_count_is_lost_between_processes_that_store_and_those_that_send) {
  on_machines(4, 4, {.each = 2}, [](const Scene& scene) {
    constexpr int rounds = 500;
    require(lock_all(0, scene.window).ok(), "lock");
    std::int64_t one = 1, most = -1;
    for (int i = 0; i < rounds; ++i) {
      std::int64_t seen = -1;
      Buffer before = scene.buffer(&seen);
      require(accumulate(scene.buffer(&one), &before, scene.target(1, 0), *datatype::find_operation(MPI_SUM),
                         scene.window)
                  .ok(),
              "count");
      require(flush(1, Where::target, scene.window).ok(), "flush");
      require(seen > most, "increasing");
      most = seen;
    }
    require(unlock_all(scene.window).ok(), "unlock");
    scene.barrier();
    if (scene.rank == 1) require(scene.own[0] == rounds * scene.size, "all counts");
  });
}

TEST(Remote, the_exclusive_lock_excludes_processes_of_all_machines) {
  on_machines(4, 4, {.each = 2, .registers = true}, [](const Scene& scene) {
    constexpr int rounds = 100;
    for (int i = 0; i < rounds; ++i) {
      std::int64_t value = -1, again = -1;
      require(lock(MPI_LOCK_EXCLUSIVE, 2, 0, scene.window).ok(), "lock");
      require(get(scene.buffer(&value), scene.target(2, 1), scene.window).ok(), "get");
      require(flush(2, Where::target, scene.window).ok(), "flush");
      ++value;
      require(put(scene.buffer(&value), scene.target(2, 1), scene.window).ok(), "put");
      require(unlock(2, scene.window).ok(), "unlock");
      require((i % 2 == 0 ? lock_all(0, scene.window) : lock(MPI_LOCK_SHARED, 2, 0, scene.window)).ok(),
              "shared");
      require(get(scene.buffer(&value), scene.target(2, 1), scene.window).ok(), "get");
      require(flush(2, Where::target, scene.window).ok(), "flush");
      require(get(scene.buffer(&again), scene.target(2, 1), scene.window).ok(), "get");
      require((i % 2 == 0 ? unlock_all(scene.window) : unlock(2, scene.window)).ok(), "unlock");
      require(value == again, "nobody writes under a shared lock");
    }
    scene.barrier();
    if (scene.rank == 2) require(scene.own[1] == rounds * scene.size, "no increment is lost");
  });
}

TEST(Remote, lock_all_holds_no_lock_while_it_waits) {
  on_machines(3, 4, {}, [](const Scene& scene) {
    if (scene.rank == 0) require(lock(MPI_LOCK_EXCLUSIVE, 1, 0, scene.window).ok(), "first lock");
    scene.barrier();
    if (scene.rank == 2) {
      require(lock_all(0, scene.window).ok() && unlock_all(scene.window).ok(), "all locks");
    } else if (scene.rank == 0) {
      // If the other process held this lock while it waits for the first one, neither would go on.
      for (int i = 0; i < 100; ++i)
        require(lock(MPI_LOCK_EXCLUSIVE, 0, 0, scene.window).ok() && unlock(0, scene.window).ok(), "second");
      require(unlock(1, scene.window).ok(), "unlock");
    }
    scene.barrier();
  });
}

TEST(Remote, what_lies_outside_of_the_part_is_refused_by_the_target_too) {
  on_machines(2, 8, {}, [](const Scene& scene) {
    if (scene.rank == 0) {
      state_of(scene.window).members[1].size = 800; // the origin's own check finds nothing
      std::int64_t value = 7;
      require(lock(MPI_LOCK_SHARED, 1, 0, scene.window).ok(), "lock");
      require(put(scene.buffer(&value), scene.target(1, 8), scene.window).ok(), "put");
      require(flush(1, Where::target, scene.window).code() == MPI_ERR_RMA_RANGE, "the flush fails");
      require(get(scene.buffer(&value), scene.target(1, 20), scene.window).ok(), "get");
      require(flush(1, Where::target, scene.window).code() == MPI_ERR_RMA_RANGE, "the flush fails");
      require(put(scene.buffer(&value), scene.target(1, 7), scene.window).ok(), "put");
      require(unlock(1, scene.window).ok() && value == 7, "the next operation succeeds");
    }
    scene.barrier();
    if (scene.rank == 1) require(scene.own[7] == 7, "the last cell");
  });
}

TEST(Remote, attached_memory_is_checked_when_the_operation_is_called) {
  test::run_ranks(2, [](std::uint32_t rank) {
    object::Communicator& communicator = test::world(rank, 2);
    Window* window = nullptr;
    require(create_dynamic(communicator, nullptr, window).ok(), "window");
    static std::int64_t memory[64]; // at the same address in both, as they were forked
    separate(*window, {});
    require(attach(*window, memory, 256).ok(), "attach");
    datatype::Datatype& type = *datatype::find_predefined(MPI_INT64_T);
    require(coll::barrier(*window->communicator).ok(), "barrier");
    if (rank == 0) {
      std::int64_t value = 3;
      const auto at = [&](int cell) { return reinterpret_cast<MPI_Aint>(&memory[cell]); };
      require(lock(MPI_LOCK_SHARED, 1, 0, *window).ok(), "lock");
      require(put({&value, 1, &type}, {1, at(31), 1, &type}, *window).ok(), "put");
      require(put({&value, 1, &type}, {1, at(32), 1, &type}, *window).code() == MPI_ERR_RMA_RANGE, "behind");
      require(get({&value, 1, &type}, {1, at(31) + 1, 1, &type}, *window).code() == MPI_ERR_RMA_RANGE,
              "across the end");
      require(unlock(1, *window).ok(), "unlock");
    }
    require(coll::barrier(*window->communicator).ok(), "barrier");
    require(memory[31] == (rank == 1 ? 3 : 0) && memory[32] == 0, "only what is attached");
    require(free_window(*window).ok(), "free");
  });
}

TEST(Remote, operations_on_a_process_that_has_failed_end_with_an_error) {
  test::run_ranks(2, [](std::uint32_t rank) {
    object::Communicator& communicator = test::world(rank, 2);
    Window* window = nullptr;
    void* base = nullptr;
    require(allocate(communicator, 64, 8, nullptr, {}, base, window).ok(), "window");
    separate(*window, {});
    require(coll::barrier(*window->communicator).ok(), "barrier");
    if (rank == 1) _exit(0); // it serves nobody any more
    datatype::Datatype& type = *datatype::find_predefined(MPI_INT64_T);
    std::int64_t value = 1, seen = 0;
    const Buffer origin{&value, 1, &type}, before{&seen, 1, &type};
    const Target target{1, 0, 1, &type};
    const Operation& sum = *datatype::find_operation(MPI_SUM);
    require(lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, *window).ok(), "lock");
    Pending pending;
    require(put(origin, target, *window).ok(), "put");
    require(accumulate(origin, &before, target, sum, *window, &pending).ok(), "fetch");
    transport::fail(peer_of(*window, 1));
    require(flush(1, Where::target, *window).code() == MPI_ERR_PROC_ABORTED, "the flush fails");
    require(pending->is_complete(Where::target) && pending->error() == MPI_ERR_PROC_ABORTED,
            "so does the fetch");
    require(put(origin, target, *window).code() == MPI_ERR_PROC_ABORTED, "later operations fail");
    require(unlock(1, *window).ok(), "but the epoch ends");
    require(lock(MPI_LOCK_SHARED, 1, 0, *window).code() == MPI_ERR_PROC_ABORTED, "no lock");
    _exit(0);
  });
}

} // namespace
} // namespace near::rma
