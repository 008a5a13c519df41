#include "fake_p2p.h"

#include "coll/shared/area.h"
#include "transport/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

namespace near::coll::test {
namespace {

struct Parcel {
  std::uint64_t context;
  int source, tag;
  MPI_Count bytes;
  std::vector<std::byte> packed;  ///< eager
  p2p::Buffer buffer;             ///< synchronous: the sender's own memory
  p2p::Request* sender = nullptr; ///< synchronous: completed when taken
  int sender_mailbox = 0;
};

struct Receive : p2p::Request {
  p2p::Buffer buffer;
  std::uint64_t context = 0;
  int source = 0, tag = 0;
  std::unique_ptr<p2p::Schedule> schedule;
  bool running = false;
};

struct Mailbox {
  std::deque<Parcel> messages;
  std::condition_variable changed;
  std::uint64_t changes = 0;
  void change() {
    ++changes;
    changed.notify_all();
  }
};

/// The turns of ranks that share one processor.
class Turns {
public:
  explicit Turns(int ranks) : ended_(static_cast<std::size_t>(ranks)) {}
  void begin(int rank) {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return turn_ == rank; });
  }
  /// Lets the other ranks run until they wait, and returns at this rank's next turn; at once if it has `ended`.
  void pass(int rank, bool ended) {
    const auto own = static_cast<std::size_t>(rank);
    {
      std::unique_lock guard(lock_);
      ended_[own] = ended;
      std::size_t next = own;
      do next = (next + 1) % ended_.size();
      while (ended_[next] && next != own);
      turn_ = static_cast<int>(next);
    }
    changed_.notify_all();
    if (!ended) begin(rank);
  }

private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<bool> ended_;
  int turn_ = 0;
};

struct World {
  explicit World(int size) : boxes(static_cast<std::size_t>(size)), parts(static_cast<std::size_t>(size)) {}
  std::mutex lock; // protects all mailboxes: tests are small
  std::vector<Mailbox> boxes;
  std::vector<AreaPart> parts; ///< of the area of all ranks
  /// The areas of persistent calls, in order of creation.
  std::deque<std::vector<AreaPart>> further_parts;
  Conditions conditions;
  std::unique_ptr<std::barrier<>> together;
  std::unique_ptr<Turns> turns; ///< null: the ranks run at the same time
};

World* world = nullptr;
thread_local int me = 0;
thread_local std::vector<Receive*> posted;    // in posting order
thread_local std::vector<Receive*> schedules; // under way

[[noreturn]] void stuck(const Receive* waiting) {
  if (waiting != nullptr)
    std::fprintf(stderr, "rank thread %d waits for a message from rank %d with tag %d\n", me, waiting->source,
                 waiting->tag);
  else
    std::fprintf(stderr, "rank thread %d waits for its sends to be received\n", me);
  std::fflush(stderr);
  std::abort();
}

std::uint64_t context_of(const object::Communicator& communicator, object::Channel channel) {
  return communicator.context | static_cast<std::uint64_t>(channel);
}

/// Gives waiting messages to posted receives; the caller holds the lock. Returns whether there was one.
bool match() {
  bool moved = false;
  auto& box = world->boxes[static_cast<std::size_t>(me)];
  for (std::size_t i = 0; i < posted.size();) {
    Receive& receive = *posted[i];
    auto at = std::find_if(box.messages.begin(), box.messages.end(), [&](const Parcel& message) {
      return message.context == receive.context && message.source == receive.source &&
             message.tag == receive.tag;
    });
    if (at == box.messages.end()) {
      ++i;
      continue;
    }
    if (at->bytes != receive.buffer.bytes()) {
      receive.completion.error = MPI_ERR_TRUNCATE;
      ADD_FAILURE() << "a message of " << at->bytes << " bytes meets a receive of " << receive.buffer.bytes();
    }
    MPI_Count bytes = std::min(at->bytes, receive.buffer.bytes());
    if (bytes != 0) {
      if (at->sender != nullptr)
        datatype::copy(at->buffer, receive.buffer, bytes);
      else
        datatype::unpack(receive.buffer, 0, at->packed.data(), bytes);
    }
    if (at->sender != nullptr) {
      at->sender->complete = true;
      world->boxes[static_cast<std::size_t>(at->sender_mailbox)].change();
    }
    receive.complete = true;
    box.messages.erase(at);
    posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(i));
    moved = true;
  }
  return moved;
}

