// The machines on which the ranks of a communicator run: facts on which all ranks agree, for collectives in two levels, among
// the ranks of each machine and among the leaders of the machines (coll/levels.h).
#pragma once

#include "pattern/rank_list.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace near::pattern {

/// Machines have indices: 0 is the machine of rank 0, and so on in the order of their lowest ranks.
class Machines {
public:
  /// `machine_of`: the machine of each rank, as an arbitrary number. `own_rank`: this process's rank.
  Machines(std::span<const std::uint32_t> machine_of, int own_rank);

  int count() const { return static_cast<int>(first_.size()) - 1; }
  /// The number of ranks.
  int size() const { return static_cast<int>(ranks_.size()); }
  /// The number of ranks on the fullest machine.
  int most_ranks() const { return most_ranks_; }
  /// Whether all machines have the same number of ranks.
  bool are_equal() const { return most_ranks_ * count() == static_cast<int>(ranks_.size()); }
  /// Whether the ranks of each machine are consecutive.
  bool in_order() const { return in_order_; }
  int index_of(int rank) const { return index_of_[static_cast<std::size_t>(rank)]; }
  /// The index of this process's machine.
  int own() const { return own_; }
  /// The ranks of a machine in ascending order. Valid as long as this object exists.
  RankList ranks_of(int machine) const {
    const auto at = static_cast<std::size_t>(machine);
    return RankList::of({ranks_.data() + first_[at], static_cast<std::size_t>(first_[at + 1] - first_[at])});
  }
  /// The number of ranks that precede those of the machine if the ranks are ordered by machine.
  int ranks_before(int machine) const { return first_[static_cast<std::size_t>(machine)]; }
  /// The leader of each machine: its lowest rank, unless others have been elected.
  RankList leaders() const { return RankList::of(leaders_); }
  /// `leaders`: one for each machine, the same on all ranks.
  void set_leaders(std::vector<int> leaders) { leaders_ = std::move(leaders); }
  /// The leaders, except that `root` leads its own machine.
  std::vector<int> leaders_with(int root) const;

private:
  std::vector<int> index_of_; ///< by rank
  std::vector<int> ranks_;    ///< ordered by machine
  std::vector<int> leaders_;  ///< by machine
  std::vector<int> first_;    ///< where each machine's ranks begin in `ranks_`; the last one: their number
  int own_ = 0, most_ranks_ = 0;
  bool in_order_ = false;
};

} // namespace near::pattern
