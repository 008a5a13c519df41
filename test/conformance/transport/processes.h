// Two processes for a test, made by fork(): each reports its failure by its exit status and a line of text.
#pragma once

#include "base/knob.h"
#include "datatype/datatype.h"
#include "kind.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace near::test {

/// Called in a child: ends it, which fails the test, unless the condition holds.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "process %d: %s\n", getpid(), what);
  _exit(1);
}

/// Lets the processes of a test meet, by two pipes, one for each direction.
class Meeting {
public:
  Meeting() {
    for (auto& pair : pipes_)
      if (pipe(pair.data()) != 0) std::abort();
  }
  ~Meeting() {
    for (auto& pair : pipes_)
      for (int end : pair) close(end);
  }
  /// Called in process `rank`: closes the ends that it does not use.
  void keep_own_ends(std::uint32_t rank) {
    for (int* end : {&pipes_[rank][0], &pipes_[1 - rank][1]}) {
      close(*end);
      *end = -1;
    }
  }
  /// Called in the parent when process `rank` has ended. Ends meet() and wait_for_end() of the other one.
  void tell_end(std::uint32_t rank) {
    close(pipes_[rank][1]);
    pipes_[rank][1] = -1;
  }
  void meet(std::uint32_t rank) {
    char word = 'x';
    require(write(pipes_[rank][1], &word, 1) == 1 && read(pipes_[1 - rank][0], &word, 1) == 1,
            "the other one is gone");
  }
  void wait_for_end(std::uint32_t rank) {
    char word;
    require(read(pipes_[1 - rank][0], &word, 1) == 0, "the other one does not meet this one any more");
  }

private:
  std::array<std::array<int, 2>, 2> pipes_{};
};

/// Runs body(rank) in two children that can meet. `dies`: the child that kills itself; -1: neither does.
/// Calls `on_end` with the rank of each child that has ended, in the order in which they end.
inline void run_two(Meeting& meeting, int dies, const std::function<void(std::uint32_t rank)>& body,
                    const std::function<void(std::uint32_t rank, int status)>& on_end) {
  std::array<pid_t, 2> children{};
  for (std::uint32_t rank : {0u, 1u}) {
    children[rank] = fork();
    ASSERT_GE(children[rank], 0);
    if (children[rank] == 0) {
      std::signal(SIGPIPE, SIG_IGN);
      alarm(60);
      meeting.keep_own_ends(rank);
      require(base::read_knobs(environ).ok(), "knobs");
      require(datatype::make_predefined_types().ok(), "predefined types");
      body(rank);
      _exit(0);
    }
  }
  for (int left = 2; left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    const std::uint32_t rank = ended == children[0] ? 0 : 1;
    on_end(rank, status);
    meeting.tell_end(rank);
    if (static_cast<int>(rank) == dies)
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
          << "process " << rank << ": status " << status;
    else
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "process " << rank << ": status " << status;
  }
}

} // namespace near::test