void advance_schedules() {
  static thread_local bool inside = false;
  if (inside) return;
  inside = true;
  const struct Scope {
    ~Scope() { inside = false; }
  } scope;
  for (std::size_t i = 0; i < schedules.size();) {
    Receive* request = schedules[i];
    if (request->schedule->advance(request->completion)) {
      request->complete = true;
      request->running = false;
      schedules.erase(schedules.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

} // namespace

object::Result wait(p2p::Request* request) {
  p2p::wait_complete(*request);
  MPI_Request handle = MPI_REQUEST_NULL;
  return p2p::finish(handle, *request, MPI_STATUS_IGNORE, false);
}

namespace {

thread_local segment::Counters own_counters{};
thread_local std::vector<Sent> own_sent;
thread_local std::uint64_t own_polls = 0;

/// The slices of this thread's rank.
thread_local std::vector<std::unique_ptr<std::byte[]>> slice_memory;
base::Result reserve_slice(std::size_t, void*& made, std::size_t&) {
  const Conditions& given = world->conditions;
  if (slice_memory.size() == (me == given.without_slices ? given.few_slices : given.slices))
    return base::fail(MPI_ERR_NO_MEM, "no more slices in this test");
  constexpr std::size_t line = 64, bytes = slice_bytes;
  slice_memory.push_back(std::make_unique<std::byte[]>(bytes + line));
  made = slice_memory.back().get();
  std::size_t space = bytes + line;
  std::align(line, bytes, made, space);
  return {};
}

/// Whether a persistent call is being prepared: its starts may allocate nothing.
thread_local bool prepares = false;
base::Result reserve_own_slice(std::size_t, void*& made, std::size_t&) {
  if (!prepares) return base::fail(MPI_ERR_NO_MEM, "a start needs a slice");
  slice_memory.push_back(std::make_unique<std::byte[]>(slice_bytes));
  made = slice_memory.back().get();
  return {};
}

base::Result populate_slice(std::byte*, std::size_t, std::size_t) { return {}; }
base::Result populate_own_slice(std::byte*, std::size_t, std::size_t) {
  return prepares ? base::Result{} : base::fail(MPI_ERR_NO_MEM, "a start needs more of a slice");
}

} // namespace

segment::Counters& counters() { return own_counters; }
std::vector<Sent>& sent() { return own_sent; }
std::uint64_t polls() { return own_polls; }
std::size_t slices_made() { return slice_memory.size(); }

namespace {

/// Areas that this rank has freed, and the slices of those that it has made for persistent calls, in the order of their
/// making. Others may still read them.
thread_local std::vector<std::unique_ptr<Area>> retired;
thread_local std::vector<std::unique_ptr<Slices>> own_slices;

struct Extension final : AreaExtension {
  ~Extension() override { retired.push_back(std::move(area)); }
  Result make_another(object::Communicator& communicator, MPI_Count bytes,
                      std::unique_ptr<AreaExtension>& made) override;
};

/// Offsets in it are addresses.
std::unique_ptr<Area> make_area(int rank, RankList ranks, std::vector<AreaPart>& parts, Slices& slices) {
  std::vector<AreaMember> members(static_cast<std::size_t>(ranks.size()));
  for (int i = 0; i < ranks.size(); ++i) {
    AreaMember& member = members[static_cast<std::size_t>(i)];
    member.process = {.rank = static_cast<std::uint32_t>(ranks[i])};
    member.part = &parts[static_cast<std::size_t>(ranks[i])];
    member.rank = ranks[i];
    member.node = static_cast<std::uint16_t>(node_of(ranks[i]));
  }
  return std::make_unique<Area>(std::move(members), ranks.find(rank), nullptr, slices, &counters());
}

/// Leaders that are not the lowest ranks, on every other machine.
void elect_some(Machines& machines) {
  std::vector<int> leaders;
  for (int machine = 0; machine < machines.count(); ++machine) {
    const RankList ranks = machines.ranks_of(machine);
    leaders.push_back(ranks[machine % 2 == 0 ? ranks.size() - 1 : 0]);
  }
  machines.set_leaders(std::move(leaders));
}

std::unique_ptr<AreaExtension> make_extension(int rank, int size, std::vector<AreaPart>& parts,
                                              Slices& slices) {
  auto made = std::make_unique<Extension>();
  if (const auto& machine_of = world->conditions.machine_of; !machine_of.empty()) {
    auto machines = std::make_unique<Machines>(machine_of, rank);
    const RankList here = machines->ranks_of(machines->own());
    elect_some(*machines);
    made->leaders_elected = true;
    if (here.size() > 1) {
      made->area = make_area(rank, here, parts, slices);
      made->area->set_reading(Area::Reading::no);
    }
    made->machines = std::move(machines);
  } else {
    made->area = make_area(rank, RankList::all(size), parts, slices);
    made->of_all = made->area.get();
  }
  return made;
}

Result Extension::make_another(object::Communicator& communicator, MPI_Count bytes,
                               std::unique_ptr<AreaExtension>& made) {
  const std::lock_guard guard(world->lock);
  const std::size_t index = own_slices.size();
  while (world->further_parts.size() <= index)
    world->further_parts.emplace_back(static_cast<std::size_t>(communicator.size));
  own_slices.push_back(std::make_unique<Slices>(Slices::Source{reserve_own_slice, populate_own_slice}));
  prepares = true;
  if (bytes > piece_bytes) own_slices.back()->make(2, static_cast<std::size_t>(std::min(bytes, slice_bytes)));
  prepares = false;
  made =
      make_extension(communicator.rank, communicator.size, world->further_parts[index], *own_slices.back());
  return {};
}

void run_threads(int total, const Conditions& conditions, const std::function<void(int)>& body) {
  World fresh(total);
  fresh.conditions = conditions;
  fresh.together = std::make_unique<std::barrier<>>(total);
  if (conditions.one_processor) fresh.turns = std::make_unique<Turns>(total);
  world = &fresh;
  p2p::sent_request = reinterpret_cast<MPI_Request>(1); // finished_request() exists
  // Two threads poll for a time, as ranks with processors of their own do. More of them would take the processors from each other.
  transport::wait_settings.spin_ns = total > 2 ? 0 : transport::WaitSettings{}.spin_ns;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < total; ++rank)
    threads.emplace_back([&, rank] {
      me = rank;
      body(rank);
      EXPECT_TRUE(posted.empty());
      EXPECT_TRUE(schedules.empty());
    });
  for (auto& thread : threads) thread.join();
  for (auto& box : fresh.boxes)
    EXPECT_TRUE(conditions.messages_remain || box.messages.empty()) << "messages were never received";
  world = nullptr;
}

std::vector<object::ProcessId> members(int first, int count) {
  std::vector<object::ProcessId> made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    made[static_cast<std::size_t>(i)].rank = static_cast<std::uint32_t>(first + i);
  return made;
}

} // namespace

void run_ranks(int size, const Conditions& conditions,
               const std::function<void(object::Communicator&)>& body) {
  run_threads(size, conditions, [&](int rank) {
    object::Group group;
    group.members = members(0, size);
    group.rank = rank;
    Slices slices({reserve_slice, populate_slice, 4});
    object::Communicator communicator;
    communicator.context = 4;
    communicator.group = &group;
    communicator.rank = rank;
    communicator.size = communicator.peers = size;
    communicator.process_ids = group.members.data();
    if (size > 1) communicator.extension = make_extension(rank, size, world->parts, slices);
    if (world->turns != nullptr) world->turns->begin(rank);
    body(communicator);
    if (world->turns != nullptr) world->turns->pass(rank, true);
    // No rank frees its slices before all ranks have read them.
    world->together->arrive_and_wait();
    communicator.extension.reset();
    retired.clear();
    own_slices.clear();
    slice_memory.clear();
  });
}

void run_two_groups(int left, int right, const Conditions& conditions,
                    const std::function<void(object::Communicator&, bool)>& body) {
  run_threads(left + right, conditions, [&](int thread) {
    const bool in_left = thread < left;
    object::Group own, other;
    own.members = in_left ? members(0, left) : members(left, right);
    other.members = in_left ? members(left, right) : members(0, left);
    own.rank = in_left ? thread : thread - left;
    object::Communicator communicator;
    communicator.context = 4;
    communicator.group = &own;
    communicator.remote = &other;
    communicator.rank = own.rank;
    communicator.size = own.size();
    communicator.peers = other.size();
    communicator.process_ids = other.members.data();
    object::Communicator inside;
    inside.context = in_left ? 8 : 12;
    inside.group = &own;
    inside.rank = own.rank;
    inside.size = inside.peers = own.size();
    inside.process_ids = own.members.data();
    communicator.local = &inside;
    body(communicator, in_left);
  });
}

} // namespace near::coll::test

namespace near::p2p {

using coll::test::advance_schedules;
using coll::test::context_of;
using coll::test::match;
using coll::test::me;
using coll::test::own_polls;
using coll::test::Parcel;
using coll::test::posted;
using coll::test::Receive;
using coll::test::schedules;
using coll::test::stuck;
using coll::test::world;

void watch_failures(void (*)(const object::ProcessId&)) {} // tests tell areas themselves

bool reads_memory_of(const Communicator&, int) { return me != world->conditions.without_reading; }

/// The ranks are threads, so all memory is this process's own.
Result read_memory(const Communicator&, int, std::uint64_t address, const Buffer& into) {
  EXPECT_NE(me, world->conditions.without_reading);
  datatype::unpack(into, 0, reinterpret_cast<const std::byte*>(address), into.bytes());
  return {};
}

namespace {

/// Like the real one, it reports a lack of memory as a failure.
Result make_request(std::unique_ptr<Receive>& made) {
  made.reset(new (std::nothrow) Receive);
  return made != nullptr ? Result{} : base::fail(MPI_ERR_NO_MEM, "no memory for a request");
}

} // namespace

Result start_send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode,
                  Request*& made, Channel channel) {
  coll::test::sent().push_back({destination, buffer.bytes()});
  std::unique_ptr<Receive> request;
  NEAR_TRY(make_request(request));
  request->what = RequestKind::send;
  request->active = true;
  Parcel message{};
  message.context = context_of(communicator, channel);
  message.source = communicator.rank;
  message.tag = tag;
  message.bytes = buffer.bytes();
  message.sender_mailbox = me;
  const bool eager = static_cast<std::size_t>(buffer.bytes()) <= world->conditions.eager_bytes;
  if (eager) {
    message.packed.resize(static_cast<std::size_t>(buffer.bytes()));
    if (buffer.bytes() != 0) datatype::pack(buffer, 0, message.packed.data(), buffer.bytes());
    request->complete = true;
  } else {
    message.buffer = buffer;
    message.sender = request.get();
  }
  auto& box = world->boxes[communicator.process_ids[destination].rank];
  std::lock_guard guard(world->lock);
  box.messages.push_back(std::move(message));
  box.change();
  made = request.release();
  return {};
}

Result start_receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Request*& made,
                     Channel channel) {
  std::unique_ptr<Receive> request;
  NEAR_TRY(make_request(request));
  request->what = RequestKind::receive;
  request->active = true;
  request->buffer = buffer;
  request->context = context_of(communicator, channel);
  request->source = source;
  request->tag = tag;
  posted.push_back(request.get());
  made = request.release();
  return {};
}

