#include "os/peer_memory.h"

#include <cerrno>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace near::os {

static_assert(sizeof(Run) == sizeof(iovec) && offsetof(Run, address) == offsetof(iovec, iov_base) &&
                  offsetof(Run, bytes) == offsetof(iovec, iov_len),
              "a Run is handed to the kernel as an iovec");

void admit_descendants_of(std::int32_t pid) {
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(pid), 0, 0, 0);
}

namespace {

/// process_vm_readv or process_vm_writev.
using Copy = decltype(process_vm_readv);

Result copy_runs(Copy* copy, const char* name, std::int32_t pid, std::span<const Run> theirs,
                 std::span<const Run> mine, std::size_t& copied) {
  ssize_t done = copy(pid, reinterpret_cast<const iovec*>(mine.data()), mine.size(),
                      reinterpret_cast<const iovec*>(theirs.data()), theirs.size(), 0);
  if (done < 0) return base::fail_system(name, errno);
  copied = static_cast<std::size_t>(done);
  return {};
}

/// A run in the peer that is as long as all of our runs together.
Run opposite(std::uint64_t address, std::span<const Run> mine) {
  std::size_t bytes = 0;
  for (const Run& run : mine) bytes += run.bytes;
  return {reinterpret_cast<void*>(address), bytes};
}

} // namespace

bool is_readable_by_peers(const void* address, std::size_t bytes) {
  auto* const first = static_cast<std::byte*>(const_cast<void*>(address));
  std::byte seen[2];
  const Run ends[] = {{first, 1}, {first + bytes - 1, 1}}, into[] = {{seen, sizeof seen}};
  std::size_t copied = 0;
  return read_peer(getpid(), ends, into, copied).ok() && copied == sizeof seen;
}

Result read_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> into, std::size_t& copied) {
  const Run theirs = opposite(address, into);
  return copy_runs(process_vm_readv, "process_vm_readv", pid, {&theirs, 1}, into, copied);
}

Result read_peer(std::int32_t pid, std::span<const Run> from, std::span<const Run> into,
                 std::size_t& copied) {
  return copy_runs(process_vm_readv, "process_vm_readv", pid, from, into, copied);
}

Result write_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> from, std::size_t& copied) {
  const Run theirs = opposite(address, from);
  return copy_runs(process_vm_writev, "process_vm_writev", pid, {&theirs, 1}, from, copied);
}

Result write_peer(std::int32_t pid, std::span<const Run> into, std::span<const Run> from,
                  std::size_t& copied) {
  return copy_runs(process_vm_writev, "process_vm_writev", pid, into, from, copied);
}

} // namespace near::os
