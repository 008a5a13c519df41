// The two processes of a run, and long messages between them. The receiver decides how often each size is sent, since it has the clock:
//
//   sender                                        receiver
//   writes the message, if it is to be new
//   RTS    ------------------------------------>  accept, and the time until all is there
//          <------------------------------------  again, another size, or stop
#include "calibrate/placed.h"
#include "calibrate/run.h"

#include "base/knob.h"
#include "base/log.h"
#include "memory/allocate.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/peer_memory.h"
#include "os/process.h"
#include "shm/shm.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>

namespace near::calibrate {

namespace {

using profile::Source;
using transport::Transfer;

enum class Next : unsigned char { again, another, stop };

constexpr std::size_t size_of(int size_class) { return std::size_t{4096} << size_class; }
constexpr std::size_t largest = size_of(measured_classes.back());
constexpr std::size_t fewest_samples = 3, most_samples = 24;

/// What arrivals in this process have set, in one run.
struct Arrived {
  bool rts_done = false, answered = false;
  Next answer = Next::stop;
  const Run* run = nullptr;
  std::byte* buffer = nullptr;
  Transfer transfer;
  std::uint64_t end_ns = 0;
};
Arrived& arrived() {
  static Arrived one;
  return one;
}

segment::Protocol protocol_of(Kind kind) {
  switch (kind) {
  case Kind::direct: return segment::Protocol::direct;
  case Kind::cma: return segment::Protocol::cma;
  default: return segment::Protocol::pipelined;
  }
}

transport::Buffer buffer_of(void* at, std::size_t bytes) {
  return {at, static_cast<MPI_Count>(bytes), datatype::find_datatype(MPI_BYTE)};
}

/// The buffer of a message, in this memory.
transport::Buffer buffer_of(const Run& run, std::byte* memory, std::size_t bytes) {
  return run.type == nullptr ? buffer_of(memory, bytes) : placed_in(memory, *run.type, run.count);
}
/// The size of that memory.
std::size_t memory_of(const Run& run) {
  return run.type == nullptr ? largest : span_of(*run.type, run.count);
}

/// Tasks are measured one after another.
struct Task {
  int size_class;
  Source source;
};
std::vector<Task> tasks_of(const Run& run) {
  std::vector<Task> tasks;
  if (run.type != nullptr) return {{0, Source::reused}};
  for (int size_class : measured_classes)
    for (Source source : {Source::reused, Source::rewritten}) tasks.push_back({size_class, source});
  return tasks;
}
std::size_t bytes_of(const Run& run, const Task& task) {
  return run.type != nullptr ? static_cast<std::size_t>(run.count * run.type->size)
                             : size_of(task.size_class);
}

transport::Peer& other(std::uint32_t rank) { return transport::peer_at({0, 1 - rank}); }

void wait_for(bool Arrived::* flag) {
  static bool Arrived::* wanted;
  wanted = flag;
  transport::wait_until([](void*) { return arrived().*wanted; }, nullptr);
  arrived().*flag = false;
}

/// Fills the buffer with numbers, since a processor may store zeros faster (doc/adr/0006).
void write(std::byte* buffer, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes; at += sizeof seed) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(buffer + at, &seed, sizeof seed);
  }
}

void send_all(const Run& run) {
  std::unique_ptr<std::byte[]> own;
  const std::size_t memory = memory_of(run);
  auto* buffer = static_cast<std::byte*>(
      run.kind == Kind::direct ? memory::allocate_shareable(memory, {.alignment = 4096}) : nullptr);
  if (buffer == nullptr) {
    own = std::make_unique_for_overwrite<std::byte[]>(memory + sizeof(std::uint64_t));
    buffer = own.get();
  }
  std::uint64_t seed = 0;
  int last_class = -1;
  for (const Task& task : tasks_of(run)) {
    const std::size_t bytes = bytes_of(run, task);
    if (task.size_class != last_class) write(buffer, run.type != nullptr ? memory : bytes, ++seed);
    last_class = task.size_class;
    for (Next next = Next::again; next == Next::again;) {
      if (task.source == Source::rewritten) write(buffer, bytes, ++seed);
      Transfer transfer;
      transfer.done = [](Transfer&, int) { arrived().rts_done = true; };
      if (!transport::send_rts(other(0), {0, 0, 0, bytes}, buffer_of(run, buffer, bytes), transfer).ok())
        return;
      wait_for(&Arrived::rts_done);
      wait_for(&Arrived::answered);
      next = arrived().answer;
      if (next == Next::stop) return;
    }
  }
}

/// The minimum, as in a trial of the tuner, without the first ones, which find cold memory.
std::uint32_t cost_of(const std::vector<std::uint64_t>& took, std::size_t bytes) {
  auto least =
      *std::min_element(took.begin() + std::max<std::ptrdiff_t>(1, std::ssize(took) / 4), took.end());
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((least << 20) / bytes, 1, UINT32_MAX));
}

