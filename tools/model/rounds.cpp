// See rounds.h.
#include "model/rounds.h"

#include <algorithm>
#include <limits>

namespace near::model {
namespace {

/// Whether everything repeats after `block` ranks.
bool repeats(const std::vector<Hop>& hops, const std::vector<double>& ready, std::size_t block) {
  if (block == 0 || hops.size() % block != 0) return false;
  for (std::size_t i = block; i < hops.size(); ++i)
    if (!(hops[i] == hops[i - block]) || ready[i] != ready[i - block]) return false;
  return true;
}

/// The hops as arrays, so that the compiler can do several at once.
struct Arrays {
  std::vector<double> announce, receiver, answer, leaves, arrives, after;
  explicit Arrays(const std::vector<Hop>& hops, std::size_t count) {
    constexpr double never = -std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < count; ++i) {
      announce.push_back(hops[i].announce);
      receiver.push_back(hops[i].waits ? 0 : never);
      answer.push_back(hops[i].waits ? hops[i].answer : 0);
      leaves.push_back(hops[i].leaves);
      arrives.push_back(hops[i].arrives);
      after.push_back(hops[i].after);
    }
  }
};

} // namespace

void go_round(const std::vector<Hop>& hops, std::vector<double>& ready, int rounds, std::size_t block) {
  const std::size_t all = hops.size();
  const std::size_t count = repeats(hops, ready, 1) ? 1 : repeats(hops, ready, block) ? block : all;
  const Arrays of(hops, count);
  // One more element on each side: the ring is closed, as is a repeated block.
  std::vector<double> now(count + 1), starts(count + 1);
  std::copy_n(ready.begin(), count, now.begin());
  for (int round = 0; round < rounds; ++round) {
    now[count] = now[0];
    double* const started = starts.data() + 1;
    for (std::size_t i = 0; i < count; ++i)
      started[i] = std::max(now[i] + of.announce[i], now[i + 1] + of.receiver[i]) + of.answer[i];
    starts[0] = started[count - 1];
    now[0] = std::max(started[0] + of.leaves[0], starts[0] + of.arrives[count - 1]) + of.after[0];
    for (std::size_t i = 1; i < count; ++i)
      now[i] = std::max(started[i] + of.leaves[i], starts[i] + of.arrives[i - 1]) + of.after[i];
  }
  for (std::size_t i = 0; i < all; ++i) ready[i] = now[i % count];
}

} // namespace near::model
