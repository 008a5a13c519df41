#include "boot/watch.h"

#include "abi/types.h"
#include "base/log.h"
#include "boot/by_table.h"
#include "boot/rank_list.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"

#include <algorithm>
#include <csignal>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <unistd.h>

namespace near::boot {

namespace {

using segment::Phase;

constexpr std::uint64_t ms = 1'000'000;
/// A launcher that ends jobs by itself has this much time to do so, and to report it in its own words.
constexpr std::uint64_t launcher_ms = 300;
/// The same for mpiexec, which has to learn of it from another machine.
constexpr std::uint64_t mpiexec_ms = 3000;
/// Several processes notice the same death. One of them reports it at once, the others after this time if they still exist.
constexpr std::uint64_t others_ms = 500;
/// How long a launcher has to end the job after it was asked to; then this process ends by itself.
constexpr std::uint64_t abort_ms = 500;

constexpr std::uint64_t bell_key = 0, first_row_key = 1;

/// Why the job ends, and when this process reports it.
struct EndOfJob {
  std::string text;
  std::uint64_t at_ns = 0;
  bool is_told = false;  ///< the process that has ended has reported it
  bool is_final = false; ///< otherwise the program may handle it
};

struct Watched {
  std::uint32_t row = 0;
  std::int32_t process = 0;
  int descriptor = -1;
};

/// While the thread runs, everything except the atomic variables belongs to it.
struct State {
  std::mutex mutex; ///< held by the thread while it changes anything, and by a thread that forks
  const segment::Segment* segment = nullptr;
  std::uint32_t rank = 0, row = 0, here = 1, machine = 0;
  std::int32_t mpiexec = 0; ///< 0: another launcher has started this process
  std::vector<std::uint32_t> ranks, machine_of;
  std::uint32_t patience = 0;
  os::Poller poller;
  os::Bell bell;
  Lifelines lines;
  std::vector<Watched> watched;
  std::vector<bool> has_left; ///< by row: it has called MPI_Finalize
  std::optional<EndOfJob> end;
  pthread_t thread{};
  bool runs = false;
  base::Atomic<std::uint32_t> stops{0};
  base::Atomic<std::uint32_t> launcher_lost{0};
  base::Atomic<std::uint32_t> leaves_losses{0};
};

/// Never destroyed: the thread may run until the process ends.
State& state() {
  static State& made = *new State;
  return made;
}

std::uint32_t rank_of(const State& self, std::uint32_t row) {
  return self.ranks.empty() ? row : self.ranks[row];
}

std::uint64_t first_line_key(const State& self) { return first_row_key + self.here; }

/// Keeps what comes first.
void plan(EndOfJob end) {
  auto& kept = state().end;
  if (!kept || (end.is_final && !kept->is_final) ||
      (end.is_final == kept->is_final && end.at_ns < kept->at_ns))
    kept = std::move(end);
}

/// The number of processes in lower rows that have not left; if two, this one need neither report first nor watch all.
std::uint32_t rows_before(const State& self, std::uint32_t row) {
  return static_cast<std::uint32_t>(std::count(self.has_left.begin(), self.has_left.begin() + row, false));
}

void row_has_died(std::uint32_t row, std::int32_t process, int watch) {
  State& self = state();
  segment::RankEntry& entry = self.segment->entry(row);
  const Phase phase = self.segment->phase_of(row);
  os::Ending ending;
  const bool known = watch >= 0 && os::ending_of(process, watch, ending);
  if (phase != Phase::dead) {
    entry.died_in.store_relaxed(static_cast<std::uint32_t>(phase));
    entry.exit_status.store_relaxed(known ? static_cast<std::uint32_t>(ending.raw) : 0);
    // SYNC: rank-phase. Release: as from mpiexec.
    entry.phase.store_release(static_cast<std::uint32_t>(Phase::dead));
  }
  std::string how;
  if (known)
    how = ending.by_signal() ? base::format(" ({})", os::signal_name(ending.signal()))
                             : base::format(" (exit status {})", ending.status());
  // SYNC: abort — the process has ended, so whatever it stored is there.
  const bool told = entry.aborting.load_acquire() != 0;
  const std::uint64_t wait_ms = launcher_ms + (rows_before(self, self.row) == 0 ? 0 : others_ms);
  plan({base::format("rank {} on {} has ended without MPI_Finalize{}: the job ends", rank_of(self, row),
                     os::machine_name(), how),
        os::monotonic_ns() + wait_ms * ms, told, true});
}

/// Begins to watch a process on this machine, unless it has left.
void watch_row(std::uint32_t row) {
  State& self = state();
  auto is_row = [&](const Watched& each) { return each.row == row; };
  if (row == self.row || self.has_left[row] || std::any_of(self.watched.begin(), self.watched.end(), is_row))
    return;
  Watched made{.row = row,
               .process = static_cast<std::int32_t>(self.segment->entry(row).claimed.load_relaxed())};
  const bool open = os::watch_process(made.process, made.descriptor).ok();
  if (self.segment->phase_of(row) == Phase::finalized) {
    self.has_left[row] = true;
    if (open) ::close(made.descriptor);
  } else if (!open) {
    row_has_died(row, made.process, -1);
  } else if (self.poller.add(made.descriptor, first_row_key + row).ok()) {
    self.watched.push_back(made);
  } else {
    ::close(made.descriptor);
  }
}

/// The first two processes here that have not left watch all others, and all others watch these two; mpiexec does it itself.
void choose_rows() {
  State& self = state();
  if (self.mpiexec != 0) return;
  const bool all = rows_before(self, self.row) < 2;
  for (std::uint32_t row = 0; row < self.here; ++row)
    if (all || rows_before(self, row) < 2) watch_row(row);
}

void row_has_ended(std::uint32_t row) {
  State& self = state();
  const auto found = std::find_if(self.watched.begin(), self.watched.end(),
                                  [&](const Watched& each) { return each.row == row; });
  if (found == self.watched.end()) return;
  const Watched ended = *found;
  self.watched.erase(found);
  self.poller.remove(ended.descriptor);
  if (self.segment->phase_of(row) == Phase::finalized) {
    self.has_left[row] = true;
    choose_rows();
  } else {
    row_has_died(row, ended.process, ended.descriptor);
  }
  ::close(ended.descriptor);
}

/// How long this process waits for others to end the job because of this loss.
std::uint64_t patience_after(const Loss& loss) {
  const State& self = state();
  const std::uint64_t others = loss.first_hand ? 0 : others_ms;
  if (self.mpiexec == 0) return (loss.silent ? 0 : launcher_ms) + others;
  // Both sides of a broken network notice it, and mpiexec hears from both: the lower machine reports it first.
  return mpiexec_ms + others + (loss.machine < self.machine ? 2 * others_ms : 0);
}

void machine_is_lost(const Loss& loss) {
  State& self = state();
  if (self.mpiexec != 0 && !loss.silent) return; // mpiexec watches the processes
  segment::LostMachines& lost = self.segment->header().lost;
  const std::uint32_t count = lost.count.load_relaxed();
  if (count < segment::LostMachines::most) lost.machines[count].store_relaxed(loss.machine);
  // SYNC: lost-machines. Release: whoever sees the count sees the machine.
  lost.count.store_release(count + 1);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < self.machine_of.size(); ++rank)
    if (self.machine_of[rank] == loss.machine) ranks.push_back(rank);
  const std::string first = ranks.empty() ? "?" : base::format("{}", ranks.front());
  const std::string text =
      loss.silent
          ? base::format("{} does not answer, so its ranks are lost (NEAR_LOST_AFTER={}): {}; the job ends",
                         loss.name, self.patience, rank_list_text(ranks))
          : base::format("rank {} on {} has ended without MPI_Finalize: the job ends", first, loss.name);
  plan({text, os::monotonic_ns() + patience_after(loss) * ms, false, false});
}

/// Called in a thread of the launcher's protocol.
void launcher_is_lost() {
  state().launcher_lost.store_relaxed(1);
  state().bell.ring();
}

/// A launcher that ends the job may close its connections before its signals arrive, so the signals get time first.
void plan_end_without_launcher() {
  State& self = state();
  if (self.launcher_lost.exchange_relaxed(0) == 0) return;
  const std::uint64_t wait_ms = launcher_ms + (rows_before(self, self.row) == 0 ? 0 : others_ms);
  plan({"the launcher has ended before the job: the job ends", os::monotonic_ns() + wait_ms * ms, false,
        true});
}

/// Ends this process and, through the launcher, the job.
[[noreturn]] void end_job(const EndOfJob& end) {
  State& self = state();
  segment::RankEntry& entry = self.segment->entry(self.row);
  if (segment::first_to_say(self.segment->header(), segment::Notice::death) && !end.is_told)
    base::write_line(base::Level::error, end.text);
  entry.abort_code.store_relaxed(MPI_ERR_PROC_ABORTED);
  // SYNC: abort — whoever sees `aborting` must see the code.
  entry.aborting.store_release(static_cast<std::uint32_t>(segment::Abort::failed));
  const int status = exit_status_of_abort(MPI_ERR_PROC_ABORTED);
  // Does not use the streams: a thread that writes to one holds its lock.
  if (self.mpiexec != 0)
    os::send_notice_signal(self.mpiexec);
  else
    abort_by_table(status);
  (void)os::wait_until_readable({}, abort_ms * ms);
  _exit(status);
}

bool ends_job(const State& self) {
  return self.end && (self.end->is_final || self.leaves_losses.load_relaxed() == 0);
}

/// How long the thread may sleep, in ms; -1: until something happens.
int sleep_ms(const State& self) {
  if (!self.end || !ends_job(self)) return -1;
  const std::uint64_t now = os::monotonic_ns();
  return self.end->at_ns <= now ? 0 : static_cast<int>((self.end->at_ns - now) / ms + 1);
}

void* run(void*) {
  State& self = state();
  {
    const std::lock_guard lock(self.mutex);
    choose_rows();
  }
  std::vector<std::uint64_t> keys;
  for (;;) {
    const int left = sleep_ms(self);
    if (left == 0 && self.end) end_job(*self.end);
    self.poller.wait(left, keys);
    self.bell.quiet(); // before checking why it has rung
    if (self.stops.load_relaxed() != 0) return nullptr;
    const std::lock_guard lock(self.mutex);
    plan_end_without_launcher();
    for (const std::uint64_t key : keys)
      if (key >= first_row_key && !self.lines.handle(key))
        row_has_ended(static_cast<std::uint32_t>(key - first_row_key));
  }
}

void close_rows(State& self) {
  for (const Watched& each : self.watched) ::close(each.descriptor);
  self.watched.clear();
}

/// In a child of fork(), whose copies would keep the connections open.
void in_forked_child() {
  State& self = state();
  self.runs = false;
  self.lines.close_all();
  close_rows(self);
  self.mutex.unlock();
}

/// Starts the thread, which gets none of this process's signals.
bool start_thread(pthread_t& thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  constexpr std::size_t stack_bytes = 256 << 10;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread, &attributes, run, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

} // namespace

Result listen_for_machines(std::span<const std::byte> address, std::uint16_t& port) {
  NEAR_TRY(state().lines.listen(address));
  port = state().lines.port();
  return {};
}

std::vector<NextMachine> next_machines(const Start& start) {
  std::vector<std::uint32_t> machines = start.machine_of;
  std::sort(machines.begin(), machines.end());
  machines.erase(std::unique(machines.begin(), machines.end()), machines.end());
  const auto place = static_cast<std::uint32_t>(
      std::lower_bound(machines.begin(), machines.end(), start.machine) - machines.begin());
  std::vector<NextMachine> next;
  for (const std::uint32_t other : next_in_ring(place, static_cast<std::uint32_t>(machines.size()))) {
    const auto first = std::find(start.machine_of.begin(), start.machine_of.end(), machines[other]);
    next.push_back({machines[other], static_cast<std::uint32_t>(first - start.machine_of.begin())});
  }
  return next;
}

Result begin_watch(const Start& start, const segment::Segment& segment, std::span<const Neighbour> next,
                   std::uint32_t patience) {
  State& self = state();
  self.segment = &segment;
  self.rank = start.rank;
  self.mpiexec = start.by_other ? 0 : start.launcher;
  self.row = start.row;
  self.here = start.here;
  self.machine = start.machine;
  self.ranks = start.ranks;
  self.machine_of = start.machine_of;
  self.patience = patience;
  self.has_left.assign(start.here, false);
  NEAR_TRY(self.poller.open());
  NEAR_TRY(self.bell.open());
  NEAR_TRY(self.poller.add(self.bell.descriptor(), bell_key));
  NEAR_TRY(self.lines.begin(self.poller, first_line_key(self),
                            {.secret = start.secret,
                             .machine = start.machine,
                             .name = os::machine_name(),
                             .patience = patience,
                             .on_loss = machine_is_lost}));
  for (const Neighbour& each : next)
    if (!self.lines.connect(each).ok())
      // mpiexec watches the machines itself, and ends the job if the network is gone.
      base::log(self.mpiexec != 0 ? base::Level::debug : base::Level::warning,
                "{} is not watched, so its loss may go unnoticed: {}", each.name,
                std::string(base::failure_text()));
  when_launcher_is_lost(launcher_is_lost);
  pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); }, in_forked_child);
  self.runs = start_thread(self.thread);
  return self.runs ? Result() : base::fail(base::Code::limit, "no thread can be started (ulimit -u)");
}

