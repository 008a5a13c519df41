// What the supervisor has planned for later: one list, ordered by nothing but the time at which each entry is due.
#pragma once

#include <cstdint>
#include <vector>

namespace near::launch {

/// Each kind of timer, in the order in which those run that are due at the same instant.
enum class Timer {
  poll,      ///< poll the rank table, in case a process could not signal
  wrapper,   ///< of a rank: its MPI process has ended, and its wrapper has not ended with a status
  left,      ///< of a rank: what its program left running has not called MPI_Init
  lost,      ///< no process is left, although ranks have not ended
  devices,   ///< look for the machine's devices
  foreign,   ///< look for another MPI's library in the ranks
  time_out,  ///< --timeout
  terminate, ///< SIGTERM for all
  kill,      ///< SIGKILL for all
  give_up,   ///< drop output that nobody reads
};

class Timers {
public:
  static constexpr std::uint64_t never = UINT64_MAX;

  /// Plans `timer` for `due_ns`, a time of os::monotonic_ns(), in place of an earlier plan for the same timer. `rank` tells
  /// the timers of several ranks apart.
  void set(Timer timer, std::uint64_t due_ns, unsigned rank = 0);
  void cancel(Timer timer, unsigned rank = 0);
  bool is_set(Timer timer, unsigned rank = 0) const;
  /// Makes a timer that is set due at `due_ns`; does nothing for one that is not set.
  void advance(Timer timer, std::uint64_t due_ns, unsigned rank = 0);
  /// Cancels every timer but this one.
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

  std::vector<Entry> entries_; ///< few: unordered
};

} // namespace near::launch
