// Runs a function as several processes of one job, without a launcher: the test's process makes the segment
// and forks.
#pragma once

#include "base/knob.h"
#include "datatype/datatype.h"
#include "segment/segment.h"
#include "shm/shm.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace near::test {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Called in a child: ends it with a status that fails the parent's test, unless the condition holds.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "process %d: %s\n", getpid(), what);
  _exit(1);
}

/// Each child runs body(rank); a watchdog ends it after 60 seconds.
inline void run_ranks(std::uint32_t count, const std::function<void(std::uint32_t)>& body,
                      const Environment& environment = {}) {
  segment::Segment segment;
  ASSERT_TRUE(segment.create(count, count, 2).ok()) << base::failure_text();
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      require(base::read_knobs(environ).ok(), "knobs");
      require(datatype::make_predefined_types().ok(), "predefined types");
      shm::Job job{segment.descriptor(), rank, count};
      base::Result started = shm::start(job);
      require(started.ok(), std::string(base::failure_text()).c_str());
      body(rank);
      transport::stop();
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
}

inline transport::Peer& peer(std::uint32_t rank) { return transport::peer_at({0, rank}); }

inline datatype::Datatype& bytes_type() { return *datatype::find_datatype(MPI_BYTE); }

inline transport::Buffer byte_buffer(void* at, std::size_t bytes) {
  return {at, static_cast<MPI_Count>(bytes), &bytes_type()};
}

template <class F>
void wait_for(F&& done) {
  transport::wait_until([](void* at) -> bool { return (*static_cast<std::remove_reference_t<F>*>(at))(); },
                        &done);
}

} // namespace near::test
