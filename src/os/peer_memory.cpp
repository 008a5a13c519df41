#include "os/peer_memory.h"

#include <cerrno>
#include <sys/prctl.h>
#include <sys/uio.h>

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

Result copy_runs(Copy* copy, const char* name, std::int32_t pid, std::uint64_t address,
                 std::span<const Run> runs, std::size_t& copied) {
  std::size_t wanted = 0;
  for (const Run& run : runs) wanted += run.bytes;
  iovec remote{reinterpret_cast<void*>(address), wanted};
  ssize_t done = copy(pid, reinterpret_cast<const iovec*>(runs.data()), runs.size(), &remote, 1, 0);
  if (done < 0) return base::fail_system(name, errno);
  copied = static_cast<std::size_t>(done);
  return {};
}

} // namespace

Result read_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> into, std::size_t& copied) {
  return copy_runs(process_vm_readv, "process_vm_readv", pid, address, into, copied);
}

Result write_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> from, std::size_t& copied) {
  return copy_runs(process_vm_writev, "process_vm_writev", pid, address, from, copied);
}

} // namespace near::os
