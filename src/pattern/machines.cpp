// See machines.h.
#include "pattern/machines.h"

#include <algorithm>
#include <map>

namespace near::pattern {

Machines::Machines(std::span<const std::uint32_t> machine_of, int own_rank) {
  std::map<std::uint32_t, int> indices;
  for (const std::uint32_t machine : machine_of)
    index_of_.push_back(indices.try_emplace(machine, static_cast<int>(indices.size())).first->second);
  first_.resize(indices.size() + 1);
  for (const int index : index_of_) ++first_[static_cast<std::size_t>(index) + 1];
  most_ranks_ = *std::max_element(first_.begin(), first_.end());
  for (std::size_t machine = 1; machine < first_.size(); ++machine) first_[machine] += first_[machine - 1];

  std::vector<int> next = first_;
  ranks_.resize(index_of_.size());
  for (std::size_t rank = 0; rank < index_of_.size(); ++rank) {
    auto& at = next[static_cast<std::size_t>(index_of_[rank])];
    ranks_[static_cast<std::size_t>(at++)] = static_cast<int>(rank);
  }
  for (int machine = 0; machine < count(); ++machine) leaders_.push_back(ranks_of(machine)[0]);
  own_ = index_of(own_rank);
  in_order_ = std::is_sorted(ranks_.begin(), ranks_.end());
}

std::vector<int> Machines::leaders_with(int root) const {
  std::vector<int> made = leaders_;
  made[static_cast<std::size_t>(index_of(root))] = root;
  return made;
}

} // namespace near::pattern
