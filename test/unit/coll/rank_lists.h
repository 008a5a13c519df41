// The members of a list of ranks, for comparison.
#pragma once

#include "coll/collective_group.h"

#include <vector>

namespace near::coll::test {

inline std::vector<int> members(RankList list) {
  std::vector<int> all;
  for (int i = 0; i < list.size(); ++i) all.push_back(list[i]);
  return all;
}

} // namespace near::coll::test
