// The processors on which a process may run, and the node from which its private memory comes.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::os {

using base::Result;

/// A set of processors, by the kernel's numbers.
class CpuSet {
public:
  void add(unsigned cpu);
  void add_range(unsigned first, unsigned last);
  void remove(unsigned cpu);
  bool has(unsigned cpu) const;
  bool empty() const { return count() == 0; }
  unsigned count() const;
  /// The lowest member, or -1.
  int first() const;
  std::vector<unsigned> members() const;
  CpuSet operator&(const CpuSet& other) const;
  CpuSet operator|(const CpuSet& other) const;
  bool operator==(const CpuSet& other) const;
  /// The set in the form "0-3,8", which the kernel also uses; "" if it is empty.
  std::string text() const;
  /// The set as a bit mask for sched_setaffinity(2).
  const std::vector<std::uint64_t>& words() const { return words_; }

private:
  std::vector<std::uint64_t> words_;
};

/// Parses a set such as "0-3,8"; "" is the empty set. Fails with Code::invalid if the text is anything else.
Result parse_cpus(std::string_view text, CpuSet& cpus);

/// Gets the time since boot for which these processors together have been idle or taken by
/// a hypervisor, in nanoseconds, with a resolution of 10 ms for each of them. It may go
/// back by that much. Returns false if the kernel does not report all of these processors.
bool idle_time(const CpuSet& cpus, std::uint64_t& idle_ns);

/// Gets the processors on which thread `tid` may run; 0 is the calling thread.
Result affinity_of(std::int32_t tid, CpuSet& cpus);
/// Like affinity_of(), without a failure text. Returns errno, or 0.
int read_affinity(std::int32_t tid, CpuSet& cpus);
/// Binds the calling thread to these processors.
Result bind_this_thread(const CpuSet& cpus);
/// Makes the kernel allocate the calling thread's private memory on the node where the thread runs when it
/// first touches it.
Result prefer_local_memory();
/// Whether a memory policy is set for the calling thread, for instance by numactl.
bool has_memory_policy();

} // namespace near::os
