// Explores the executions of a scenario: depth-first within bounds, and by random walks beyond them.
#pragma once

#include "execution.h"

#include <cstdint>
#include <string>
#include <vector>

namespace near::model {

class Stage;

/// The extent of the exploration.
struct Plan {
  Bounds bounds;           ///< of the depth-first search, which is exhaustive within them
  unsigned walks = 20'000; ///< random walks, bounded in kills only
};

struct Scenario {
  const char* name;
  void (*body)(Stage&);
  Plan plan;
};

/// Adds it to scenarios() for good, and returns where it is there.
const Scenario* add_scenario(const Scenario& scenario);
const std::vector<const Scenario*>& scenarios();

/// A failed execution, shortened as far as possible.
struct Finding {
  bool found = false;
  std::string why;    ///< in one line
  std::string report; ///< the trace, and how to replay it
  std::uint64_t executions = 0;
};

/// Runs every execution within `bounds`, but at most `most` of them; `complete` tells whether these were all.
/// `remembers`: an execution ends where an earlier one was in the same state with as much left of the bounds.
Finding search(const Scenario& scenario, const Bounds& bounds, const Mutant& mutant, std::uint64_t most,
               bool& complete, bool remembers = true);
/// Random walks numbered from `first`; the number determines kind and seed.
Finding walk(const Scenario& scenario, const Mutant& mutant, unsigned first, unsigned count);
/// Repeats the execution of a report.
Finding replay(const Scenario& scenario, const Mutant& mutant, const std::string& schedule);

/// The places where walks of the scenario execute operations with an order, and fences.
std::set<Site> sites_of(const Scenario& scenario);

/// The test of a scenario: fails with the report of a failed execution. NEAR_MODEL_EFFORT=n explores n times
/// as far; NEAR_MODEL_SCHEDULE=... replays an execution.
void expect_holds(const Scenario& scenario);
/// The value of NEAR_MODEL_EFFORT; 1 if it is not set.
unsigned effort();

} // namespace near::model