/// Why the kernel does not copy from the sender.
std::string refusal() {
  const auto& control = transport::job_segment().control(0);
  std::uint64_t word = 0;
  std::size_t copied = 0;
  std::array<os::Run, 1> into = {{{&word, sizeof word}}};
  bool reads =
      os::read_peer(static_cast<std::int32_t>(control.pid), control.probe_address, into, copied).ok();
  return reads ? "process_vm_readv reads another process" : std::string(base::failure_text());
}

void answer(Next next) {
  static Next said;
  said = next;
  auto view = buffer_of(&said, 1);
  static const transport::Buffer* pending;
  pending = &view;
  transport::wait_until([](void*) { return transport::try_send_eager(other(1), {0, 0, 0, 1}, *pending); },
                        nullptr);
}

void receive_all(const Run& run, int results) {
  auto own = std::make_unique_for_overwrite<std::byte[]>(memory_of(run));
  arrived().run = &run;
  arrived().buffer = own.get();
  const std::vector<Task> tasks = tasks_of(run);
  std::size_t left = tasks.size();
  std::vector<std::uint64_t> took;
  for (const Task& task : tasks) {
    std::uint64_t now = os::monotonic_ns(), until = now + (run.end_ns - std::min(now, run.end_ns)) / left--;
    took.clear();
    for (Next next = Next::again; next == Next::again;) {
      wait_for(&Arrived::rts_done);
      Measurement measurement{static_cast<std::uint32_t>(task.size_class),
                              static_cast<std::uint32_t>(task.source)};
      const Transfer& transfer = arrived().transfer;
      if (transfer.protocol != static_cast<std::uint8_t>(protocol_of(run.kind))) {
        if (run.kind == Kind::cma) refusal().copy(measurement.refusal, sizeof measurement.refusal - 1);
        report(results, measurement);
        return answer(Next::stop);
      }
      took.push_back(arrived().end_ns - transfer.began_ns);
      now = os::monotonic_ns();
      bool enough = took.size() >= most_samples || (took.size() >= fewest_samples && now >= until);
      next = now >= run.end_ns ? Next::stop : enough ? Next::another : Next::again;
      if (next != Next::again && took.size() > 1) {
        measurement.cost = cost_of(took, bytes_of(run, task));
        report(results, measurement);
      }
      answer(next);
      if (next == Next::stop) return;
    }
  }
}

void on_rts(transport::Arrival& arrival) {
  Arrived& here = arrived();
  here.transfer = {};
  here.transfer.done = [](Transfer&, int) {
    arrived().end_ns = os::monotonic_ns();
    arrived().rts_done = true;
  };
  auto view = buffer_of(*here.run, here.buffer, static_cast<std::size_t>(arrival.envelope.bytes));
  (void)transport::accept(*arrival.from, arrival.rts(), arrival.envelope.bytes, view, here.transfer);
}

void on_answer(transport::Arrival& arrival) {
  arrived().answer = static_cast<Next>(*arrival.payload);
  arrived().answered = true;
  transport::give_back_credit(*arrival.from, arrival.envelope.bytes);
}

Result begin(const Run& run, std::uint32_t rank, int segment_descriptor, std::int32_t parent) {
  NEAR_TRY(os::end_with_parent(SIGKILL, parent));
  topo::CpuSet cpu;
  cpu.add(rank == 0 ? run.pair.sender : run.pair.receiver);
  NEAR_TRY(os::bind_this_thread(cpu));
  (void)os::prefer_local_memory(); // a sandbox may refuse it; first touch has nearly the same effect
  // Selects the kind, whatever the user's knobs say. A refusal of CMA is reported in the profile.
  const char* copies[] = {"NEAR_COPY=direct", "NEAR_COPY=pipelined", "NEAR_COPY=pipelined", "NEAR_COPY=cma"};
  std::string copy = copies[static_cast<std::size_t>(run.kind)], log = "NEAR_LOG=error",
              stores = run.is_short                         ? "NEAR_STORES=auto"
                       : run.kind == Kind::pipelined_cached ? "NEAR_STORES=cached"
                                                            : "NEAR_STORES=streaming";
  char* environment[] = {copy.data(), log.data(), stores.data(), nullptr};
  NEAR_TRY(base::read_knobs(environment));
  NEAR_TRY(datatype::make_predefined_types());
  transport::set_handler(transport::Handler::p2p_rts, on_rts);
  transport::set_handler(transport::Handler::p2p_eager, run.is_short ? on_short_message : on_answer);
  return shm::start({segment_descriptor, rank, 2});
}

} // namespace

void report(int results, const Measurement& measurement) {
  (void)os::write_all(results, reinterpret_cast<const char*>(&measurement), sizeof measurement);
}

int take_part(const Run& run, std::uint32_t rank, int segment_descriptor, int results, std::int32_t parent) {
  if (!begin(run, rank, segment_descriptor, parent).ok()) {
    base::log(base::Level::error, "{}", std::string(base::failure_text()));
    return 1;
  }
  if (run.is_short)
    exchange_short_messages(run, rank, results);
  else if (rank == 0)
    send_all(run);
  else
    receive_all(run, results);
  transport::stop();
  return 0;
}

} // namespace near::calibrate
