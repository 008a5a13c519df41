// The steps of each rank in a broadcast or an allreduce between machines, for code that examines or simulates the order of messages
// without sending any. The steps are made by the same functions that the library's algorithms call (tree.h, ring.h, doubling.h,
// chain.h).
#pragma once

#include "pattern/levels.h"

#include <vector>

namespace near::pattern {

enum class Verb : std::uint8_t {
  send,          ///< `out` bytes to `to`; ends when the buffer may be used again
  receive,       ///< `in` bytes from `from`
  exchange,      ///< both at the same time
  start_send,    ///< like send, but `finish` waits for it
  start_receive, ///< like receive, but `finish` waits for it
  finish,        ///< waits, oldest first, until only `count` of the started ones are left
  add,           ///< reduces `in` bytes that have arrived
  ring, ///< `count` exchanges around a ring (ring.h), of `out` bytes each; `reduces`: what arrives is added
  on_machine, ///< the ranks on the machine call `collective` of `in` bytes, with their leader as root
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

/// Whether programs can be made for this collective: broadcast and allreduce.
bool has_program(Collective collective);
/// The steps of `rank` in the call, by the algorithm that is chosen. `call` has the facts of the machines, of which there are
/// several; `leaders` are those of the call, by machine (Machines::leaders_with()). All slices of rings are assumed to be as long
/// as the longest.
Program program_of(const Facts& call, const Machines& machines, RankList leaders, int rank, int root);

} // namespace near::pattern
