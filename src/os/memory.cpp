#include "os/memory.h"

#include "base/checked.h"
#include "base/text.h"
#include "os/files.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace near::os {

using base::Code;
using base::fail;
using base::fail_system;

std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t physical_memory() {
  long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<std::uint64_t>(pages) * page_size() : 0;
}

namespace {

/// Calls take(folder, bytes) for each cache of this processor.
template <class Take>
void for_each_cache(Take take) {
  const int cpu = std::max(sched_getcpu(), 0);
  for (int index = 0;; ++index) {
    std::uint64_t kib = 0;
    const auto folder = base::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
    if (!read_number(read_file(folder + "size"), kib)) return; // "32768K"
    take(folder, kib << 10);
  }
}

} // namespace

std::uint64_t largest_cache() {
  std::uint64_t largest = 0;
  for_each_cache([&](const std::string&, std::uint64_t bytes) { largest = std::max(largest, bytes); });
  return largest;
}

std::uint64_t data_cache(int level) {
  std::uint64_t found = 0;
  for_each_cache([&](const std::string& folder, std::uint64_t bytes) {
    std::uint64_t its = 0;
    const bool has_data = read_file(folder + "type").find("Instruction") == std::string::npos;
    if (has_data && read_number(read_file(folder + "level"), its) && its == static_cast<std::uint64_t>(level))
      found = bytes;
  });
  return found;
}

std::uint64_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

bool file_sizes_are_limited() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// Valgrind preloads its replacement functions.
bool addresses_are_few() {
  const char* preloaded = getenv("LD_PRELOAD");
  return preloaded != nullptr && std::string_view(preloaded).find("/vgpreload_") != std::string_view::npos;
}

