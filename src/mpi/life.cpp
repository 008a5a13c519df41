// From MPI_Init to MPI_Finalize. The engine exists until the process ends; MPI_Finalize only drops
// references. Source: MPI 5.0, section 11.2 (the world model), 11.6 (threads), 9.1.
#include "base/knob.h"
#include "base/log.h"
#include "boot/watch.h"
#include "coll/registry.h"
#include "datatype/operation.h"
#include "mpi/call.h"
#include "mpi/error.h"
#include "mpi/impl.h"
#include "mpi/network.h"
#include "os/memory.h"
#include "shm/shm.h"
#include "transport/polling.h"

#include <pthread.h>
#include <unistd.h>

namespace near::mpi {

using object::Result;

namespace {

/// In a child made by fork() the segment is not mapped, so nothing of the library may be used there.
void in_forked_child() {
  process.life = Life::before;
  process.forked = true;
  transport::EngineLock::allow_threads(false);
  Call::write_state_to(nullptr, false);
}

/// Makes MPI_COMM_WORLD and MPI_COMM_SELF, and the predefined types and operations that they need.
Result make_world() {
  object::set_own_process({.rank = process.start.rank});
  NEAR_TRY(datatype::make_predefined_types());
  NEAR_TRY(datatype::make_predefined_operations());
  std::vector<object::ProcessId> members(process.start.size);
  for (std::uint32_t rank = 0; rank < process.start.size; ++rank) members[rank].rank = rank;
  object::Group* everyone = object::make_group(std::move(members));
  if (everyone == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for the group of MPI_COMM_WORLD");
  return object::make_predefined_communicators(everyone);
}

Result start_engine() {
  NEAR_TRY(base::read_knobs(environ));
  NEAR_TRY(boot::read_start(environ, process.start));
  boot::forget_start();
  const boot::Start& start = process.start;
  NEAR_TRY(open_network(process.start));
  base::set_speaker(base::format("rank {}", start.rank));
  shm::Job job;
  job.segment_descriptor = start.segment_descriptor;
  job.row = start.row;
  job.size = start.here;
  job.ranks = start.ranks;
  job.machine = start.machine;
  job.machine_of = start.machine_of;
  job.nic_distance = nic_distance(start);
  if (start.by_other) job.ancestor = getppid();
  p2p::attach();
  NEAR_TRY(shm::start(job));
  start_network(start);
  const std::string& yield = base::knobs().yield.text;
  bool always = yield == "always";
  p2p::let_polls_yield(always || (yield == "auto" && transport::polls_should_yield()), always);
  // Needs the segment, in which the ranks agree which of them reports an error.
  // Ranks on several machines may share processors on only some of them, and all must make the same choice.
  const int shared_processors = start.machines == 1 ? transport::shared_processors() : 0;
  NEAR_TRY(coll::configure(base::knobs().coll.text, shared_processors));
  static const int registered = pthread_atfork(nullptr, nullptr, in_forked_child);
  (void)registered;
  if (start.segment_descriptor >= 0 && !boot::made_segment(start))
    os::close_descriptor(start.segment_descriptor);
  boot::tell_launcher(start);
  return watch_processes(start);
}

Result check_level(int required) {
  for (int level : {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE})
    if (required == level) return {};
  return base::fail(
      MPI_ERR_ARG,
      "required is {}, but must be MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED "
      "or MPI_THREAD_MULTIPLE (compiled with another library's mpi.h?)",
      required);
}

Result initialize(int required) {
  if (process.forked)
    return base::fail(MPI_ERR_OTHER,
                      "called in a child that was made by fork() after MPI_Init: start a program "
                      "of its own instead (exec)");
  if (process.life != Life::before)
    return base::fail(MPI_ERR_OTHER, "called {}",
                      process.life == Life::running ? "a second time" : "after MPI_Finalize");
  NEAR_TRY(check_level(required));
  NEAR_TRY(start_engine());
  NEAR_TRY(make_world());
  process.thread_level = required;
  process.main_thread = std::this_thread::get_id();
  bool several = process.thread_level == MPI_THREAD_MULTIPLE;
  transport::EngineLock::allow_threads(several);
  Call::write_state_to(&transport::own_state_line(), several);
  process.life = Life::running;
  return {};
}

} // namespace

namespace impl {

Result Init(int*, char***) { return initialize(MPI_THREAD_SINGLE); }

Result Init_thread(int*, char***, int required, int* provided) {
  NEAR_TRY(initialize(required));
  *provided = process.thread_level;
  return {};
}

Result Initialized(int* flag) {
  *flag = process.life != Life::before;
  return {};
}

Result Finalized(int* flag) {
  *flag = process.life == Life::after;
  return {};
}

Result Finalize() {
  // First the attributes of MPI_COMM_SELF, while MPI still works: programs use their delete callbacks to
  // clean up (11.2.4).
  for (Communicator* communicator : {object::self(), object::world()})
    NEAR_TRY(communicator->attributes.remove_all(*communicator));
  p2p::drain();
  transport::stop();
  process.life = Life::after;
  Call::end_fast_calls();
  object::drop_predefined_communicators();
  boot::end_watch();
  boot::tell_launcher(process.start);
  boot::leave(process.start);
  return {};
}

Result Query_thread(int* provided) {
  *provided = process.thread_level;
  return {};
}

Result Is_thread_main(int* flag) {
  *flag = std::this_thread::get_id() == process.main_thread;
  return {};
}

Result Abort(Communicator& comm, int errorcode) {
  // mpiexec prints this once for the job; other launchers do not.
  if (process.start.singleton || process.start.by_other)
    base::write_line(base::Level::error, base::format("MPI_Abort: called on {} with error code {}",
                                                      object::describe(comm), errorcode));
  abort_job(errorcode, segment::Abort::called);
}

Result Comm_get_parent(Communicator*& parent) {
  parent = nullptr; // MPI_Comm_spawn does not exist yet
  return {};
}

} // namespace impl
} // namespace near::mpi
