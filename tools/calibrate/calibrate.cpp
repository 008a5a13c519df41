#include "calibrate/placed.h"
#include "calibrate/run.h"

#include "os/clock.h"
#include "os/descriptor.h"
#include "os/limits.h"
#include "os/memory.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "profile/messages.h"
#include "segment/segment.h"

#include <csignal>
#include <unistd.h>

namespace near::calibrate {

using base::Code;
using base::fail;
using profile::Profile;

namespace {

constexpr Kind all_kinds[] = {Kind::direct, Kind::pipelined_cached, Kind::pipelined_streaming, Kind::cma};

/// The time for short messages between two processors.
constexpr std::uint64_t short_budget_ns = 100'000'000;
/// Time allowed after the end of a run for the current message and for shutting down. Seconds, since a busy
/// machine is not a failure.
constexpr std::uint64_t grace_ns = 10'000'000'000;

/// The two processes of a run. The destructor ends them in any case.
class Couple {
public:
  Couple() = default;
  Couple(const Couple&) = delete;
  Couple& operator=(const Couple&) = delete;
  ~Couple() {
    end();
    std::vector<std::uint64_t> keys;
    os::Poller pause;
    if (!pause.open().ok()) return;
    while (reap() && living_ > 0) pause.wait(1, keys);
  }
  Result start(const Run& run, int segment, int results) {
    os::Pid parent = getpid();
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      NEAR_TRY(os::fork_process(child_[rank]));
      if (child_[rank] == 0) _exit(take_part(run, rank, segment, results, parent));
      ++living_;
    }
    return {};
  }
  /// Records which process has ended. Returns false if no process is left to wait for.
  bool reap() {
    os::Ending ending;
    bool none_left = false;
    while (os::reap(ending, none_left))
      for (os::Pid& child : child_)
        if (child == ending.pid) {
          failed_ = failed_ || ending.status() != 0;
          child = 0;
          --living_;
        }
    return !none_left;
  }
  void end() {
    for (os::Pid child : child_)
      if (child != 0) os::send_signal(child, SIGKILL);
  }
  int living() const { return living_; }
  bool failed() const { return failed_; }

private:
  os::Pid child_[2] = {};
  int living_ = 0;
  bool failed_ = false;
};

/// A pipe that closes its ends on destruction.
struct Pipe {
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    os::close_descriptor(reading);
    os::close_descriptor(writing);
  }
  int reading = -1, writing = -1;
};

void note(const Run& run, const Measurement& measurement, Profile& profile) {
  if (measurement.refusal[0] != 0) profile.no_cma = measurement.refusal;
  if (measurement.cost != 0)
    profile.cost[static_cast<std::size_t>(run.pair.distance)][measurement.size_class][measurement.source]
                [static_cast<std::size_t>(run.kind)] = measurement.cost;
}

/// Starts the two processes and passes each of their measurements to arrived(). With pipelined copies, `stores` receives the
/// sender's cost of filling a packet, in nanoseconds per MiB.
Result carry_out(const Run& run, const std::function<void(const Measurement&)>& arrived,
                 std::uint32_t& stores) {
  segment::Segment segment;
  NEAR_TRY(segment.create(2, 2, 2));
  Pipe pipe;
  NEAR_TRY(os::make_pipe(pipe.reading, pipe.writing));
  os::Poller poller;
  NEAR_TRY(poller.open());
  NEAR_TRY(poller.add(pipe.reading, 1));
  Couple couple;
  NEAR_TRY(couple.start(run, segment.descriptor(), pipe.writing));
  os::close_descriptor(pipe.writing); // its end shows that both have ended
  pipe.writing = -1;
  bool late = false;
  std::vector<std::uint64_t> keys;
  while (couple.living() > 0) {
    poller.wait(10, keys);
    Measurement measurement;
    std::size_t bytes = 0;
    while (os::read_some(pipe.reading, reinterpret_cast<char*>(&measurement), sizeof measurement, bytes) ==
               os::Transfer::some &&
           bytes == sizeof measurement) {
      arrived(measurement);
    }
    couple.reap();
    late = late || os::monotonic_ns() > run.end_ns + grace_ns;
    if (couple.failed() || late) couple.end();
  }
  if (late || couple.failed())
    return fail(Code::system, "the processes that measured {} on processors {} and {} {}",
                run.is_short ? "short messages" : kind_name(run.kind), run.pair.sender, run.pair.receiver,
                late ? "did not end in time" : "failed");
  const bool streaming = run.kind == Kind::pipelined_streaming;
  const auto& of_sender = segment.at<segment::PairStatistics>(segment.control(0).statistics)[1];
  stores = of_sender.store_cost[streaming].load_relaxed();
  return {};
}

