// The supervisor's timers: one list of everything planned for later.
#pragma once

#include <cstdint>
#include <vector>

namespace near::launch {

/// The kinds of timers, in the order in which timers that are due at the same time are handled.
enum class Timer {
  poll,      ///< poll the rank table, in case a process could not signal
  wrapper,   ///< for a rank: its MPI process has ended, and its wrapper should now end with a status
  left,      ///< for a rank: a process that its program left behind should have called MPI_Init
  lost,      ///< no process is left although ranks have not ended
  devices,   ///< find the machine's NICs and GPUs
  foreign,   ///< check whether ranks have loaded the library of another MPI
  time_out,  ///< --timeout
  late,      ///< a rank has failed after MPI_Finalize: by now the others should have called that
  linger,    ///< report which processes keep the job from ending
  terminate, ///< send SIGTERM to all processes
  kill,      ///< send SIGKILL to all processes
  give_up,   ///< drop unread output
};

class Timers {
public:
  static constexpr std::uint64_t never = UINT64_MAX;

  /// Sets `timer` to `due_ns`, a time of os::monotonic_ns(), and replaces an earlier setting of the same
  /// timer. `rank` distinguishes the timers of several ranks.
  void set(Timer timer, std::uint64_t due_ns, unsigned rank = 0);
  void cancel(Timer timer, unsigned rank = 0);
  bool is_set(Timer timer, unsigned rank = 0) const;
  /// Changes the time of a timer that is set. Has no effect if it is not set.
  void advance(Timer timer, std::uint64_t due_ns, unsigned rank = 0);
  /// Cancels every timer except this one.
  void keep_only(Timer timer);

  /// When the next timer is due; `never` if none is set.
  std::uint64_t next_ns() const;

  struct Due {
    Timer timer;
    unsigned rank;
  };
  /// Removes the earliest timer that is due at `now_ns` and returns it in `due`. Returns false when none is due.
  bool take(std::uint64_t now_ns, Due& due);

private:
  struct Entry {
    std::uint64_t due_ns;
    Timer timer;
    unsigned rank;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  std::vector<Entry>::iterator find(Timer timer, unsigned rank);

  std::vector<Entry> entries_; ///< few, so not sorted
};

} // namespace near::launch
