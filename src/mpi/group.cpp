// Groups. Source: MPI 5.0, section 7.3.
#include "mpi/arguments.h"
#include "mpi/impl.h"

namespace near::mpi::impl {

namespace {

Result made_or_no_memory(Group* group, Group*& made) {
  if (group == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another group");
  made = group;
  return {};
}

Result check_distinct(const Group& group, std::span<const int> ranks) {
  std::vector<bool> named(group.members.size(), false);
  for (int rank : ranks) {
    auto at = static_cast<std::size_t>(rank);
    if (named[at]) return base::fail(MPI_ERR_RANK, "rank {} is named twice", rank);
    named[at] = true;
  }
  return {};
}

/// The ranks that the (first, last, stride) triplets describe.
Result expand(const Group& group, int n, const int (*ranges)[3], std::vector<int>& ranks) {
  for (int i = 0; i < n; ++i) {
    auto [first, last, stride] = ranges[i];
    if (stride == 0) return base::fail(MPI_ERR_ARG, "ranges[{}] has stride 0", i);
    if (stride > 0 ? first > last : first < last)
      return base::fail(MPI_ERR_ARG, "the stride of ranges[{}] leads from {} away from {}", i, first, last);
    std::int64_t steps = (std::int64_t{last} - first) / stride;
    std::int64_t end = first + steps * stride;
    for (std::int64_t rank : {std::int64_t{first}, end})
      if (rank < 0 || rank >= group.size())
        return base::fail(MPI_ERR_RANK, "ranges[{}] names rank {}, outside the group of size {}", i, rank,
                          group.size());
    for (std::int64_t rank = first; rank != end + stride; rank += stride)
      ranks.push_back(static_cast<int>(rank));
  }
  return check_distinct(group, ranks);
}

} // namespace

Result Group_size(Group& group, int* size) {
  *size = group.size();
  return {};
}

Result Group_rank(Group& group, int* rank) {
  *rank = group.rank;
  return {};
}

Result Group_translate_ranks(Group& group1, int n, const int* ranks1, Group& group2, int* ranks2) {
  for (int i = 0; i < n; ++i) ranks2[i] = object::translate_rank(group1, ranks1[i], group2);
  return {};
}

Result Group_compare(Group& group1, Group& group2, int* result) {
  *result = object::group_compare(group1, group2);
  return {};
}

Result Group_union(Group& group1, Group& group2, Group*& newgroup) {
  return made_or_no_memory(object::group_union(group1, group2), newgroup);
}

Result Group_intersection(Group& group1, Group& group2, Group*& newgroup) {
  return made_or_no_memory(object::group_intersection(group1, group2), newgroup);
}

Result Group_difference(Group& group1, Group& group2, Group*& newgroup) {
  return made_or_no_memory(object::group_difference(group1, group2), newgroup);
}

Result Group_incl(Group& group, int n, const int* ranks, Group*& newgroup) {
  NEAR_TRY(check_distinct(group, as_span(n, ranks)));
  return made_or_no_memory(object::group_include(group, as_span(n, ranks)), newgroup);
}

Result Group_excl(Group& group, int n, const int* ranks, Group*& newgroup) {
  NEAR_TRY(check_distinct(group, as_span(n, ranks)));
  return made_or_no_memory(object::group_exclude(group, as_span(n, ranks)), newgroup);
}

Result Group_range_incl(Group& group, int n, int (*ranges)[3], Group*& newgroup) {
  std::vector<int> ranks;
  NEAR_TRY(expand(group, n, ranges, ranks));
  return made_or_no_memory(object::group_include(group, ranks), newgroup);
}

Result Group_range_excl(Group& group, int n, int (*ranges)[3], Group*& newgroup) {
  std::vector<int> ranks;
  NEAR_TRY(expand(group, n, ranges, ranks));
  return made_or_no_memory(object::group_exclude(group, ranks), newgroup);
}

Result Group_free(Group& group) {
  object::release(&group);
  return {};
}

} // namespace near::mpi::impl