void wait_complete(Request& request) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto& box = world->boxes[static_cast<std::size_t>(me)];
  while (true) {
    std::uint64_t seen;
    {
      std::lock_guard guard(world->lock);
      seen = box.changes;
      match();
      if (request.complete) return;
    }
    advance_schedules();
    std::unique_lock guard(world->lock);
    if (match() || request.complete) continue;
    if (!schedules.empty()) { // stores to an area cause no notification
      guard.unlock();
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > limit) stuck(posted.empty() ? nullptr : posted.front());
      continue;
    }
    if (!box.changed.wait_until(guard, limit, [&] { return box.changes != seen; }))
      stuck(posted.empty() ? nullptr : posted.front());
  }
}

bool progress() {
  ++own_polls;
  std::lock_guard guard(world->lock);
  return match();
}

/// Polls, since there is no doorbell here.
void wait_until_stored(bool (*done)(void*), void* argument) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done(argument)) {
    if (std::chrono::steady_clock::now() > limit) stuck(nullptr);
    {
      std::lock_guard guard(world->lock);
      match();
    }
    advance_schedules();
    if (world->turns != nullptr)
      world->turns->pass(me, false);
    else
      std::this_thread::yield();
  }
}

Result finish(MPI_Request& handle, Request& base, MPI_Status*, bool) {
  auto& request = static_cast<Receive&>(base);
  Result result(request.completion.error);
  if (request.persistent) {
    request.active = request.complete = false;
    return result;
  }
  delete &request;
  handle = MPI_REQUEST_NULL;
  return result;
}

