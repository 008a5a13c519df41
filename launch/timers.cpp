#include "launch/timers.h"

#include <algorithm>

namespace near::launch {

std::vector<Timers::Entry>::iterator Timers::find(Timer timer, unsigned rank) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.timer == timer && entry.rank == rank; });
}

void Timers::set(Timer timer, std::uint64_t due_ns, unsigned rank) {
  if (auto at = find(timer, rank); at != entries_.end())
    at->due_ns = due_ns;
  else
    entries_.push_back({due_ns, timer, rank});
}

void Timers::cancel(Timer timer, unsigned rank) {
  if (auto at = find(timer, rank); at != entries_.end()) entries_.erase(at);
}

bool Timers::is_set(Timer timer, unsigned rank) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.timer == timer && entry.rank == rank; });
}

void Timers::advance(Timer timer, std::uint64_t due_ns, unsigned rank) {
  if (auto at = find(timer, rank); at != entries_.end()) at->due_ns = due_ns;
}

void Timers::keep_only(Timer timer) {
  std::erase_if(entries_, [timer](const Entry& entry) { return entry.timer != timer; });
}

std::uint64_t Timers::next_ns() const {
  auto next = std::min_element(entries_.begin(), entries_.end());
  return next == entries_.end() ? never : next->due_ns;
}

bool Timers::take(std::uint64_t now_ns, Due& due) {
  auto next = std::min_element(entries_.begin(), entries_.end());
  if (next == entries_.end() || next->due_ns > now_ns) return false;
  due = {next->timer, next->rank};
  entries_.erase(next);
  return true;
}

} // namespace near::launch
