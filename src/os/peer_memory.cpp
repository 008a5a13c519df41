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

std::size_t bytes_of(std::span<const Run> runs) {
  std::size_t bytes = 0;
  for (const Run& run : runs) bytes += run.bytes;
  return bytes;
}

} // namespace

Result read_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> into, std::size_t& copied) {
  iovec remote{reinterpret_cast<void*>(address), bytes_of(into)};
  ssize_t done =
      process_vm_readv(pid, reinterpret_cast<const iovec*>(into.data()), into.size(), &remote, 1, 0);
  if (done < 0) return base::fail_system("process_vm_readv", errno);
  copied = static_cast<std::size_t>(done);
  return {};
}

Result write_peer(std::int32_t pid, std::uint64_t address, std::span<const Run> from, std::size_t& copied) {
  iovec remote{reinterpret_cast<void*>(address), bytes_of(from)};
  ssize_t done =
      process_vm_writev(pid, reinterpret_cast<const iovec*>(from.data()), from.size(), &remote, 1, 0);
  if (done < 0) return base::fail_system("process_vm_writev", errno);
  copied = static_cast<std::size_t>(done);
  return {};
}

} // namespace near::os
