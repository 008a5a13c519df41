// The functions of include/near.h, which are not part of the MPI standard.
#include <near.h>

#include "abi/types.h"
#include "transport/transport.h"

using near::segment::Path;

namespace {
/// The last path leads to other machines.
constexpr int path_count = static_cast<int>(near::segment::paths) + 1, network = path_count - 1;
} // namespace

#define NEAR_EXPORT extern "C" __attribute__((visibility("default")))

NEAR_EXPORT int near_traffic_paths() { return path_count; }

NEAR_EXPORT const char* near_traffic_name(int path) {
  if (path == network) return "network";
  return path >= 0 && path < network ? near::segment::path_name(static_cast<Path>(path)) : nullptr;
}

NEAR_EXPORT int near_traffic(int path, std::uint64_t* messages, std::uint64_t* bytes) {
  if (path < 0 || path >= path_count) return MPI_ERR_ARG;
  if (!near::transport::running()) return MPI_ERR_OTHER;
  auto sent = path == network ? near::transport::own_sent_elsewhere()
                              : near::transport::own_traffic(static_cast<Path>(path));
  if (messages) *messages = sent.messages;
  if (bytes) *bytes = sent.bytes;
  return MPI_SUCCESS;
}
