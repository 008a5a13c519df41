// Where the pages of another process lie, as the kernel tells it to whoever may look at that process: the
// texts in /proc/<pid>, the page table's flags, and the node of each page. Nothing here stops the process or
// changes its memory.
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
  CpuSet cpus; ///< empty: it has memory alone
  std::uint64_t bytes = 0, free_bytes = 0;
};
/// The nodes that are online, in order of their numbers. `root` stands before the path, for tests. Fails with
/// Code::unsupported where the kernel knows no nodes.
Result read_nodes(std::vector<Node>& nodes, const std::string& root = {});

/// The processors that share a part of the machine with `processor`, as sysfs lists them in `list` below the
/// processor's folder, e.g. "topology/core_cpus_list"; empty when it does not say.
CpuSet processors_with(int processor, const char* list, const std::string& root = {});

/// The whole text of /proc/<pid>/<name>. Fails with Code::gone when there is no such process (any more),
/// Code::refused when it is not the caller's to look at, Code::unsupported when this kernel has no such file.
Result read_process_file(std::int32_t pid, const char* name, std::string& text);
/// The program that the process executes, as the kernel names it; "" when it may not be known.
std::string program_of(std::int32_t pid);
/// The numbers of its threads; empty when it is gone.
std::vector<std::int32_t> threads_of(std::int32_t pid);

/// A page, or a place in swap, that a process's page table speaks of.
struct PageEntry {
  std::uint64_t address = 0;
  bool present = false;
  bool swapped = false;
  bool shared_or_file = false; ///< belongs to a file or to shared memory; else the process's own
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
  /// Appends the pages between two addresses that are present or swapped. Fails with Code::limit, having
  /// appended nothing, when the range is so large that an older kernel would need minutes to go through it.
  Result entries(std::uint64_t begin, std::uint64_t end, std::vector<PageEntry>& found);

private:
  Result read(std::uint64_t begin, std::uint64_t end, std::vector<PageEntry>& found);
  int descriptor_ = -1;
};

/// In place of a node: the process has no such page, or it is the kernel's page of zeros.
inline constexpr int no_page = -1, zero_page = -2;
/// The node of each of the process's pages (move_pages(2), which moves none). Fails with Code::gone,
/// Code::refused, or Code::unsupported where the kernel knows no nodes.
Result nodes_of_pages(std::int32_t pid, std::span<const std::uint64_t> addresses, std::vector<int>& nodes);

/// The first piece of the file at or behind `from` that has memory, up to the next hole; false when there is
/// none before `end`.
bool next_data(int descriptor, std::uint64_t from, std::uint64_t end, std::uint64_t& first,
               std::uint64_t& behind);

} // namespace near::os