/// A message that has been received, or has left, stays as it is.
Result cancel(Request& request) {
  std::lock_guard guard(world->lock);
  if (const auto at = std::find(posted.begin(), posted.end(), &request); at != posted.end()) {
    posted.erase(at);
    request.completion.error = world->conditions.error_of_cancelled;
    request.complete = true;
  }
  for (auto& box : world->boxes)
    if (std::erase_if(box.messages, [&](const Parcel& message) { return message.sender == &request; }) != 0)
      request.complete = true;
  return {};
}

Request* finished_request() {
  auto* request = new Receive;
  request->what = RequestKind::send;
  request->active = request->complete = true;
  return request;
}

Result make_scheduled(Communicator*, std::unique_ptr<Schedule> schedule, bool persistent, Request*& made) {
  std::unique_ptr<Receive> request; // without memory for more, the schedule goes with it
  NEAR_TRY(make_request(request));
  request->what = RequestKind::schedule;
  request->schedule = std::move(schedule);
  request->persistent = persistent;
  if (!persistent) NEAR_TRY(start(*request));
  made = request.release();
  return {};
}

Result start(Request& base) {
  auto& request = static_cast<Receive&>(base);
  request.active = true;
  request.complete = false;
  NEAR_TRY(request.schedule->begin());
  try {
    if (request.schedule->advance(request.completion)) {
      request.complete = true;
      return {};
    }
    schedules.push_back(&request);
  } catch (...) {
    request.schedule->leave();
    request.active = false;
    throw;
  }
  request.running = true;
  return {};
}

