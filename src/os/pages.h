// Where the pages of another process are. The kernel reports this to every process that may inspect the other
// one: by the texts in /proc/<pid>, the page table, and the node of each page. Nothing here stops the process
// or changes its memory.
#pragma once

#include "base/result.h"
#include "os/affinity.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace near::os {

using base::Result;

/// A NUMA node of this machine.
struct Node {
  int number = 0;
  CpuSet cpus; ///< empty if the node has only memory
  std::uint64_t bytes = 0, free_bytes = 0;
};
/// Reads the nodes that are online, in the order of their numbers. `root` is prefixed to the path, for tests.
/// Fails with Code::unsupported if the kernel does not support NUMA.
Result read_nodes(std::vector<Node>& nodes, const std::string& root = {});

/// The processors that share a part of the machine with `processor`, as listed by sysfs in the file `list` of
/// the processor's folder, e.g. "topology/core_cpus_list"; empty if sysfs does not say.
CpuSet processors_with(int processor, const char* list, const std::string& root = {});

/// Reads /proc/<pid>/<name>. Fails with Code::gone if the process does not exist (any more), with
/// Code::refused if the caller may not read it, with Code::unsupported if this kernel has no such file.
Result read_process_file(std::int32_t pid, const char* name, std::string& text);
/// The file that the process executes; "" if the caller may not read that.
std::string program_of(std::int32_t pid);
/// The numbers of the process's threads; empty if it is gone.
std::vector<std::int32_t> threads_of(std::int32_t pid);

/// An entry of a process's page table: a page in memory, or one in swap.
struct PageEntry {
  std::uint64_t address = 0;
  bool present = false;
  bool swapped = false;
  bool shared_or_file = false; ///< part of a file or of shared memory; otherwise the process's own
  bool exclusive = false;      ///< no other process maps it
};

/// The page table of a process.
class PageTable {
public:
  PageTable() = default;
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;
  ~PageTable();
  /// Fails as read_process_file does.
  Result open(std::int32_t pid);
  /// Appends the pages between two addresses that are present or swapped. Fails with Code::limit, without
  /// appending any, if the range is so large that an older kernel would need minutes.
  Result entries(std::uint64_t begin, std::uint64_t end, std::vector<PageEntry>& found);

private:
  Result read(std::uint64_t begin, std::uint64_t end, std::vector<PageEntry>& found);
  int descriptor_ = -1;
};

/// Values in place of a node: the process has no such page, or it is the kernel's page of zeros.
inline constexpr int no_page = -1, zero_page = -2;
/// Gets the node of each page (by move_pages(2), which then moves no page). Fails with Code::gone,
/// Code::refused, or Code::unsupported if the kernel does not support NUMA.
Result nodes_of_pages(std::int32_t pid, std::span<const std::uint64_t> addresses, std::vector<int>& nodes);

/// Finds the first part of the file, from `from` on, that has memory; it ends at the next hole. Returns false
/// if there is none before `end`.
bool next_data(int descriptor, std::uint64_t from, std::uint64_t end, std::uint64_t& first,
               std::uint64_t& behind);

} // namespace near::os
