#include "os/pages.h"

#include "os/files.h"
#include "os/memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace near::os {

using base::Code;
using base::fail;
using base::fail_system;

namespace {

bool exists(std::int32_t pid) { return access(base::format("/proc/{}", pid).c_str(), F_OK) == 0; }

Result explain(std::int32_t pid, const std::string& what, int error) {
  if (error == ESRCH || !exists(pid)) return fail(Code::gone, "there is no process {}", pid);
  if (error == EACCES || error == EPERM)
    return fail(
        Code::refused,
        "process {} may not be inspected ({}: {}): it belongs to another user, or a sandbox forbids it", pid,
        what, strerror(error));
  if (error == ENOENT || error == ENOSYS)
    return fail(Code::unsupported, "this kernel does not report where pages are: it has no {}", what);
  return fail_system(what, error);
}

std::uint64_t kib_after(std::string_view text, std::string_view key) {
  auto at = text.find(key);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + key.size());
  if (at == std::string_view::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value << 10;
}

// PAGEMAP_SCAN (Linux 6.7) skips holes; a sparse mapping may have terabytes of them. Older headers lack it.
struct ScanRegion {
  std::uint64_t begin, end, categories;
};
struct ScanArguments {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long scan_request = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t scan_present = 1u << 3, scan_swapped = 1u << 4;

// Reading costs 8 bytes per page, present or not. In ranges up to small_range it is not worth skipping holes;
// ranges above too_large are not read without skipping.
constexpr std::uint64_t small_range = 16u << 20, too_large = 1ull << 40;

} // namespace

Result read_nodes(std::vector<Node>& nodes, const std::string& root) {
  std::string folder = root + "/sys/devices/system/node", text;
  CpuSet numbers; // the kernel writes sets of nodes in the same form as sets of processors
  if (read_file(folder + "/online", text) != 0)
    return fail(Code::unsupported, "this kernel does not support NUMA nodes (it has no {})", folder);
  NEAR_TRY(parse_cpus(text, numbers));
  std::vector<Node> made;
  for (unsigned number : numbers.members()) {
    Node node;
    node.number = static_cast<int>(number);
    if (read_file(base::format("{}/node{}/cpulist", folder, number), text) == 0)
      NEAR_TRY(parse_cpus(text, node.cpus));
    if (read_file(base::format("{}/node{}/meminfo", folder, number), text) == 0) {
      node.bytes = kib_after(text, "MemTotal:");
      node.free_bytes = kib_after(text, "MemFree:");
    }
    made.push_back(std::move(node));
  }
  nodes = std::move(made);
  return {};
}

CpuSet processors_with(int processor, const char* list, const std::string& root) {
  std::string text;
  CpuSet found;
  if (read_file(base::format("{}/sys/devices/system/cpu/cpu{}/{}", root, processor, list), text) == 0)
    (void)!parse_cpus(text, found).ok();
  return found;
}

Result read_process_file(std::int32_t pid, const char* name, std::string& text) {
  auto path = base::format("/proc/{}/{}", pid, name);
  if (int error = read_file(path, text); error != 0) return explain(pid, path, error);
  return {};
}

std::string program_of(std::int32_t pid) {
  std::array<char, 4096> target;
  ssize_t length = readlink(base::format("/proc/{}/exe", pid).c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

std::vector<std::int32_t> threads_of(std::int32_t pid) {
  std::vector<std::int32_t> found;
  DIR* folder = opendir(base::format("/proc/{}/task", pid).c_str());
  if (folder == nullptr) return found;
  while (dirent* entry = readdir(folder)) {
    std::int32_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, number).ptr == end) found.push_back(number);
  }
  closedir(folder);
  return found;
}

PageTable::~PageTable() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result PageTable::open(std::int32_t pid) {
  auto path = base::format("/proc/{}/pagemap", pid);
  int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return explain(pid, path, errno);
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = opened;
  return {};
}

Result PageTable::read(std::uint64_t begin, std::uint64_t end, std::vector<PageEntry>& found) {
  constexpr std::uint64_t at_once = 8192;
  const std::uint64_t page = page_size();
  std::vector<std::uint64_t> words(at_once);
  while (begin < end) {
    std::uint64_t wanted = std::min(at_once, (end - begin) / page);
    ssize_t got = pread(descriptor_, words.data(), wanted * sizeof(std::uint64_t),
                        static_cast<off_t>(begin / page * sizeof(std::uint64_t)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_system("pread", errno, "pagemap");
    auto count = static_cast<std::uint64_t>(got) / sizeof(std::uint64_t);
    if (count == 0) return {}; // the process has ended, or the range is beyond its address space
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t word = words[i];
      bool present = word >> 63 & 1, swapped = word >> 62 & 1;
      if (present || swapped)
        found.push_back({begin + i * page, present, swapped, (word >> 61 & 1) != 0, (word >> 56 & 1) != 0});
    }
    begin += count * page;
  }
  return {};
}

Result PageTable::entries(std::uint64_t begin, std::uint64_t end, std::vector<PageEntry>& found) {
  if (end - begin <= small_range) return read(begin, end, found);
  std::array<ScanRegion, 256> regions;
  for (std::uint64_t at = begin; at < end;) {
    ScanArguments scan{};
    scan.size = sizeof scan;
    scan.start = at;
    scan.end = end;
    scan.vec = reinterpret_cast<std::uint64_t>(regions.data());
    scan.vec_len = regions.size();
    scan.category_anyof_mask = scan.return_mask = scan_present | scan_swapped;
    int count = ioctl(descriptor_, scan_request, &scan);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      if (at == begin && end - begin > too_large)
        return fail(Code::limit, "{} GiB of addresses are too many to check one by one", (end - begin) >> 30);
      return read(at, end, found);
    }
    for (int i = 0; i < count; ++i) NEAR_TRY(read(regions[i].begin, regions[i].end, found));
    if (scan.walk_end <= at) break;
    at = scan.walk_end;
  }
  return {};
}

Result nodes_of_pages(std::int32_t pid, std::span<const std::uint64_t> addresses, std::vector<int>& nodes) {
  // The kernel processes them in small groups anyway; this bounds what must be repeated after a signal.
  constexpr std::size_t at_once = 4096;
  nodes.assign(addresses.size(), no_page);
  for (std::size_t done = 0; done < addresses.size();) {
    std::size_t count = std::min(at_once, addresses.size() - done);
    if (syscall(SYS_move_pages, pid, count, addresses.data() + done, nullptr, nodes.data() + done, 0) < 0) {
      if (errno == EINTR) continue;
      return explain(pid, "move_pages", errno);
    }
    for (std::size_t i = done; i < done + count; ++i)
      if (nodes[i] < 0) nodes[i] = nodes[i] == -EFAULT ? zero_page : no_page;
    done += count;
  }
  return {};
}

bool next_data(int descriptor, std::uint64_t from, std::uint64_t end, std::uint64_t& first,
               std::uint64_t& behind) {
  off_t data = lseek(descriptor, static_cast<off_t>(from), SEEK_DATA);
  if (data < 0 || static_cast<std::uint64_t>(data) >= end) return false;
  off_t hole = lseek(descriptor, data, SEEK_HOLE);
  first = static_cast<std::uint64_t>(data);
  // Another process may free the page between the two calls; a caller that continues at `behind` must still
  // advance.
  if (hole == data) ++hole;
  behind = hole < 0 ? end : std::min(end, static_cast<std::uint64_t>(hole));
  return true;
}

} // namespace near::os
