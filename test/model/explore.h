// Explores the executions of a scenario: depth-first within bounds, and by random walks beyond them.
#pragma once

#include "execution.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::model {

class Stage;

/// How far to look.
struct Plan {
  Bounds bounds;           ///< of the depth-first search, which is exhaustive within them
  unsigned walks = 20'000; ///< random walks, bounded in kills only
};

struct Scenario {
  const char* name;
  void (*body)(Stage&);
  Plan plan;
};

/// Keeps it in scenarios(), for ever.
const Scenario& add_scenario(const Scenario& scenario);
const std::vector<const Scenario*>& scenarios();

/// An execution that failed, as short as could be found.
struct Finding {
  bool found = false;
  std::string why;    ///< in one line
  std::string report; ///< with the trace, and how to replay it
  std::uint64_t executions = 0;
};

/// Every execution within `bounds`. `most`: gives up after so many; `complete` says whether it did not.
/// `remembers`: an execution ends where an earlier one was in the same state, with as much left of the
/// bounds.
Finding search(const Scenario& scenario, const Bounds& bounds, const Mutant& mutant, std::uint64_t most,
               bool& complete, bool remembers = true);
/// Random walks, each with a way and a seed of its own, numbered from `first`.
Finding walk(const Scenario& scenario, const Mutant& mutant, unsigned first, unsigned count);
/// The one execution that a report named.
Finding replay(const Scenario& scenario, const Mutant& mutant, const std::string& schedule);

/// The places where walks of the scenario execute operations with an order, and fences.
std::set<Site> sites_of(const Scenario& scenario);

/// The test of a scenario: fails with the report of an execution that fails. NEAR_MODEL_EFFORT=n looks n
/// times as far; NEAR_MODEL_SCHEDULE=... replays.
void expect_holds(const Scenario& scenario);
/// NEAR_MODEL_EFFORT; 1 when it is not set.
unsigned effort();

} // namespace near::model
