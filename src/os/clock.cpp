#include "os/clock.h"

#include "base/result.h"

#include <ctime>

namespace near::os {

namespace {

std::uint64_t time_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now); // leaves 0 if there is no such clock
  return static_cast<std::uint64_t>(now.tv_sec) * second_ns + static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace

std::uint64_t monotonic_ns() { return time_of(CLOCK_MONOTONIC); }

std::uint64_t process_cpu_ns(std::int32_t pid) {
  clockid_t clock{};
  return clock_getcpuclockid(pid, &clock) == 0 ? time_of(clock) : 0;
}

std::string time_text() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  return base::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}", parts.tm_year + 1900, parts.tm_mon + 1,
                      parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_nsec / 1'000'000);
}

} // namespace near::os
