#include "os/lease.h"

#include "os/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace near::os {
namespace {

using base::Code;
using base::fail;
using base::fail_system;

constexpr const char* file_name = "nearmpi-leases";

/// A row of the file.
struct Row {
  std::uint64_t process;
  std::uint64_t space; ///< the process namespace of `process`
  std::array<std::uint64_t, 510> cpus;
};
static_assert(sizeof(Row) == 4096);
constexpr off_t most_rows = 4096;
/// The byte whose lock planners hold; far beyond the rows.
constexpr off_t planning_byte = off_t{1} << 40;

/// The lease of this process. It lasts as long as the file is open.
struct Held {
  int folder = -1, file = -1;
  off_t row = 0;
  std::string made; ///< the folder, if LeasePlanning created it
} held;

struct flock range(short type, off_t begin, off_t bytes) {
  struct flock made{};
  made.l_type = type;
  made.l_whence = SEEK_SET;
  made.l_start = begin;
  made.l_len = bytes;
  return made;
}

bool lock(int file, off_t begin, off_t bytes) {
  auto wanted = range(F_WRLCK, begin, bytes);
  return fcntl(file, F_OFD_SETLK, &wanted) == 0;
}

void unlock(int file, off_t begin, off_t bytes) {
  auto given = range(F_UNLCK, begin, bytes);
  fcntl(file, F_OFD_SETLK, &given);
}

/// The first row at or after `row` that another process holds; most_rows if there is none.
off_t next_held(int file, off_t row) {
  constexpr off_t bytes = sizeof(Row);
  off_t found = most_rows;
  // The kernel reports any of the locks in the range, not the first one, so the rows before it are queried
  // again.
  while (row < found) {
    auto asked = range(F_WRLCK, row * bytes, (found - row) * bytes);
    if (fcntl(file, F_OFD_GETLK, &asked) != 0 || asked.l_type == F_UNLCK) break;
    found = std::max(row, asked.l_start / bytes);
  }
  return found;
}

std::uint64_t process_space() {
  struct stat status{};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/// Whether this user has a user number of its own. In a user namespace all users without a mapping share one
/// number, so a file with that owner may belong to any of them.
bool is_known(uid_t user) {
  uid_t unknown = 65534;
  read_number(read_file("/proc/sys/kernel/overflowuid"), unknown);
  const std::string map = read_file("/proc/self/uid_map"); // "<first inside> <first outside> <count>"
  const auto words = words_of(map);
  std::uint64_t count = 0;
  bool whole = words.size() >= 3 && words[0] == "0" && words[1] == "0" && read_number(words[2], count) &&
               count >= UINT32_MAX;
  return whole || user != unknown;
}

/// Opens a file or folder that belongs to this user and is closed to group and others. Fails with
/// Code::refused if it belongs to another user. `shown` is its name in messages.
Result open_own(int folder, const std::string& path, const std::string& shown, int flags, mode_t kind,
                int& opened) {
  const uid_t user = geteuid();
  int made = openat(folder, path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  const int error = errno;
  struct stat status{};
  bool seen = made >= 0 ? fstat(made, &status) == 0
                        : fstatat(folder, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  bool own = seen && status.st_uid == user;
  if (made >= 0 && own && (status.st_mode & S_IFMT) == kind && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
    opened = made;
    return {};
  }
  if (made >= 0) close(made);
  if (seen && !own)
    return fail(Code::refused, "{} belongs to user {}, not to user {}", shown, status.st_uid, user);
  if (made < 0) return fail_system("open", error, shown);
  if (!seen) return fail(Code::system, "{} cannot be inspected", shown);
  return fail(Code::invalid, "{} is open to others than its owner, or is not what it should be", shown);
}

bool make_folder(const std::string& path) { return mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST; }

Result make_folder(const LeaseFolder& folder) {
  if (make_folder(folder.path)) return {};
  if (errno == ENOENT && folder.parent_is_made &&
      make_folder(folder.path.substr(0, folder.path.rfind('/'))) && make_folder(folder.path))
    return {};
  return fail_system("mkdir", errno, folder.path);
}

Result open_folder(const LeaseFolder& folder, int& opened) {
  if (folder.is_made) NEAR_TRY(make_folder(folder));
  return open_own(AT_FDCWD, folder.path, folder.path, O_RDONLY | O_DIRECTORY, S_IFDIR, opened);
}

/// Whether the open file still has its name; the last job to end may have removed it.
bool is_there(int folder, int file) {
  struct stat opened{}, named{};
  return fstat(file, &opened) == 0 && fstatat(folder, file_name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// Whether a folder has been removed. A network file system may refuse to say anything about such a folder.
bool is_removed(int folder) {
  struct stat status{};
  return fstat(folder, &status) != 0 || status.st_nlink == 0;
}

/// Waits until no other process plans, for at most a second; `alone` is false if another process still plans
/// then. Fails if the file system or a sandbox refuses locks.
Result wait_to_plan(int file, const std::string& shown, bool& alone) {
  constexpr timespec pause{0, 2'000'000};
  constexpr int patience = 500;
  alone = false;
  for (int i = 0; i < patience; ++i) {
    alone = lock(file, planning_byte, 1);
    if (alone) return {};
    if (errno != EAGAIN && errno != EACCES) return fail_system("fcntl(F_OFD_SETLK)", errno, shown);
    nanosleep(&pause, nullptr);
  }
  return {};
}

/// Closes both. Before that, removes the file if it contains no lease, and the
/// folder if it was created for the file. Removes nothing while another process
/// plans, since that process would continue with a file without a name.
void leave(int& folder, int& file, const std::string& made) {
  bool last = file >= 0 && lock(file, planning_byte, 1) && next_held(file, 0) == most_rows;
  bool removed = last && is_there(folder, file) && unlinkat(folder, file_name, 0) == 0;
  // Before the folder is removed, since NFS keeps a removed file in its folder while it is open.
  if (file >= 0) close(file);
  if (removed && !made.empty()) rmdir(made.c_str());
  if (folder >= 0) close(folder);
  folder = file = -1;
}

/// The value of a variable that holds an absolute path; nullptr if it holds none.
const char* path_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : nullptr;
}

} // namespace

std::vector<LeaseFolder> lease_folders() {
  const uid_t user = geteuid();
  std::vector<LeaseFolder> folders;
  if (const char* told = path_from("XDG_RUNTIME_DIR")) folders.push_back({told});
  folders.push_back({base::format("/run/user/{}", user)});
  if (user == 0) folders.push_back({.path = "/run/nearmpi", .is_made = true});
  const char *cache = path_from("XDG_CACHE_HOME"), *home = path_from("HOME");
  const std::string boot = boot_id();
  if ((cache != nullptr || home != nullptr) && !boot.empty())
    folders.push_back({.path = base::format("{}/nearmpi-{}",
                                            cache != nullptr ? cache : std::string(home) + "/.cache", boot),
                       .is_made = true,
                       .parent_is_made = true});
  folders.push_back({.path = base::format("/tmp/nearmpi-{}", user), .is_made = true});
  return folders;
}

/// Opens the folder and the file in it, and waits to plan. `again` is true if this failed because another job
/// has removed what was opened.
Result LeasePlanning::open(const LeaseFolder& folder, bool& again) {
  again = false;
  NEAR_TRY(open_folder(folder, folder_));
  const std::string shown = folder.path + "/" + file_name;
  Result opened = open_own(folder_, file_name, shown, O_RDWR | O_CREAT, S_IFREG, file_);
  if (!opened.ok()) {
    again = is_removed(folder_);
    return opened;
  }
  bool alone = false;
  NEAR_TRY(wait_to_plan(file_, shown, alone));
  again = !is_there(folder_, file_);
  if (again) return fail(Code::gone, "{} was removed", shown);
  if (!alone)
    intrusion_ =
        base::format("another mpiexec of yours has not unlocked {} for a second; end or continue it", shown);
  return {};
}

LeasePlanning::LeasePlanning(const std::vector<LeaseFolder>& folders) {
  if (!is_known(geteuid())) {
    problem_ = base::format(
        "user ID {} is the overflow ID of this user namespace, so several users may have it", geteuid());
    return;
  }
  for (const auto& folder : folders) {
    made_ = folder.is_made ? folder.path : "";
    // Until we hold the lock, another job may remove what we have opened; then we try again.
    constexpr int attempts = 10;
    bool again = true;
    for (int attempt = 0; again && attempt < attempts; ++attempt) {
      intrusion_.clear();
      Result opened = open(folder, again);
      if (opened.ok()) {
        problem_.clear();
        return;
      }
      problem_ = base::failure_text();
      if (opened.is(Code::refused))
        intrusion_ =
            problem_ + "; have it removed, or set XDG_RUNTIME_DIR to a folder that only you can open";
      if (file_ >= 0) close(file_);
      if (folder_ >= 0) close(folder_);
      folder_ = file_ = -1;
    }
  }
}

LeasePlanning::~LeasePlanning() { leave(folder_, file_, made_); }

std::vector<Lease> LeasePlanning::others() const {
  std::vector<Lease> found;
  if (file_ < 0) return found;
  const std::uint64_t space = process_space();
  for (off_t row = 0; (row = next_held(file_, row)) < most_rows; ++row) {
    Row read{};
    if (pread(file_, &read, sizeof read, row * static_cast<off_t>(sizeof read)) != sizeof read) continue;
    Lease lease;
    if (read.space == space && read.process < INT32_MAX) lease.owner = static_cast<Pid>(read.process);
    for (unsigned cpu = 0; cpu < read.cpus.size() * 64; ++cpu)
      if ((read.cpus[cpu / 64] >> cpu % 64 & 1) != 0) lease.cpus.add(cpu);
    bool own = lease.owner != 0 && descends_from(getpid(), lease.owner);
    if (!lease.cpus.empty() && !own) found.push_back(std::move(lease));
  }
  return found;
}

void LeasePlanning::take(const CpuSet& cpus) {
  if (file_ < 0 || held.file >= 0) return;
  Row own{};
  own.process = static_cast<std::uint64_t>(getpid());
  own.space = process_space();
  for (std::size_t i = 0; i < std::min(own.cpus.size(), cpus.words().size()); ++i)
    own.cpus[i] = cpus.words()[i];
  constexpr off_t bytes = sizeof own;
  for (off_t row = 0; row < most_rows; ++row) {
    if (next_held(file_, row) == row || !lock(file_, row * bytes, bytes)) continue;
    if (pwrite(file_, &own, sizeof own, row * bytes) != bytes) {
      unlock(file_, row * bytes, bytes);
      return;
    }
    unlock(file_, planning_byte, 1);
    held = {std::exchange(folder_, -1), std::exchange(file_, -1), row, made_};
    return;
  }
}

void end_lease() {
  if (held.file < 0) return;
  unlock(held.file, held.row * static_cast<off_t>(sizeof(Row)), sizeof(Row));
  leave(held.folder, held.file, held.made);
}

} // namespace near::os
