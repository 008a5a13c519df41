#include "os/lease.h"

#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace near::os {
namespace {

std::string prefix_of(unsigned user) { return base::format("nearmpi/{}/", user); }

/// A socket with this abstract name, close-on-exec; -1 when there is one already, or sockets are forbidden.
int hold_name(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return -1;
  name.copy(address.sun_path + 1, name.size()); // the first character, 0, makes it abstract
  int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(made, reinterpret_cast<const sockaddr*>(&address), length) == 0) return made;
  int error = errno;
  close(made);
  errno = error;
  return -1;
}

/// "0-3,8,12" in pieces of at most `room` characters, cut at commas.
std::vector<std::string> pieces_of(const std::string& text, std::size_t room) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  while (text.size() - begin > room) {
    std::size_t comma = text.rfind(',', begin + room);
    pieces.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

} // namespace

std::vector<Lease> leases_in(std::istream& list, unsigned user) {
  std::vector<Lease> found;
  std::string mark = " @" + prefix_of(user);
  for (std::string line; std::getline(list, line);) {
    auto at = line.find(mark);
    if (at == std::string::npos) continue;
    const char* end = line.data() + line.size();
    Lease lease;
    auto [slash, error] = std::from_chars(line.data() + at + mark.size(), end, lease.owner);
    if (error != std::errc{} || slash == end || *slash != '/' || lease.owner <= 0) continue;
    // Others of this user's programs may have such a name too: what makes no sense is none of ours.
    if (!parse_cpus({slash + 1, static_cast<std::size_t>(end - slash - 1)}, lease.cpus).ok() ||
        lease.cpus.empty())
      continue;
    auto same = [&lease](const Lease& other) { return other.owner == lease.owner; };
    if (auto known = std::find_if(found.begin(), found.end(), same); known != found.end())
      known->cpus = known->cpus | lease.cpus;
    else
      found.push_back(std::move(lease));
  }
  return found;
}

LeasePlanning::LeasePlanning() {
  constexpr timespec pause{0, 2'000'000};
  constexpr int patience = 500;
  std::string name = prefix_of(getuid()) + "planning";
  for (int i = 0; i < patience; ++i) {
    lock_ = hold_name(name);
    if (lock_ >= 0 || errno != EADDRINUSE) return;
    nanosleep(&pause, nullptr);
  }
}

LeasePlanning::~LeasePlanning() {
  if (lock_ >= 0) close(lock_);
}

std::vector<Lease> LeasePlanning::others() const {
  std::ifstream list("/proc/net/unix");
  std::vector<Lease> found = leases_in(list, getuid());
  std::erase_if(found, [](const Lease& lease) { return descends_from(getpid(), lease.owner); });
  return found;
}

void LeasePlanning::take(const CpuSet& cpus) const {
  std::string name = prefix_of(getuid()) + std::to_string(getpid()) + "/";
  constexpr std::size_t room = sizeof(sockaddr_un::sun_path) - 1;
  // The descriptors stay open: that is the lease.
  for (const auto& piece : pieces_of(cpus.text(), room - name.size())) hold_name(name + piece);
}

} // namespace near::os
