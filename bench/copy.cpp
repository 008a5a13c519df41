// The copy kernels beside memcpy, between two processes bound to two cores: bench/README.md, "Copy kernels".
//
// An *owner* on the first core and a *copier* on the second share all buffers. One turn is
//
//   own    the copier copies again what it has copied before; the owner does nothing
//   pull   the owner writes the source, the copier copies it to its own memory
//   push   the copier writes its source and copies it to lines that the owner has read; the owner reads them
//
// and every part's time counts, since a copy leaves the next toucher of its lines something to pay. Each
// library does a few turns in a row, of which the last is measured, so that it meets the caches as it
// leaves them itself.
#include "copy/copy.h"
#include "base/atomic.h"
#include "base/result.h"
#include "os/affinity.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace near;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t least_moved = 64 * 1024; // in one measurement: small copies are done in many places
constexpr int turns = 3;                       // of a library in a round; the last is measured

enum class Task : int { nothing, write_source, read_destination, leave };

struct Shared {
  alignas(128) base::Atomic<std::uint32_t> asked;
  alignas(128) base::Atomic<std::uint32_t> answered;
  alignas(128) Task task;
  std::size_t bytes;
  double seconds;
};

Shared* shared;
std::byte *source, *destination;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double time_of(const auto& work) {
  const double start = now();
  work();
  return now() - start;
}

/// Numbers, since lines full of zeros are quicker to store on some processors: twice, round the cache, on an
/// EPYC of 2022.
struct Pattern {
  std::uint64_t words[2 * page / sizeof(std::uint64_t)];
  Pattern() {
    std::uint64_t state = 1;
    for (std::uint64_t& word : words) word = state = state * 6364136223846793005u + 1442695040888963407u;
  }
};

/// Stores to every line, other values than the last time.
void write_all(std::byte* to, std::size_t bytes) {
  static const Pattern pattern;
  static std::size_t count;
  const std::uint64_t* from = pattern.words + ++count % 64 * 8;
  for (std::size_t at = 0; at < bytes; at += page) std::memcpy(to + at, from, std::min(page, bytes - at));
}

/// As a receiver does: to memory of its own that stays in its first cache.
void read_all(const std::byte* from, std::size_t bytes) {
  alignas(page) static std::byte own[page];
  for (std::size_t at = 0; at < bytes; at += page) {
    std::memcpy(own, from + at, std::min(page, bytes - at));
    asm volatile("" : : "r"(own) : "memory"); // or the compiler would leave the copy out
  }
}

void bind_to(unsigned core) {
  os::CpuSet cores;
  cores.add(core);
  if (!os::bind_this_thread(cores).ok()) {
    std::fprintf(stderr, "bench/copy: %s\n", std::string(base::failure_text()).c_str());
    std::exit(2);
  }
}

[[noreturn]] void be_the_owner() {
  for (std::uint32_t seen = 0;;) {
    std::uint32_t asked;
    while ((asked = shared->asked.load_acquire()) == seen) base::cpu_relax();
    seen = asked;
    const std::size_t bytes = shared->bytes;
    shared->seconds = time_of([&] {
      switch (shared->task) {
      case Task::nothing: break;
      case Task::write_source: write_all(source, bytes); break;
      case Task::read_destination: read_all(destination, bytes); break;
      case Task::leave: _exit(0);
      }
    });
    shared->answered.store_release(seen);
  }
}

/// Seconds that the owner took for it.
double ask_owner(Task task, std::size_t bytes) {
  shared->task = task;
  shared->bytes = bytes;
  const std::uint32_t number = shared->asked.load_relaxed() + 1;
  shared->asked.store_release(number);
  while (shared->answered.load_acquire() != number) base::cpu_relax();
  return shared->seconds;
}

double quantile(std::vector<double> values, double which) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(which * static_cast<double>(values.size() - 1))];
}

/// Nanoseconds for one cache line one way: it tells whether the two cores share their last cache.
double line_latency() {
  std::vector<double> samples;
  for (int sample = 0; sample < 100; ++sample)
    samples.push_back(time_of([] {
      for (int i = 0; i < 50; ++i) ask_owner(Task::nothing, 0);
    }));
  return quantile(samples, 0.5) / 100 * 1e9;
}

struct Library {
  std::string name;
  std::function<void(void* to, const void* from, std::size_t bytes)> copy;
};

std::vector<Library> libraries_of(const std::string& scenario) {
  std::vector<Library> all{
      {"memcpy", [](void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); }}};
#if defined(__x86_64__)
  all.push_back({"rep movsb", [](void* to, const void* from, std::size_t n) {
                   asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
                 }});
