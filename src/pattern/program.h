// What each rank does in a broadcast or an allreduce between machines, as a list of steps: for those who look at the order of messages, or
// simulate it, without sending any. The steps are made by the functions that the algorithms of the library themselves call (tree.h,
// ring.h, doubling.h, chain.h).
#pragma once

#include "pattern/levels.h"

#include <vector>

namespace near::pattern {

enum class Verb : std::uint8_t {
  send,          ///< `out` bytes to `to`; ends when the buffer may be used again
  receive,       ///< `in` bytes from `from`
  exchange,      ///< both at the same time
  start_send,    ///< as send, but `finish` waits for it
  start_receive, ///< as receive, but `finish` waits for it
  finish,        ///< waits, oldest first, until `count` of the started ones are left
  add,           ///< reduces `in` bytes that have arrived
  ring, ///< `count` exchanges around a ring (ring.h), of `out` bytes each; with `reduces`, what arrives is added
  on_machine, ///< the ranks of the machine call `collective`, of `in` bytes, whose root is their leader
};

struct Step {
  Verb verb;
  int to = -1, from = -1; ///< ranks
  MPI_Count out = 0, in = 0;
  int count = 0;
  bool reduces = false;
  Collective collective = Collective::barrier;
};
using Program = std::vector<Step>;

/// Whether programs of this collective can be made: broadcast and allreduce.
bool has_program(Collective collective);
/// What `rank` does in the call, by the algorithm that is chosen. `call` has the facts of the machines, of which there are several;
/// `leaders` are those of the call, by machine (Machines::leaders_with()). The slices of rings are taken for equally long, as the longest
/// of them.
Program program_of(const Facts& call, const Machines& machines, RankList leaders, int rank, int root);

} // namespace near::pattern
