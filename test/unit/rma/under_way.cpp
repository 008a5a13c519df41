// A window of two processes, in which rank 1 is reached through a RemoteAccess: operations complete some
// polls after they began, so flushes, ends of epochs and requests have to wait.
#include "rma/state.h"
#include "world.h"

#include <cstring>
#include <deque>

namespace near::rma {
namespace {

using test::require;

/// The operations that the fake has begun: a later poll moves the bytes, another one completes the target.
struct Network {
  struct Step {
    Pending operation;
    std::function<void()> move;
    int error = MPI_SUCCESS;
    int polls_left = 0;
    bool moved = false;
  };
  std::deque<Step> steps;
  int polls_each = 20;
  int next_error = MPI_SUCCESS;
  bool refuses = false;
  int polls = 0;
};

/// Polled by the progress engine for as long as the process lives.
class Poll final : public p2p::Schedule {
public:
  explicit Poll(Network& network) : network_(network) {}
  bool advance(p2p::Completion&) override {
    ++network_.polls;
    if (network_.steps.empty()) return false;
    Network::Step& step = network_.steps.front();
    if (--step.polls_left > 0) return false;
    if (!step.moved && step.error == MPI_SUCCESS) {
      step.move();
      step.moved = true;
      step.polls_left = network_.polls_each;
      step.operation->finish(Where::origin);
      return false;
    }
    step.operation->finish(Where::target, step.error);
    network_.steps.pop_front();
    return false;
  }

private:
  Network& network_;
};

class Fake final : public RemoteAccess {
public:
  explicit Fake(Network& network) : network_(network) {}
  bool reaches(int rank) const override { return rank == 1; }
  Result put(const Buffer& from, int, const Buffer& there, const Pending& operation) override {
    return begin(operation, [=] { datatype::copy(from, there, from.bytes()); });
  }
  Result get(const Buffer& into, int, const Buffer& there, const Pending& operation) override {
    return begin(operation, [=] { datatype::copy(there, into, into.bytes()); });
  }
  Result accumulate(const Buffer& from, const Buffer*, int, const Buffer& there, const Operation& how,
                    const Pending& operation) override {
    const Operation* op = &how;
    return begin(operation,
                 [=] { datatype::reduce(*op, from.address, there.address, from.count, *from.type); });
  }
  Result compare_and_swap(const void*, const void*, void*, int, const Buffer&, const Pending&) override {
    return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "not in this test");
  }
  Result check(int, const Buffer&) override { return {}; }
  void expect(int) override {}
  void expect_no_more(int) override {}
  Result lock(int, bool) override { return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "not in this test"); }
  Result unlock(int, bool) override { return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "not in this test"); }
  Result try_all_shared(bool& taken, std::size_t&) override {
    taken = true;
    return {};
  }
  Result unlock_all_shared() override { return {}; }
  void stop() override {}

private:
  Result begin(const Pending& operation, std::function<void()> move) {
    if (network_.refuses) return base::fail(MPI_ERR_OTHER, "refused");
    network_.steps.push_back({operation, std::move(move), network_.next_error, network_.polls_each});
    return {};
  }
  Network& network_;
};

/// Rank 0 runs `body` on a window in which it reaches rank 1 through the network only; rank 1 takes part in
/// the epochs. The "memory of rank 1" is the vector `there`, in the process of rank 0.
struct NetworkScene {
  Window& window;
  Network& network;
  std::vector<int>& there;
  datatype::Datatype& type = *datatype::find_predefined(MPI_INT);
  Buffer buffer(int& value) const { return Buffer{&value, 1, &type}; }
  Target target(MPI_Aint at) const { return {1, at, 1, &type}; }
  void put_one(int& value, MPI_Aint at, Pending* pending = nullptr) const {
    require(rma::put(buffer(value), target(at), window, pending).ok(), "put");
  }
};

void with_window(
    const std::function<void(const NetworkScene&)>& body,
    const std::function<void(Window&)>& other = [](Window&) {}) {
  test::run_ranks(2, [&](std::uint32_t rank) {
    object::Communicator& communicator = test::world(rank, 2);
    std::vector<int> there(8, 0);
    Window* window = nullptr;
    void* base = nullptr;
    require(allocate(communicator, 64, 4, nullptr, {}, base, window).ok(), "window");
    Network network;
    if (rank == 0) {
      p2p::Request* polling = nullptr;
      require(p2p::make_scheduled(nullptr, std::make_unique<Poll>(network), false, polling).ok(), "polling");
      State& state = state_of(*window);
      state.remote = std::make_unique<Fake>(network);
      state.members[1].address = reinterpret_cast<std::uint64_t>(there.data());
      body(NetworkScene{*window, network, there});
    } else {
      other(*window);
    }
    require(free_window(*window).ok(), "free");
    require(network.steps.empty(), "an operation was still under way when the window went");
  });
}

TEST(UnderWay, a_put_is_not_complete_when_it_returns_and_a_flush_waits_for_it) {
  with_window([](const NetworkScene& scene) {
    require(lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, scene.window).ok(), "lock");
    int value = 41;
    Pending pending;
    scene.put_one(value, 2, &pending);
    require(pending != nullptr && !pending->is_complete(Where::origin), "the put is under way");
    require(scene.there[2] == 0, "nothing has moved");
    require(flush(1, Where::target, scene.window).ok(), "flush");
    require(pending->is_complete(Where::target) && scene.there[2] == 41, "the flush has waited");
    require(unlock(1, scene.window).ok(), "unlock");
  });
}

