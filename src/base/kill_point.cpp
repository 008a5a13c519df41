#include "base/kill_point.h"

#ifdef NEAR_KILL_POINTS

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unistd.h>

namespace near::base {
namespace {

/// What NEAR_KILL_AT requests of this process; read before the library unsets its start-up variables.
struct Order {
  std::string_view label;
  std::uint64_t count = 1;
  const char* rank = std::getenv("NEAR_BOOT_RANK"); // not set in a launcher, which is never killed here
  bool report = false;

  Order() {
    const char* text = std::getenv("NEAR_KILL_AT");
    if (text == nullptr || rank == nullptr) return;
    rank = strdup(rank);
    std::string_view rest(text);
    report = rest == "report";
    auto colon = rest.find(':');
    if (report || colon == std::string_view::npos) return;
    auto name = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (error != std::errc{}) return;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty() || rest.substr(1) == rank) label = *new std::string(name);
  }
};

const Order& order() {
  static const Order& read = *new Order;
  return read;
}
[[maybe_unused]] const Order& read_at_start = order();

std::mutex& list_lock() {
  static std::mutex& lock = *new std::mutex;
  return lock;
}
KillPoint* all_points = nullptr; // under list_lock

} // namespace

/// Prints the report when the process ends normally.
struct KillReport {
  ~KillReport() {
    if (!order().report) return;
    for (KillPoint* point = all_points; point != nullptr; point = point->next_) {
      char line[160];
      int length =
          std::snprintf(line, sizeof line, "kill-point %s reached %llu times by rank %s\n", point->label_,
                        static_cast<unsigned long long>(point->times_.load_relaxed()), order().rank);
      if (write(2, line, static_cast<std::size_t>(length)) < 0) return;
    }
  }
};

namespace {
const KillReport report_at_end;
}

KillPoint::KillPoint(const char* label)
    : label_(label), counts_(order().report || order().label == label), kills_(!order().report) {
  std::lock_guard hold(list_lock());
  next_ = all_points;
  all_points = this;
}

void KillPoint::count() {
  if (times_.add_relaxed(1) + 1 != order().count || !kills_) return;
  for (;;) kill(getpid(), SIGKILL);
}

} // namespace near::base

#endif
