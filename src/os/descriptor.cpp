#include "os/descriptor.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace near::os {

Result identify(int descriptor, FileIdentity& identity) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0)
    return base::fail_system("fstat", errno, base::format("descriptor {}", descriptor));
  identity = {status.st_dev, status.st_ino};
  return {};
}

Transfer read_some(int descriptor, char* buffer, std::size_t capacity, std::size_t& bytes) {
  ssize_t got;
  do got = read(descriptor, buffer, capacity);
  while (got < 0 && errno == EINTR);
  if (got > 0) {
    bytes = static_cast<std::size_t>(got);
    return Transfer::some;
  }
  if (got == 0) return Transfer::ended;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Transfer::nothing_now : Transfer::failed;
}

namespace {

/// Calls `once(data, bytes)`, which writes, until nothing is left.
template <class Once>
Result write_until_done(int descriptor, const char* data, std::size_t bytes, Once&& once) {
  while (bytes > 0) {
    ssize_t wrote = once(data, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      // Another process that shares the file description has made it non-blocking; wait as if it had not.
      pollfd ready{descriptor, POLLOUT, 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (wrote < 0 && (errno == EPIPE || errno == ECONNRESET))
      return base::fail(base::Code::gone, "nobody reads any more");
    if (wrote <= 0) return base::fail(base::Code::system, "{}", strerror(wrote < 0 ? errno : EIO));
    data += wrote;
    bytes -= static_cast<std::size_t>(wrote);
  }
  return {};
}

} // namespace

Result write_all(int descriptor, const char* data, std::size_t bytes) {
  return write_until_done(descriptor, data, bytes,
                          [&](const char* at, std::size_t left) { return write(descriptor, at, left); });
}

Result send_all(int descriptor, const char* data, std::size_t bytes) {
  return write_until_done(descriptor, data, bytes, [&](const char* at, std::size_t left) {
    return send(descriptor, at, left, MSG_NOSIGNAL);
  });
}

// Not F_OFD_SETLKW, since the processes of a job inherit one open file description.
FileLock::FileLock(int descriptor) : descriptor_(descriptor) {
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  while (descriptor_ >= 0 && fcntl(descriptor_, F_SETLKW, &wanted) != 0)
    if (errno != EINTR) descriptor_ = -1;
}

FileLock::~FileLock() {
  struct flock given{};
  given.l_type = F_UNLCK;
  given.l_whence = SEEK_SET;
  if (descriptor_ >= 0) fcntl(descriptor_, F_SETLK, &given);
}

Transfer write_some(int descriptor, const char* data, std::size_t size, std::size_t& bytes) {
  ssize_t wrote;
  do wrote = write(descriptor, data, size);
  while (wrote < 0 && errno == EINTR);
  if (wrote >= 0) {
    bytes = static_cast<std::size_t>(wrote);
    return Transfer::some;
  }
  if (errno == EPIPE) return Transfer::ended;
  return errno == EAGAIN || errno == EWOULDBLOCK ? Transfer::nothing_now : Transfer::failed;
}

bool wait_for_transfer(int source, std::span<Outlet> outlets) {
  std::vector<pollfd> asked{{source, POLLIN, 0}};
  for (const auto& outlet : outlets)
    asked.push_back({outlet.descriptor, static_cast<short>(outlet.wanted ? POLLOUT : 0), 0});
  while (poll(asked.data(), asked.size(), -1) < 0 && errno == EINTR) {}
  for (std::size_t i = 0; i < outlets.size(); ++i) {
    outlets[i].ready = (asked[i + 1].revents & POLLOUT) != 0;
    outlets[i].gone = (asked[i + 1].revents & (POLLERR | POLLNVAL)) != 0;
  }
  return asked[0].revents != 0;
}

namespace {

/// Makes a pipe whose end `eager` (0 or 1) is non-blocking.
Result make_pipe_with(std::size_t eager, int (&ends)[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) return base::fail_system("pipe2", errno);
  // O_NONBLOCK belongs to the file description. Each end has its own, so the other end is not affected.
  if (fcntl(ends[eager], F_SETFL, O_NONBLOCK) == 0) return {};
  int error = errno;
  close(ends[0]);
  close(ends[1]);
  return base::fail_system("fcntl", error, "O_NONBLOCK");
}

} // namespace

Result make_pipe(int& read_end, int& write_end) {
  int ends[2];
  NEAR_TRY(make_pipe_with(0, ends));
  read_end = ends[0];
  write_end = ends[1];
  return {};
}

Result make_sockets(int& own, int& other) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return base::fail_system("socketpair", errno);
  own = ends[0];
  other = ends[1];
  if (fcntl(own, F_SETFL, O_NONBLOCK) == 0) return {};
  int error = errno;
  close(own);
  close(other);
  return base::fail_system("fcntl", error, "O_NONBLOCK");
}

Result make_input_pipe(int& read_end, int& write_end) {
  int ends[2];
  NEAR_TRY(make_pipe_with(1, ends));
  read_end = ends[0];
  write_end = ends[1];
  return {};
}

Result open_output_file(const std::string& name, int& descriptor) {
  // O_NONBLOCK, because opening a named pipe without a reader would otherwise wait for one.
  int made = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (made < 0) {
    int error = errno;
    struct stat status{};
    if (error == ENXIO && stat(name.c_str(), &status) == 0 && S_ISFIFO(status.st_mode))
      return base::fail(base::Code::gone, "nobody reads the pipe '{}'", name);
    return base::fail(base::Code::system, "cannot write '{}': {}", name, strerror(error));
  }
  // The ranks that write to it expect a blocking descriptor.
  int flags = fcntl(made, F_GETFL);
  if (flags < 0 || fcntl(made, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    int error = errno;
    close(made);
    return base::fail_system("fcntl", error, base::format("'{}'", name));
  }
  descriptor = made;
  return {};
}

Result empty_file(int descriptor, const std::string& name) {
  struct stat status{};
  if (fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode)) return {};
  if (ftruncate(descriptor, 0) != 0)
    return base::fail(base::Code::system, "cannot empty '{}': {}", name, strerror(errno));
  return {};
}

void close_on_exec(int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

void redirect(int input, int output, int error) {
  dup2(input, 0);
  dup2(output, 1);
  dup2(error, 2);
}

void fill_standard_descriptors() {
  for (int descriptor : {0, 1, 2})
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
}

Result open_null(int& descriptor) {
  int made = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (made < 0) return base::fail_system("open", errno, "/dev/null");
  descriptor = made;
  return {};
}

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }
bool is_controlling_terminal(int descriptor) { return isatty(descriptor) == 1 && tcgetpgrp(descriptor) >= 0; }
bool is_foreground_terminal(int descriptor) {
  return isatty(descriptor) == 1 && tcgetpgrp(descriptor) == getpgrp();
}

bool wait_until_readable(std::span<const int> descriptors, std::uint64_t timeout_ns) {
  std::vector<pollfd> polled;
  polled.reserve(descriptors.size());
  for (int each : descriptors) polled.push_back({each, POLLIN, 0});
  constexpr std::uint64_t second = 1'000'000'000;
  const timespec timeout{static_cast<time_t>(timeout_ns / second), static_cast<long>(timeout_ns % second)};
  return ppoll(polled.data(), polled.size(), &timeout, nullptr) > 0;
}

} // namespace near::os
