#include "os/limits.h"

#include "os/files.h"

#include <algorithm>

namespace near::os {
namespace {

// Version 1 writes the largest multiple of a page for "no limit"; values close to it also mean no limit.
constexpr std::uint64_t unlimited = 1ull << 60;

bool read_number_of(const std::string& path, std::int64_t& number) {
  return read_number(read_file(path), number);
}

// The folders of the control groups of one hierarchy that enclose this process, nearest first.
struct Hierarchy {
  bool unified = false; ///< version 2
  std::vector<std::string> controllers;
  std::vector<std::string> folders;
  bool has(std::string_view controller) const {
    return unified || std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
  }
};

// The folders of group `path` and the groups around it, under a mount whose root is the group `mounted`. A
// container sees only part of the tree, but may be told its path from the machine's root; then the mount's
// root is its group.
std::vector<std::string> enclosing(const std::string& mount_point, std::string_view mounted,
                                   std::string_view path) {
  std::string below(path);
  if (mounted != "/")
    below = path.starts_with(mounted) && (path.size() == mounted.size() || path[mounted.size()] == '/')
                ? path.substr(mounted.size())
                : std::string_view();
  while (!below.empty() && below.back() == '/') below.pop_back();
  std::vector<std::string> folders;
  for (;;) {
    folders.push_back(mount_point + below);
    if (below.empty()) return folders;
    below.resize(below.rfind('/'));
  }
}

std::vector<Hierarchy> hierarchies(const std::string& root) {
  // /proc/self/cgroup: "4:memory:/a/b" in version 1, "0::/a/b" in version 2.
  struct Group {
    std::vector<std::string_view> controllers;
    std::string_view path;
  };
  std::vector<Group> groups;
  const std::string memberships = read_file(root + "/proc/self/cgroup"),
                    mounts = read_file(root + "/proc/self/mountinfo");
  for (std::string_view line : split(memberships, '\n')) {
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    groups.push_back({split(line.substr(first + 1, second - first - 1), ','), line.substr(second + 1)});
  }
  std::vector<Hierarchy> found;
  // mountinfo: "36 35 0:30 <root> <mount point> <options> [fields] - <type> <source> <super options>"
  for (std::string_view line : split(mounts, '\n')) {
    auto words = split(line, ' ');
    auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const std::string_view type = dash[1];
    if (type != "cgroup" && type != "cgroup2") continue;
    auto options = split(dash[3], ',');
    for (const auto& group : groups) {
      bool unified = group.controllers.empty();
      if (unified != (type == "cgroup2")) continue;
      if (!unified && !std::all_of(group.controllers.begin(), group.controllers.end(), [&](const auto& name) {
            return std::find(options.begin(), options.end(), name) != options.end();
          }))
        continue;
      found.push_back({unified,
                       {group.controllers.begin(), group.controllers.end()},
                       enclosing(root + std::string(words[4]), words[3], group.path)});
    }
  }
  return found;
}

void read_cpu(const Hierarchy& hierarchy, const std::string& folder, Limits& limits) {
  std::int64_t quota = 0, period = 0; // in microseconds; a quota of -1 means no limit
  if (hierarchy.unified) {
    const std::string text = read_file(folder + "/cpu.max"); // "<quota> <period>" or "max <period>"
    const auto words = words_of(text);
    if (words.size() < 2 || !read_number(words[0], quota) || !read_number(words[1], period)) return;
  } else if (!read_number_of(folder + "/cpu.cfs_quota_us", quota) ||
             !read_number_of(folder + "/cpu.cfs_period_us", period)) {
    return;
  }
  if (quota > 0 && period > 0)
    limits.cpu.push_back({static_cast<double>(quota) / static_cast<double>(period), folder});
}

void read_memory(const Hierarchy& hierarchy, const std::string& folder, std::vector<MemoryLimit>& limits) {
  std::int64_t most = 0, used = 0;
  const char* limit_name = hierarchy.unified ? "/memory.max" : "/memory.limit_in_bytes";
  const char* used_name = hierarchy.unified ? "/memory.current" : "/memory.usage_in_bytes";
  if (!read_number_of(folder + limit_name, most) || most < 0 || static_cast<std::uint64_t>(most) >= unlimited)
    return;
  read_number_of(folder + used_name, used);
  // Cached file pages count as used, but the kernel drops them before it kills a process.
  std::int64_t cached = 0;
  const std::string statistics = read_file(folder + "/memory.stat");
  for (std::string_view line : split(statistics, '\n'))
    for (std::string_view name : {"inactive_file ", "total_inactive_file "}) {
      std::int64_t value = 0;
      if (line.starts_with(name) && read_number(line.substr(name.size()), value))
        cached = std::max(cached, value);
    }
  used -= std::min(used, cached);
  limits.push_back({static_cast<std::uint64_t>(most), static_cast<std::uint64_t>(used), folder});
}

template <class T, class Key>
const T* least(const std::vector<T>& list, Key key) {
  auto found =
      std::min_element(list.begin(), list.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
  return found == list.end() ? nullptr : &*found;
}

} // namespace

const CpuLimit* Limits::least_cpu() const {
  return least(cpu, [](const CpuLimit& limit) { return limit.cpus; });
}
const MemoryLimit* Limits::least_memory() const {
  return least(memory, [](const MemoryLimit& limit) { return limit.bytes; });
}

Limits read_limits(const std::string& root) {
  Limits limits;
  for (const auto& hierarchy : hierarchies(root)) {
    for (const auto& folder : hierarchy.folders) {
      if (hierarchy.has("cpu")) read_cpu(hierarchy, folder, limits);
      if (hierarchy.has("memory")) read_memory(hierarchy, folder, limits.memory);
    }
    if (hierarchy.has("cpuset")) {
      // The effective set of the nearest group is already within those of all enclosing groups.
      const auto& nearest = hierarchy.folders.front();
      auto text =
          read_file(nearest + (hierarchy.unified ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
      CpuSet cpus;
      if (!text.empty() && parse_cpus(text, cpus).ok() && !cpus.empty()) limits.cpuset = cpus;
    }
  }
  return limits;
}

MemoryKills read_memory_kills(const std::string& root) {
  auto count = [](const std::string& path) {
    constexpr std::string_view key = "oom_kill ";
    const std::string text = read_file(path);
    std::uint64_t number = 0;
    for (std::string_view line : split(text, '\n'))
      if (line.starts_with(key) && read_number(line.substr(key.size()), number)) return number;
    return std::uint64_t{0};
  };
  MemoryKills kills;
  kills.machine = count(root + "/proc/vmstat");
  for (const auto& hierarchy : hierarchies(root))
    if (hierarchy.has("memory"))
      for (const auto& folder : hierarchy.folders)
        kills.group += count(folder + (hierarchy.unified ? "/memory.events" : "/memory.oom_control"));
  return kills;
}

Result check_memory(std::uint64_t bytes, const std::string& root) {
  std::vector<MemoryLimit> limits;
  for (const auto& hierarchy : hierarchies(root))
    if (hierarchy.has("memory"))
      for (const auto& folder : hierarchy.folders) read_memory(hierarchy, folder, limits);
  for (const MemoryLimit& limit : limits)
    if (bytes > limit.bytes || limit.used > limit.bytes - bytes)
      return base::fail(
          base::Code::no_memory,
          "{} MiB more do not fit the memory limit of control group {}: {} of {} MiB are in use",
          (bytes + (1u << 20) - 1) >> 20, limit.group, limit.used >> 20, limit.bytes >> 20);
  constexpr std::string_view available = "MemAvailable:";
  const std::string machine = read_file(root + "/proc/meminfo");
  for (std::string_view line : split(machine, '\n')) {
    std::uint64_t kilobytes = 0;
    if (!line.starts_with(available)) continue;
    read_number(line.substr(available.size()), kilobytes);
    if (bytes >> 10 > kilobytes)
      return base::fail(base::Code::no_memory,
                        "{} MiB more than the machine's free memory, {} MiB, were asked for", bytes >> 20,
                        kilobytes >> 10);
  }
  return {};
}

} // namespace near::os
