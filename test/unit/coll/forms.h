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

/// Runs `body` once per rank, algorithm, size and mode.
inline void every_form(Collective collective,
                       const std::function<void(object::Communicator&, const Perform&)>& body) {
  make_types();
  for (const Algorithm& row : algorithms()) {
    if (row.collective != collective) continue;
    std::string knob = std::string(name_of(collective)) + "=" + row.name;
    ASSERT_TRUE(configure(knob).ok());
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
