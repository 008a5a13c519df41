// Recursive doubling: neighbouring groups of 1, 2, 4, ... ranks exchange what they have. R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).
//
// If the number of ranks is not a power of two, the excess is folded away: each even one of the first 2 (size - power) ranks gives
// its data to its right neighbour and rests. The number of acting ranks is then a power of two, and they are still in rank order.
#pragma once

#include "base/result.h"

namespace near::pattern {

class Doubling {
public:
  Doubling(int rank, int size) : rank_(rank) {
    while (power_ * 2 <= size) power_ *= 2;
    folded_ = 2 * (size - power_);
    acting_ = rank < folded_ ? rank / 2 : rank - folded_ / 2;
  }
  bool is_folded() const { return rank_ < folded_; }
  bool rests() const { return is_folded() && rank_ % 2 == 0; }
  /// For a folded rank: the other rank of its pair.
  int neighbour() const { return rests() ? rank_ + 1 : rank_ - 1; }
  /// The number of acting ranks.
  int power() const { return power_; }
  /// The rank with which an acting rank exchanges the data of both at this distance, a power of two below power().
  int partner(int distance) const {
    const int actor = acting_ ^ distance;
    return actor < folded_ / 2 ? 2 * actor + 1 : actor + folded_ / 2;
  }

private:
  int rank_, power_ = 1, folded_, acting_;
};

/// The part of a rank in an allreduce by recursive doubling:
///   give(to), take(from)     a rank that rests sends its vector, and receives the result
///   absorb(from)             receives a vector and adds it
///   exchange(partner)        both send what they have, and add what the other has
///   pass(to)                 sends the result
template <class Verbs>
base::Result double_up(const Doubling& own, Verbs&& verbs) {
  if (own.rests()) {
    NEAR_TRY(verbs.give(own.neighbour()));
    return verbs.take(own.neighbour());
  }
  if (own.is_folded()) NEAR_TRY(verbs.absorb(own.neighbour()));
  for (int distance = 1; distance < own.power(); distance *= 2)
    NEAR_TRY(verbs.exchange(own.partner(distance)));
  return own.is_folded() ? verbs.pass(own.neighbour()) : base::Result{};
}

} // namespace near::pattern
