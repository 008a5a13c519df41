#include "os/affinity.h"

#include "os/clock.h"
#include "os/files.h"

#include <bit>
#include <cerrno>
#include <charconv>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace near::os {
namespace {
constexpr unsigned word_bits = 64;
constexpr unsigned most_cpus = 1u << 20; // guards against typos that would need terabytes
} // namespace

void CpuSet::add(unsigned cpu) {
  if (cpu / word_bits >= words_.size()) words_.resize(cpu / word_bits + 1);
  words_[cpu / word_bits] |= 1ull << cpu % word_bits;
}

void CpuSet::add_range(unsigned first, unsigned last) {
  for (unsigned cpu = first; cpu <= last; ++cpu) add(cpu);
}

void CpuSet::remove(unsigned cpu) {
  if (has(cpu)) words_[cpu / word_bits] &= ~(1ull << cpu % word_bits);
}

bool CpuSet::has(unsigned cpu) const {
  return cpu / word_bits < words_.size() && (words_[cpu / word_bits] >> cpu % word_bits & 1) != 0;
}

unsigned CpuSet::count() const {
  unsigned total = 0;
  for (auto word : words_) total += static_cast<unsigned>(std::popcount(word));
  return total;
}

int CpuSet::first() const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (words_[i] != 0) return static_cast<int>(i * word_bits) + std::countr_zero(words_[i]);
  return -1;
}

std::vector<unsigned> CpuSet::members() const {
  std::vector<unsigned> list;
  for (unsigned cpu = 0; cpu < words_.size() * word_bits; ++cpu)
    if (has(cpu)) list.push_back(cpu);
  return list;
}

CpuSet CpuSet::operator&(const CpuSet& other) const {
  CpuSet both;
  both.words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < both.words_.size(); ++i) both.words_[i] = words_[i] & other.words_[i];
  return both;
}

CpuSet CpuSet::operator|(const CpuSet& other) const {
  CpuSet either = words_.size() >= other.words_.size() ? *this : other;
  const CpuSet& shorter = words_.size() >= other.words_.size() ? other : *this;
  for (std::size_t i = 0; i < shorter.words_.size(); ++i) either.words_[i] |= shorter.words_[i];
  return either;
}

bool CpuSet::operator==(const CpuSet& other) const { return members() == other.members(); }

std::string CpuSet::text() const {
  std::string text;
  auto list = members();
  for (std::size_t i = 0; i < list.size();) {
    std::size_t end = i;
    while (end + 1 < list.size() && list[end + 1] == list[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(list[i]);
    if (end > i) text += '-' + std::to_string(list[end]);
    i = end + 1;
  }
  return text;
}

Result parse_cpus(std::string_view text, CpuSet& cpus) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  CpuSet made;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    unsigned first = 0;
    auto [after, error] = std::from_chars(at, end, first);
    unsigned last = first;
    if (error == std::errc{} && after != end && *after == '-') {
      auto second = std::from_chars(after + 1, end, last);
      after = second.ptr;
      error = second.ec;
    }
    if (error != std::errc{} || last < first || last >= most_cpus || (after != end && *after != ','))
      return base::fail(base::Code::invalid, "'{}' is not a list of processors such as 0-3,8", text);
    made.add_range(first, last);
    at = after == end ? end : after + 1;
  }
  cpus = std::move(made);
  return {};
}

bool idle_time(const CpuSet& cpus, std::uint64_t& idle_ns) {
  // A row is: cpuN user nice system idle iowait irq softirq steal ...
  constexpr std::size_t idle = 4, iowait = 5, steal = 8;
  const std::string text = read_file("/proc/stat");
  std::uint64_t ticks = 0;
  unsigned left = cpus.count();
  for (std::size_t at = text.find("\ncpu"); at != std::string::npos && left != 0;
       at = text.find("\ncpu", at + 1)) {
    const std::string_view row = std::string_view(text).substr(at + 1, text.find('\n', at + 1) - at - 1);
    unsigned cpu = 0;
    if (!read_number(row.substr(3), cpu) || !cpus.has(cpu)) continue;
    const std::vector<std::string_view> words = words_of(row);
    for (const std::size_t column : {idle, iowait, steal}) {
      std::uint64_t of_column = 0;
      if (words.size() <= column || !read_number(words[column], of_column)) return false;
      ticks += of_column;
    }
    --left;
  }
  idle_ns = ticks * (second_ns / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
  return left == 0;
}

Result affinity_of(std::int32_t tid, CpuSet& cpus) {
  const int error = read_affinity(tid, cpus);
  if (error != 0) return base::fail_system("sched_getaffinity", error);
  return {};
}

int read_affinity(std::int32_t tid, CpuSet& cpus) {
  // The kernel refuses a mask that is shorter than its own, and does not report the length of its own.
  for (std::size_t words = 16; words <= most_cpus / word_bits; words *= 2) {
    std::vector<std::uint64_t> mask(words);
    long got = syscall(SYS_sched_getaffinity, tid, words * sizeof(std::uint64_t), mask.data());
    if (got < 0 && errno == EINVAL) continue;
    if (got < 0) return errno;
    CpuSet made;
    for (unsigned cpu = 0; cpu < words * word_bits; ++cpu)
      if (mask[cpu / word_bits] >> cpu % word_bits & 1) made.add(cpu);
    cpus = std::move(made);
    return 0;
  }
  return EINVAL;
}

Result bind_this_thread(const CpuSet& cpus) {
  if (syscall(SYS_sched_setaffinity, 0, cpus.words().size() * sizeof(std::uint64_t), cpus.words().data()) < 0)
    return base::fail_system("sched_setaffinity", errno, "processors " + cpus.text());
  return {};
}

Result prefer_local_memory() {
  if (syscall(SYS_set_mempolicy, MPOL_LOCAL, nullptr, 0) < 0)
    return base::fail_system("set_mempolicy", errno, "MPOL_LOCAL");
  return {};
}

bool has_memory_policy() {
  int mode = MPOL_DEFAULT;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 && mode != MPOL_DEFAULT;
}

} // namespace near::os