void leave_losses_to_the_program() { state().leaves_losses.store_relaxed(1); }

bool death_was_told(const Start& start) {
  State& self = state();
  if (!self.runs) {
    if (!start.by_other && start.machines > 1) (void)os::wait_until_readable({}, mpiexec_ms * ms);
    return false;
  }
  segment::Header& header = self.segment->header();
  const auto told = [&] {
    return (header.notices.load_relaxed() & static_cast<std::uint32_t>(segment::Notice::death)) != 0;
  };
  const std::uint64_t patience_ms =
      (self.mpiexec != 0 ? mpiexec_ms + 2 * others_ms : launcher_ms) + 2 * others_ms;
  for (std::uint64_t waited = 0; waited < patience_ms && !told(); waited += 10)
    (void)os::wait_until_readable({}, 10 * ms);
  return !segment::first_to_say(header, segment::Notice::death);
}

std::uint32_t lost_machines() {
  if (state().segment == nullptr) return 0;
  // SYNC: lost-machines. Acquire: the machines were stored before.
  return state().segment->header().lost.count.load_acquire();
}

bool is_lost(std::uint32_t machine) {
  const std::uint32_t count = lost_machines();
  if (count == 0) return false;
  if (count > segment::LostMachines::most) return true;
  const auto& machines = state().segment->header().lost.machines;
  return std::any_of(machines, machines + count,
                     [&](const auto& each) { return each.load_relaxed() == machine; });
}

void end_watch() {
  State& self = state();
  if (!self.runs) return;
  self.runs = false;
  self.stops.store_relaxed(1);
  self.bell.ring();
  pthread_join(self.thread, nullptr);
  // MPI_Finalize does not wait for a machine that is lost, but the job has failed.
  for (int left = sleep_ms(self); left >= 0; left = sleep_ms(self)) {
    if (left == 0 && self.end) end_job(*self.end);
    (void)os::wait_until_readable({}, static_cast<std::uint64_t>(left) * ms);
  }
  self.lines.leave();
  close_rows(self);
}

} // namespace near::boot
