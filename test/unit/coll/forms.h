// Runs a collective in every form: with each algorithm of the registry that admits the call, executed and
// recorded, with eager and with synchronous messages, on powers of two and other numbers of ranks.
#pragma once

#include "buffers.h"
#include "coll/coll.h"
#include "coll/registry.h"
#include "fake_p2p.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace near::coll::test {

inline constexpr int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
inline constexpr std::size_t everything = ~std::size_t{0};

/// Makes a call, blocking or not, and expects success.
using Perform = std::function<void(const Call&, object::Communicator&)>;

inline void blocking(const Call& call, object::Communicator& communicator) {
  ASSERT_TRUE(run(call, communicator).ok()) << base::failure_text();
}
inline void nonblocking(const Call& call, object::Communicator& communicator) {
  p2p::Request* request = nullptr;
  ASSERT_TRUE(start(call, communicator, request).ok()) << base::failure_text();
  ASSERT_TRUE(wait(request).ok());
}
inline void free(p2p::Request* request) {
  MPI_Request handle = MPI_REQUEST_NULL;
  p2p::free_request(handle, *request);
}
/// Started three times, unless that would reduce or exchange the first result. All ranks agree: with a root, only that
/// one knows whether the call is in place.
inline void persistent(const Call& call, object::Communicator& communicator) {
  p2p::Request* request = nullptr;
  ASSERT_TRUE(prepare(call, communicator, request).ok()) << base::failure_text();
  const bool once = call.collective == Collective::reduce || (call.in_place && !has_root(call.collective));
  for (int again = 0; again < (once ? 1 : 3); ++again) {
    ASSERT_TRUE(p2p::start(*request).ok());
    ASSERT_TRUE(wait(request).ok());
  }
  free(request);
}

/// How `size` ranks are distributed over machines, for algorithms in two levels: in blocks of 2 and of 3, in turns over 2 and over 3
/// machines, and one of all ranks but the first and last, whose machines have other numbers.
inline std::vector<std::vector<std::uint32_t>> distributions(int size) {
  std::vector<std::vector<std::uint32_t>> made(5);
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(size); ++rank) {
    made[0].push_back(rank / 2);
    made[1].push_back(rank / 3);
    made[2].push_back(rank % 2);
    made[3].push_back(rank % 3);
    made[4].push_back(rank == 0 ? 7 : rank + 1 == static_cast<std::uint32_t>(size) ? 0 : 3);
  }
  std::erase_if(made, [](const auto& machine_of) {
    const Machines machines(machine_of, 0);
    return machines.count() == 1 || machines.most_ranks() == 1;
  });
  return made;
}

/// Runs `body` once per rank, size, distribution over machines, and mode.
inline void every_form_by_machine(const std::function<void(object::Communicator&, const Perform&)>& body) {
  for (int size : sizes)
    for (const auto& machine_of : distributions(size))
      for (std::size_t eager : {std::size_t{0}, everything})
        for (const Perform& perform : {Perform(blocking), Perform(nonblocking), Perform(persistent)}) {
          const Conditions conditions{.eager_bytes = eager, .machine_of = machine_of};
          run_ranks(size, conditions, [&](object::Communicator& c) { body(c, perform); });
          if (!testing::Test::HasFailure()) continue;
          ADD_FAILURE() << size << " ranks on " << Machines(machine_of, 0).count()
                        << " machines, eager up to " << eager;
          return;
        }
}

/// Runs `body` once per rank, algorithm, size and mode.
inline void every_form(Collective collective,
                       const std::function<void(object::Communicator&, const Perform&)>& body) {
  make_types();
  for (const Algorithm& row : algorithms()) {
    if (row.collective != collective) continue;
    std::string knob = std::string(name_of(collective)) + "=" + row.name;
    ASSERT_TRUE(configure(knob).ok());
    if (row.name == std::string_view("by_machine")) every_form_by_machine(body);
    for (int size : sizes)
      for (std::size_t eager : {std::size_t{0}, std::size_t{64}, everything}) {
        SCOPED_TRACE(knob + " on " + std::to_string(size) + " ranks, eager up to " + std::to_string(eager));
        run_ranks(size, Conditions{eager}, [&](object::Communicator& c) { body(c, blocking); });
        if (eager != everything)
          run_ranks(size, Conditions{eager}, [&](object::Communicator& c) { body(c, nonblocking); });
        if (eager == 0)
          run_ranks(size, Conditions{eager}, [&](object::Communicator& c) { body(c, persistent); });
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << knob << " on " << size << " ranks, eager up to " << eager;
          (void)configure("auto");
          return;
        }
      }
  }
  ASSERT_TRUE(configure("auto").ok());
}

/// Roots to test: the first, a middle and the last rank.
inline std::vector<int> roots(int size) {
  std::vector<int> some{0};
  if (size > 1) some.push_back(size - 1);
  if (size > 2) some.push_back(size / 2);
  return some;
}

/// Ranks describe the same signature differently.
inline Layout layout_at(int base, int rank) { return layouts[(base + rank) % 3]; }

} // namespace near::coll::test