namespace {

/// Whether this resource is limited (ulimit).
bool is_limited(int resource) {
  rlimit limit{};
  return getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

constexpr const char* huge_folder = "/sys/kernel/mm/transparent_hugepage";

std::uint64_t number_in(const std::string& path) {
  std::uint64_t number = 0;
  return read_number(read_file(path), number) ? number : 0;
}

std::string reserved_folder() {
  return base::format("/sys/kernel/mm/hugepages/hugepages-{}kB", huge_page_size() >> 10);
}

} // namespace

std::size_t huge_page_size() {
  static const std::size_t bytes = [] {
    constexpr std::uint64_t largest = 1u << 30, usual = 2u << 20;
    std::uint64_t found = number_in(base::format("{}/hpage_pmd_size", huge_folder));
    if (found == 0 && access("/sys/kernel/mm/hugepages/hugepages-2048kB", F_OK) == 0) found = usual;
    return static_cast<std::size_t>(base::is_power_of_two(found) && found <= largest ? found : 0);
  }();
  return bytes;
}

std::uint64_t reserved_huge_pages() {
  if (huge_page_size() == 0) return 0;
  std::uint64_t free = number_in(reserved_folder() + "/free_hugepages");
  std::uint64_t promised = number_in(reserved_folder() + "/resv_hugepages");
  return free > promised ? free - promised : 0;
}

// "always within_size [advise] never deny force"
std::string shared_huge_pages_policy() {
  const std::string text = read_file(base::format("{}/shmem_enabled", huge_folder));
  for (std::string_view word : words_of(text))
    if (word.size() > 2 && word.front() == '[') return std::string(word.substr(1, word.size() - 2));
  return {};
}

namespace {

// Sets the length of a file. If it exceeds the limit on file sizes (ulimit -f), the kernel sends SIGXFSZ,
// which would end a process that does not expect it. So the signal is blocked in this thread, and consumed
// before it is unblocked. Returns errno.
int set_length(int descriptor, std::uint64_t bytes) {
  sigset_t too_large, before, pending;
  sigemptyset(&too_large);
  sigaddset(&too_large, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &too_large, &before);
  sigpending(&pending);
  bool was_pending = sigismember(&pending, SIGXFSZ) == 1;
  int error = ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  constexpr timespec now{};
  if (error == EFBIG && !was_pending) sigtimedwait(&too_large, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

} // namespace

Result make_shared_file(const char* name, std::uint64_t bytes, int& descriptor, bool huge) {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  if (huge)
    flags |= MFD_HUGETLB | static_cast<unsigned>(std::countr_zero(huge_page_size())) << MFD_HUGE_SHIFT;
  int made = memfd_create(name, flags);
  if (made < 0) return fail_system("memfd_create", errno, "shared memory of the job");
  if (int error = set_length(made, bytes); error != 0) {
    close(made);
    if (error == EFBIG || error == EINVAL)
      return fail(Code::limit, "a shared memory file of {} MiB exceeds {}", bytes >> 20,
                  is_limited(RLIMIT_FSIZE) ? "the limit on file sizes (ulimit -f)"
                                           : "what this kernel allows a file");
    return fail_system("ftruncate", error, base::format("shared memory of {} bytes", bytes));
  }
  descriptor = made;
  return {};
}

Result seal_length(int descriptor) {
  if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_system("fcntl(F_ADD_SEALS)", errno);
  return {};
}

bool is_own_file(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 && status.st_uid == geteuid();
}

bool is_sealed(int descriptor, std::uint64_t& bytes) {
  int seals = fcntl(descriptor, F_GET_SEALS);
  struct stat status{};
  if (seals < 0 || fstat(descriptor, &status) != 0) return false;
  bytes = static_cast<std::uint64_t>(status.st_size);
  constexpr int wanted = F_SEAL_SHRINK | F_SEAL_GROW;
  return (seals & wanted) == wanted;
}

std::uint64_t inode_of(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

void close_descriptor(int descriptor) {
  if (descriptor >= 0) close(descriptor);
}

Result open_descriptor_of(std::int32_t pid, int number, bool writable, int& descriptor) {
  auto path = base::format("/proc/{}/fd/{}", pid, number);
  // The file may be of any type: opening a pipe or a terminal must neither wait nor make it the controlling
  // terminal.
  int opened = open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) return fail_system("open", errno, path);
  descriptor = opened;
  return {};
}

namespace {

Result explain_mapping(std::uint64_t bytes, int error) {
  if (error == ENOMEM || error == EINVAL)
    return fail(Code::limit, "mapping {} MiB of shared memory exceeds {}", bytes >> 20,
                is_limited(RLIMIT_AS) ? "the address space limit (ulimit -v)"
                                      : "the addresses that this process has left");
  return fail_system("mmap", error, base::format("shared memory of {} bytes", bytes));
}

} // namespace

Result keep_addresses(std::uint64_t bytes, std::byte*& base) {
  std::uint64_t unit = std::max(huge_page_size(), page_size());
  void* at = mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return explain_mapping(bytes, errno);
  auto* begin = static_cast<std::byte*>(at);
  std::uint64_t skip =
      base::round_up(reinterpret_cast<std::uintptr_t>(begin), unit) - reinterpret_cast<std::uintptr_t>(begin);
  if (skip != 0) munmap(begin, skip);
  munmap(begin + skip + bytes, unit - skip);
  base = begin + skip;
  return {};
}

Result map_shared_at(int descriptor, std::uint64_t bytes, bool writable, std::byte* base) {
  int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  void* at = mmap(base, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0);
  if (at == MAP_FAILED) return explain_mapping(bytes, errno);
  return {};
}

Result map_shared(int descriptor, std::uint64_t bytes, bool writable, std::byte*& base) {
  std::byte* at = nullptr;
  NEAR_TRY(keep_addresses(bytes, at));
  Result mapped = map_shared_at(descriptor, bytes, writable, at);
  if (!mapped.ok()) {
    unmap(at, bytes);
    return mapped;
  }
  base = at;
  return {};
}

void unmap(void* base, std::uint64_t bytes) { munmap(base, bytes); }

Result close_pages(void* base, std::uint64_t bytes) {
  if (mprotect(base, bytes, PROT_NONE) != 0) return fail_system("mprotect", errno);
  return {};
}

Result keep_from_children_and_dumps(void* base, std::uint64_t bytes) {
  if (madvise(base, bytes, MADV_DONTFORK) != 0) return fail_system("madvise(MADV_DONTFORK)", errno);
  if (madvise(base, bytes, MADV_DONTDUMP) != 0) return fail_system("madvise(MADV_DONTDUMP)", errno);
  return {};
}

int current_node() {
  unsigned cpu = 0, node = 0;
  return syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : 0;
}

bool has_node(int node) {
  return access(base::format("/sys/devices/system/node/node{}", node).c_str(), F_OK) == 0;
}

namespace {

Result set_policy(void* base, std::size_t bytes, int mode, int node) {
  constexpr int bits = 8 * sizeof(unsigned long);
  unsigned long mask[16] = {};
  if (node < 0 || node >= bits * 16)
    return fail(Code::unsupported, "node {} is beyond what mbind takes", node);
  mask[node / bits] = 1ul << (node % bits);
  if (syscall(SYS_mbind, base, bytes, mode, mask, sizeof mask * 8, 0) != 0) {
    if (errno == EPERM)
      return fail(Code::refused, "mbind is forbidden here; pages are placed where they are first written");
    if (errno == ENOSYS) return fail(Code::unsupported, "this kernel has no mbind");
    return fail_system("mbind", errno);
  }
  return {};
}

} // namespace

Result prefer_node(void* base, std::size_t bytes, int node) {
  return set_policy(base, bytes, MPOL_PREFERRED, node);
}

Result require_node(void* base, std::size_t bytes, int node) {
  return set_policy(base, bytes, MPOL_BIND, node);
}

// A kernel without huge pages refuses the advice, which is harmless.
void advise_huge_pages(void* base, std::size_t bytes, HugePages advice) {
  (void)madvise(base, bytes, advice == HugePages::wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

// In smaps, "7f00-7f80 rw-s ..." begins a mapping, and "ShmemPmdMapped:  2048 kB" belongs to it.
std::uint64_t bytes_in_huge_pages(const void* base, std::size_t bytes) {
  auto begin = reinterpret_cast<std::uintptr_t>(base), end = begin + bytes;
  const std::string mappings = read_file("/proc/self/smaps");
  constexpr std::string_view field = "ShmemPmdMapped:";
  std::uint64_t found = 0, common = 0;
  for (std::string_view line : split(mappings, '\n')) {
    std::uintptr_t from = 0, to = 0;
    const char *begin_of_line = line.begin(), *last = line.end();
    auto first = std::from_chars(begin_of_line, last, from, 16);
    if (first.ec == std::errc() && first.ptr != last && *first.ptr == '-' &&
        std::from_chars(first.ptr + 1, last, to, 16).ec == std::errc()) {
      std::uintptr_t low = std::max(from, begin), high = std::min(to, end);
      common = low < high ? high - low : 0;
    } else if (line.starts_with(field)) {
      std::uint64_t kib = 0;
      read_number(line.substr(field.size()), kib);
      found += std::min(kib << 10, common);
    }
  }
  return found;
}

void map_pages(void* base, std::size_t bytes) { (void)madvise(base, bytes, MADV_POPULATE_READ); }

Result populate(void* base, std::size_t bytes, bool touching) {
  while (madvise(base, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) {
      if (!touching) return fail(Code::unsupported, "this kernel cannot report that pages are missing");
      for (std::size_t at = 0; at < bytes; at += page_size()) static_cast<volatile std::byte*>(base)[at] = {};
      return {};
    }
    if (errno == ENOMEM || errno == EFAULT || errno == ENOSPC)
      return fail(Code::no_memory, "the kernel has no memory left for {} KiB of shared memory", bytes >> 10);
    return fail_system("madvise(MADV_POPULATE_WRITE)", errno);
  }
  return {};
}

std::uint64_t bytes_in_core(const void* base, std::size_t bytes) {
  constexpr std::size_t pages_at_a_time = 1u << 16;
  std::vector<unsigned char> there(pages_at_a_time);
  auto* at = const_cast<char*>(static_cast<const char*>(base));
  std::uint64_t pages = 0;
  while (bytes != 0) {
    std::size_t part = std::min(bytes, pages_at_a_time * page_size());
    if (mincore(at, part, there.data()) != 0) return pages * page_size();
    auto end = there.begin() + static_cast<std::ptrdiff_t>(part / page_size());
    pages += static_cast<std::uint64_t>(
        std::count_if(there.begin(), end, [](auto flags) { return (flags & 1) != 0; }));
    at += part;
    bytes -= part;
  }
  return pages * page_size();
}

bool refuses_overcommitment() { return number_in("/proc/sys/vm/overcommit_memory") == 2; }

Result give_back(void* base, std::size_t bytes) {
  if (madvise(base, bytes, MADV_REMOVE) != 0) return fail_system("madvise(MADV_REMOVE)", errno);
  return {};
}

} // namespace near::os