TEST(UnderWay, a_local_flush_waits_for_the_origin_only) {
  with_window([](const NetworkScene& scene) {
    require(lock_all(MPI_MODE_NOCHECK, scene.window).ok(), "lock");
    int value = 7;
    Pending pending;
    scene.put_one(value, 0, &pending);
    require(flush_all(Where::origin, scene.window).ok(), "flush");
    require(pending->is_complete(Where::origin), "complete at the origin");
    require(!pending->is_complete(Where::target), "not yet at the target");
    require(unlock_all(scene.window).ok(), "unlock");
    require(pending->is_complete(Where::target) && scene.there[0] == 7, "the unlock has waited");
  });
}

TEST(UnderWay, the_ends_of_all_kinds_of_epochs_wait) {
  auto other = [](Window& window) {
    require(fence(0, window).ok() && fence(0, window).ok(), "fences");
    object::Group* origin = object::make_group({window.communicator->group->members[0]});
    require(post(*origin, 0, window).ok() && wait(window).ok(), "post and wait");
  };
  with_window(
      [](const NetworkScene& scene) {
        int value = 3;
        Pending pending[3];
        require(lock(MPI_LOCK_EXCLUSIVE, 1, MPI_MODE_NOCHECK, scene.window).ok(), "lock");
        scene.put_one(value, 1, &pending[0]);
        require(unlock(1, scene.window).ok() && pending[0]->is_complete(Where::target), "unlock");
        require(fence(0, scene.window).ok(), "fence");
        scene.put_one(value, 2, &pending[1]);
        require(fence(0, scene.window).ok() && pending[1]->is_complete(Where::target), "fence");
        object::Group* target = object::make_group({scene.window.communicator->group->members[1]});
        require(start(*target, 0, scene.window).ok(), "start");
        scene.put_one(value, 3, &pending[2]);
        require(complete(scene.window).ok() && pending[2]->is_complete(Where::target), "complete");
        require(scene.there == std::vector<int>{0, 3, 3, 3, 0, 0, 0, 0}, "all have arrived");
      },
      other);
}

TEST(UnderWay, a_request_is_pending_until_its_operation_is_complete_at_the_origin) {
  with_window([](const NetworkScene& scene) {
    require(lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, scene.window).ok(), "lock");
    scene.there[5] = 99;
    int got = 0, added = 1;
    Pending pending[2];
    require(get(scene.buffer(got), scene.target(5), scene.window, &pending[0]).ok(), "get");
    require(accumulate(scene.buffer(added), nullptr, scene.target(5), *datatype::find_operation(MPI_SUM),
                       scene.window, &pending[1])
                .ok(),
            "accumulate");
    p2p::Request* requests[2] = {};
    for (int i = 0; i < 2; ++i)
      require(make_request(pending[i], scene.window, requests[i]).ok() && !requests[i]->complete, "pending");
    for (p2p::Request* request : requests) {
      p2p::wait_complete(*request);
      MPI_Request handle = p2p::public_handle(*request);
      require(p2p::finish(handle, *request, MPI_STATUS_IGNORE, false).ok(), "finish");
    }
    require(got == 99 && scene.there[5] == 100, "in order");
    require(!pending[1]->is_complete(Where::target), "the request does not wait for the target");
    require(unlock(1, scene.window).ok(), "unlock");
  });
}

TEST(UnderWay, operations_on_this_process_are_complete_and_so_are_their_requests) {
  with_window([](const NetworkScene& scene) {
    require(lock(MPI_LOCK_SHARED, 0, 0, scene.window).ok(), "lock");
    int value = 5;
    Pending pending;
    require(put(scene.buffer(value), {0, 0, 1, &scene.type}, scene.window, &pending).ok(), "put");
    require(pending == nullptr && *static_cast<int*>(scene.window.base) == 5, "complete");
    p2p::Request* request = nullptr;
    require(make_request(pending, scene.window, request).ok() && request->complete, "request");
    MPI_Request handle = p2p::public_handle(*request);
    require(p2p::finish(handle, *request, MPI_STATUS_IGNORE, false).ok(), "finish");
    require(unlock(0, scene.window).ok(), "unlock");
  });
}

TEST(UnderWay, a_failure_is_returned_once_by_the_call_that_waits) {
  with_window([](const NetworkScene& scene) {
    require(lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, scene.window).ok(), "lock");
    int value = 1;
    scene.network.next_error = MPI_ERR_RMA_RANGE;
    scene.put_one(value, 0);
    require(flush(1, Where::target, scene.window).code() == MPI_ERR_RMA_RANGE, "the flush fails");
    require(base::failure_text().find("rank 1 of window") != std::string::npos, "its sentence");
    require(flush(1, Where::target, scene.window).ok(), "once");
    scene.network.next_error = MPI_SUCCESS;
    scene.network.refuses = true;
    require(put(scene.buffer(value), scene.target(0), scene.window).code() == MPI_ERR_OTHER, "refused");
    require(unlock(1, scene.window).ok() && scene.there[0] == 0, "what never began is not waited for");
  });
}

} // namespace
} // namespace near::rma
