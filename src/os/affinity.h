// Which processors a process may run on, and where its private memory comes from.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::os {

using base::Result;

/// A set of processors by the kernel's number.
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
  /// "0-3,8"; "" when empty. Also the kernel's own form.
  std::string text() const;
  /// The words as sched_setaffinity(2) takes them.
  const std::vector<std::uint64_t>& words() const { return words_; }

private:
  std::vector<std::uint64_t> words_;
};

/// Reads "0-3,8". Fails with Code::invalid on anything else; "" is the empty set.
Result parse_cpus(std::string_view text, CpuSet& cpus);

/// The processors that thread `tid` (0: the calling one) may run on.
Result affinity_of(std::int32_t tid, CpuSet& cpus);
/// Binds the calling thread.
Result bind_this_thread(const CpuSet& cpus);
/// The calling thread's private memory comes from the node on which it runs when it touches it first.
Result prefer_local_memory();
/// Whether this thread's memory follows a policy that somebody has set, such as numactl.
bool has_memory_policy();

} // namespace near::os