void free_request(MPI_Request& handle, Request& request) {
  delete &static_cast<Receive&>(request);
  handle = MPI_REQUEST_NULL;
}

Result send(const Buffer& buffer, int destination, int tag, Communicator& communicator, SendMode mode,
            Channel channel) {
  Request* request = nullptr;
  NEAR_TRY(start_send(buffer, destination, tag, communicator, mode, request, channel));
  return coll::test::wait(request);
}

Result receive(const Buffer& buffer, int source, int tag, Communicator& communicator, Completion&,
               Channel channel) {
  Request* request = nullptr;
  NEAR_TRY(start_receive(buffer, source, tag, communicator, request, channel));
  return coll::test::wait(request);
}

Result send_receive(const Buffer& send_buffer, int destination, int send_tag, const Buffer& receive_buffer,
                    int source, int receive_tag, Communicator& communicator, Completion&, Channel channel) {
  Request *sending = nullptr, *receiving = nullptr;
  NEAR_TRY(start_receive(receive_buffer, source, receive_tag, communicator, receiving, channel));
  NEAR_TRY(
      start_send(send_buffer, destination, send_tag, communicator, SendMode::standard, sending, channel));
  Result sent = coll::test::wait(sending), received = coll::test::wait(receiving);
  return sent.ok() ? received : sent;
}

} // namespace near::p2p