Run short_run(const Pair& pair, std::uint64_t budget_ns) {
  Run run{pair, Kind::pipelined_cached, os::monotonic_ns() + budget_ns};
  run.is_short = true;
  return run;
}

} // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
  case Kind::direct: return "direct";
  case Kind::pipelined_cached: return "pipelined, cached stores";
  case Kind::pipelined_streaming: return "pipelined, streaming stores";
  case Kind::cma: break;
  }
  return "cma";
}

std::vector<Pair> pairs_of(const topo::Machine& machine, const topo::CpuSet& allowed) {
  auto cpus = (machine.cpus() & allowed).members();
  std::vector<segment::Location> locations;
  for (unsigned cpu : cpus) {
    topo::CpuSet one;
    one.add(cpu);
    locations.push_back(profile::location_of(machine, one));
  }
  std::vector<Pair> found;
  for (std::size_t distance = 0; distance < segment::distances; ++distance) {
    auto at = static_cast<Distance>(distance);
    [&] {
      for (std::size_t one = 0; one < cpus.size(); ++one)
        for (std::size_t other = one + 1; other < cpus.size(); ++other)
          if (distance_between(locations[one], locations[other]) == at) {
            found.push_back({at, cpus[one], cpus[other]});
            return;
          }
    }();
  }
  return found;
}

Result measure(const topo::Machine& machine, const topo::CpuSet& allowed, std::uint64_t budget_ns,
               const Report& report, Profile& profile) {
  auto pairs = pairs_of(machine, allowed);
  if (pairs.empty())
    return fail(
        Code::unsupported,
        "messages need two processors, and this process may use one only ({}): allow more, or measure "
        "from a shell that is not bound",
        (machine.cpus() & allowed).text());
  std::uint64_t end = os::monotonic_ns() + budget_ns;
  auto runs = static_cast<unsigned>(pairs.size() * std::size(all_kinds)), run = 0u;
  for (const Pair& pair : pairs) {
    auto& times = profile.short_time[static_cast<std::size_t>(pair.distance)];
    std::uint32_t none = 0;
    NEAR_TRY(carry_out(
        short_run(pair, short_budget_ns),
        [&](const Measurement& measurement) { times[measurement.size_class] = measurement.cost; }, none));
    for (Kind kind : all_kinds) {
      unsigned done = run * measurements_per_run, left = runs - run++;
      if (kind == Kind::cma && !profile.no_cma.empty()) continue;
      std::uint64_t now = os::monotonic_ns();
      report(done, runs * measurements_per_run, pair, kind);
      const Run one{pair, kind, now + (end - std::min(now, end)) / left};
      auto arrived = [&](const Measurement& measurement) {
        note(one, measurement, profile);
        report(++done, runs * measurements_per_run, pair, kind);
      };
      std::uint32_t stores = 0;
      NEAR_TRY(carry_out(one, arrived, stores));
      if (kind == Kind::pipelined_cached || kind == Kind::pipelined_streaming)
        profile.store_cost[static_cast<std::size_t>(pair.distance)][kind == Kind::pipelined_streaming] =
            stores;
    }
  }
  return {};
}

Result time_message(const Pair& pair, Kind kind, datatype::Datatype& type, MPI_Count count,
                    std::uint64_t budget_ns, double& took) {
  const datatype::Buffer buffer{nullptr, count, &type};
  std::uint32_t cost = 0, stores = 0;
  NEAR_TRY(os::check_memory(2 * span_of(type, count)));
  auto arrived = [&](const Measurement& measurement) { cost = measurement.cost; };
  const bool is_short = static_cast<std::uint64_t>(buffer.bytes()) <= profile::longest_whole;
  Run run = short_run(pair, budget_ns);
  if (!is_short) run = {pair, kind, os::monotonic_ns() + budget_ns};
  run.type = &type;
  run.count = count;
  NEAR_TRY(carry_out(run, arrived, stores));
  if (cost == 0)
    return fail(Code::limit, "a message of {} bytes did not arrive in time: the machine is busy",
                buffer.bytes());
  took =
      is_short ? cost / 1000.0 : static_cast<double>(cost) * static_cast<double>(buffer.bytes()) / (1 << 20);
  return {};
}

} // namespace near::calibrate
