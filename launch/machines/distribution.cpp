#include "machines/distribution.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace near::machines {
namespace {

/// Every machine in turn takes its number of ranks, starting again with the first one.
void fill_in_turn(std::span<const unsigned> on, std::span<const unsigned> takes, unsigned ranks,
                  std::vector<unsigned>& machine_of) {
  for (std::size_t turn = 0; ranks > 0; turn = (turn + 1) % on.size()) {
    const unsigned here = std::min(takes[turn], ranks);
    machine_of.insert(machine_of.end(), here, on[turn]);
    ranks -= here;
  }
}

/// Each machine takes a block. The boundaries are those of the slots, scaled and rounded.
void fill_in_blocks(std::span<const unsigned> on, std::span<const unsigned> slots, unsigned ranks,
                    std::vector<unsigned>& machine_of) {
  const std::uint64_t all = std::accumulate(slots.begin(), slots.end(), std::uint64_t{0});
  std::uint64_t before = 0, done = 0;
  for (std::size_t i = 0; i < on.size(); ++i) {
    before += slots[i];
    const std::uint64_t end = (before * ranks + all / 2) / all;
    machine_of.insert(machine_of.end(), end - done, on[i]);
    done = end;
  }
}

bool same_use(const Share& one, const Share& other) {
  return one.on == other.on && one.each == other.each && one.each_is_limit == other.each_is_limit;
}

} // namespace

Result distribute(std::span<const Slots> machines, std::span<const Share> programs,
                  std::vector<unsigned>& machine_of) {
  machine_of.clear();
  for (std::size_t program = 0; program < programs.size();) {
    const Share& share = programs[program];
    unsigned ranks = 0;
    for (; program < programs.size() && same_use(programs[program], share); ++program)
      ranks += programs[program].ranks;
    std::vector<unsigned> on = share.on, takes;
    if (on.empty()) {
      on.resize(machines.size());
      std::iota(on.begin(), on.end(), 0u);
    }
    bool chosen = share.each != 0;
    if (chosen) {
      takes.assign(on.size(), share.each);
    } else {
      for (unsigned machine : on) takes.push_back(std::max(machines[machine].count, 1u));
      chosen = std::all_of(on.begin(), on.end(), [&](unsigned machine) { return machines[machine].chosen; });
    }
    if (share.each_is_limit && ranks > std::uint64_t{share.each} * on.size())
      return base::fail(base::Code::invalid, "{} ranks are too many for {} machine{} with {} on each", ranks,
                        on.size(), on.size() == 1 ? "" : "s", share.each);
    if (chosen)
      fill_in_turn(on, takes, ranks, machine_of);
    else
      fill_in_blocks(on, takes, ranks, machine_of);
  }
  return {};
}

} // namespace near::machines
