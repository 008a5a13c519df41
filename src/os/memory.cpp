#include "os/memory.h"

#include "base/checked.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

std::uint64_t largest_cache() {
  std::uint64_t largest = 0;
  int cpu = std::max(sched_getcpu(), 0);
  for (int index = 0;; ++index) {
    std::ifstream file(base::format("/sys/devices/system/cpu/cpu{}/cache/index{}/size", cpu, index));
    std::uint64_t kib = 0;
    if (!(file >> kib)) return largest; // "32768K"
    largest = std::max(largest, kib << 10);
  }
}

std::uint64_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

namespace {

// A length above the limit on file sizes (ulimit -f) comes with SIGXFSZ, which ends a process that does not
// expect it. Held back in this thread alone, and taken away before it is let through again. Returns errno.
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

Result make_shared_file(const char* name, std::uint64_t bytes, int& descriptor) {
  int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return fail_system("memfd_create", errno, "shared memory of the job");
  if (int error = set_length(made, bytes); error != 0) {
    close(made);
    if (error == EFBIG || error == EINVAL)
      return fail(Code::limit, "a shared memory file of {} MiB exceeds the limit on file sizes (ulimit -f)",
                  bytes >> 20);
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

Result keep_over_exec(int descriptor, bool keep) {
  if (fcntl(descriptor, F_SETFD, keep ? 0 : FD_CLOEXEC) != 0) return fail_system("fcntl(F_SETFD)", errno);
  return {};
}

Result open_descriptor_of(std::int32_t pid, int number, bool writable, int& descriptor) {
  auto path = base::format("/proc/{}/fd/{}", pid, number);
  int opened = open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (opened < 0) return fail_system("open", errno, path);
  descriptor = opened;
  return {};
}

Result map_shared(int descriptor, std::uint64_t bytes, bool writable, std::byte*& base) {
  int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  void* at = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (at == MAP_FAILED) {
    if (errno == ENOMEM)
      return fail(Code::limit, "mapping {} MiB of shared memory exceeds the address space limit (ulimit -v)",
                  bytes >> 20);
    if (errno == EINVAL)
      return fail(
          Code::limit,
          "mapping {} MiB of shared memory was refused; under a tool that has few addresses to give, such "
          "as valgrind, run `ulimit -v 16000000` before mpiexec, which then makes a smaller segment",
          bytes >> 20);
    return fail_system("mmap", errno, base::format("shared memory of {} bytes", bytes));
  }
  base = static_cast<std::byte*>(at);
  return {};
}

void unmap(void* base, std::uint64_t bytes) { munmap(base, bytes); }

Result keep_from_children_and_dumps(void* base, std::uint64_t bytes) {
  if (madvise(base, bytes, MADV_DONTFORK) != 0) return fail_system("madvise(MADV_DONTFORK)", errno);
  if (madvise(base, bytes, MADV_DONTDUMP) != 0) return fail_system("madvise(MADV_DONTDUMP)", errno);
  return {};
}

int current_node() {
  unsigned cpu = 0, node = 0;
  return syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? static_cast<int>(node) : 0;
}

Result prefer_node(void* base, std::size_t bytes, int node) {
  constexpr int bits = 8 * sizeof(unsigned long);
  unsigned long mask[16] = {};
  if (node < 0 || node >= bits * 16)
    return fail(Code::unsupported, "node {} is beyond what mbind takes", node);
  mask[node / bits] = 1ul << (node % bits);
  if (syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask, sizeof mask * 8, 0) != 0) {
    if (errno == EPERM)
      return fail(Code::refused, "mbind is forbidden here; pages lie where they are first written");
    if (errno == ENOSYS) return fail(Code::unsupported, "this kernel has no mbind");
    return fail_system("mbind", errno);
  }
  return {};
}

Result populate(void* base, std::size_t bytes) {
  while (madvise(base, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) { // before Linux 5.14: touch instead, page by page
      for (std::size_t at = 0; at < bytes; at += page_size()) static_cast<volatile std::byte*>(base)[at] = {};
      return {};
    }
    if (errno == ENOMEM || errno == EFAULT || errno == ENOSPC)
      return fail(Code::no_memory, "the kernel has no memory left for {} KiB of shared memory", bytes >> 10);
    return fail_system("madvise(MADV_POPULATE_WRITE)", errno);
  }
  return {};
}

Result give_back(void* base, std::size_t bytes) {
  if (madvise(base, bytes, MADV_REMOVE) != 0) return fail_system("madvise(MADV_REMOVE)", errno);
  return {};
}

} // namespace near::os
