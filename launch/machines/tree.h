// Agents in a tree: from which machine another one is reached, and how mpiexec talks to a machine through others.
//
//   mpiexec                        agent of m1                       agent of m5
//   reach: m5, by these words  ->  starts ssh m5
//                                                  <-  greeting, hello
//                              <-  relayed: m5, hello
//   relayed: m5, job           ->                  ->  job
//                              <-  parted: m5, why              the connection to it has ended
//   hang_up: m5                ->  nothing more follows
//   cut: m5                    ->  ends ssh m5
//
// A whole frame is relayed, which may itself be one that the next
// agent relays. `alive` is not relayed: each connection has its own.
#pragma once

#include "machines/frames.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace near::machines {

/// The machine from which another one is reached, if mpiexec and each machine reach at most `fan_out` others; it has a lower
/// number. None if mpiexec itself reaches the machine, as it reaches all of them if `fan_out` is 0.
std::optional<unsigned> reached_from(unsigned machine, unsigned fan_out);

/// The body of `reach`: how an agent reaches the agent of a further machine.
struct Reach {
  unsigned machine = 0;
  std::vector<std::string> words; ///< a program and its arguments
  std::string directory;          ///< in which it runs
  unsigned lost_after = 0;        ///< seconds of silence after which that machine is lost; 0: never

  std::string body() const;
  /// Returns false, and leaves `reach` unchanged, if the body is damaged.
  static bool read(std::string_view body, Reach& reach);
};

/// The body of `relayed`: a frame for, or from, the agent of a further machine.
struct Relayed {
  unsigned machine = 0;
  Frame frame;

  static std::string body(unsigned machine, std::string_view frame);
  /// Returns false if the body is not exactly a number and one frame.
  static bool read(std::string_view body, Relayed& relayed);
};

/// The body of `parted`.
struct Parted {
  unsigned machine = 0;
  std::string why;

  std::string body() const;
  static bool read(std::string_view body, Parted& parted);
};

/// The body of `hang_up` and `cut`: the number of a machine.
bool read_machine(std::string_view body, unsigned& machine);

} // namespace near::machines