#endif
  for (const copy::Kernel& kernel : copy::kernels())
    if (kernel.runs()) all.push_back({"streaming " + std::string(kernel.name), kernel.streaming});
  return all;
}

/// What one turn took, in seconds: the toucher before the copy, the copy, the toucher after it.
struct Turn {
  double before = 0, copy = 0, after = 0;
  double together() const { return before + copy + after; }
};

Turn do_turn(const std::string& scenario, const Library& library, std::size_t bytes, std::size_t moved) {
  Turn turn;
  if (scenario == "pull") turn.before = ask_owner(Task::write_source, moved);
  if (scenario == "push") write_all(source, moved);
  turn.copy = time_of([&] {
    for (std::size_t at = 0; at < moved; at += bytes) library.copy(destination + at, source + at, bytes);
  });
  if (scenario == "push") turn.after = ask_owner(Task::read_destination, moved);
  return turn;
}

std::string speed(std::size_t moved, const std::vector<Turn>& rows, const auto& part) {
  std::vector<double> seconds;
  for (const Turn& row : rows) seconds.push_back(part(row));
  const double median = quantile(seconds, 0.5);
  return median > 0 ? base::format("{:.1f}", static_cast<double>(moved) / median * 1e-9) : "-";
}

void compare(const std::string& scenario, std::size_t bytes, int rounds) {
  const std::vector<Library> all = libraries_of(scenario);
  const std::size_t moved = std::max(bytes, least_moved / bytes * bytes);
  std::vector<std::vector<Turn>> measured(all.size());
  const double latency = line_latency();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t who = (i + static_cast<std::size_t>(round)) % all.size();
      Turn last;
      for (int turn = 0; turn < turns; ++turn) last = do_turn(scenario, all[who], bytes, moved);
      measured[who].push_back(last);
    }

  std::printf(
      "\n%s, %zu bytes; one line one way: %.0f ns before, %.0f ns after\n\n"
      "| library | owner writes GB/s | copy GB/s | owner reads GB/s | together GB/s | time / memcpy | "
      "quartiles |\n|---|---|---|---|---|---|---|\n",
      scenario.c_str(), bytes, latency, line_latency());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<Turn>& rows = measured[i];
    std::vector<double> ratios; // within a round
    for (std::size_t round = 0; round < rows.size(); ++round)
      ratios.push_back(rows[round].together() / measured[0][round].together());
    std::printf("| %s | %s | %s | %s | %s | %.2f | %.2f to %.2f |\n", all[i].name.c_str(),
                speed(moved, rows, [](const Turn& row) { return row.before; }).c_str(),
                speed(moved, rows, [](const Turn& row) { return row.copy; }).c_str(),
                speed(moved, rows, [](const Turn& row) { return row.after; }).c_str(),
                speed(moved, rows, [](const Turn& row) { return row.together(); }).c_str(),
                quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
  }
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  std::vector<unsigned> cores{0, 1};
  std::vector<std::size_t> sizes{4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20};
  std::vector<std::string> scenarios{"own", "pull", "push"};
  int rounds = 21;
  CLI::App app("Copy kernels beside memcpy, between two cores");
  app.add_option("--cores", cores, "the owner's and the copier's core")->delimiter(',')->expected(2);
  app.add_option("--sizes", sizes, "bytes of one copy")->delimiter(',')->check(CLI::Range(64, 1 << 28));
  app.add_option("--what", scenarios, "own, pull, push")
      ->delimiter(',')
      ->check(CLI::IsMember({"own", "pull", "push"}));
  app.add_option("--rounds", rounds, "measurements of each library")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  const std::size_t most = std::max(least_moved, *std::max_element(sizes.begin(), sizes.end())) + page;
  void* memory = mmap(nullptr, page + 2 * most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::perror("bench/copy: mmap"), 2;
  shared = new (memory) Shared{};
  source = static_cast<std::byte*>(memory) + page;
  destination = source + most / page * page;
  write_all(source, most);
  write_all(destination, most / page * page);

  std::printf("kernel chosen here: %s\n", copy::kernel_name().c_str());
  std::fflush(stdout);
  const pid_t owner = fork();
  if (owner < 0) return std::perror("bench/copy: fork"), 2;
  if (owner == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bind_to(cores[0]);
    be_the_owner();
  }
  bind_to(cores[1]);
  for (const std::string& scenario : scenarios)
    for (std::size_t bytes : sizes) compare(scenario, bytes, rounds);
  ask_owner(Task::nothing, 0);
  shared->task = Task::leave;
  shared->asked.store_release(shared->asked.load_relaxed() + 1);
  waitpid(owner, nullptr, 0);
}
