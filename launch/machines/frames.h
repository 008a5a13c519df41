// The messages between mpiexec and its agents on other machines, over the standard streams of an agent.
//
//   mpiexec                                              agent
//                                        <-------------  greeting, version, slots
//   job: arguments, environment, ranks   ------------->
//                                                        starts its ranks as mpiexec does on one machine
//                                        <-------------  started: where tools find that part of the job
//                                        <-------------  processes: the numbers of the ranks' processes
//   go_on                                ------------->  if a debugger attaches to them first
//                                        <-------------  output, error: whole pieces of what the ranks write
//   written: bytes that are out          ------------->  so that only a bounded amount is under way
//   input, input_end                     ------------->
//                                        <-------------  taken: bytes of input that are written
//                                        <-------------  put, get, fence: the table of a job, as PMI-1 has it
//   value, fence_over                    ------------->
//   signal, closed, time_out             ------------->
//                                        <-------------  failed: the job ends here, for this reason
//   end                                  ------------->  on all other machines
//                                        <-------------  outcome, then ended with its status
//   reach, relayed, hang_up, cut         <------------>  relayed, parted: further machines (machines/tree.h)
//   alive                                <------------>  every second
//
// A frame is its length (4 bytes, little-endian, kind included), its kind (1 byte), and its body.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::machines {

using base::Result;

/// The version of these frames. An agent with another version is rejected.
inline constexpr unsigned protocol_version = 5;
/// The first bytes that an agent sends. Anything that a login shell prints before them is skipped.
inline constexpr std::string_view greeting = "\nNEARMPI-AGENT\n";

enum class Kind : std::uint8_t {
  hello = 1, ///< Hello
  job,       ///< AgentJob (launch/agent.h)
  output,    ///< bytes for standard output
  error,     ///< bytes for standard error
  written,   ///< number: bytes of output and error that have been written
  input,     ///< bytes for the standard input of the ranks that read it
  input_end,
  taken,      ///< number: bytes of input that have been written
  put,        ///< key, value
  get,        ///< key
  value,      ///< key, number (1: it exists), value
  fence,      ///< all ranks of this machine have entered it
  fence_over, ///< all ranks on the other machines have, too
  signal,     ///< number
  closed,     ///< nobody reads standard output any more
  time_out,   ///< the job ends because its time is over
  end,        ///< the job ends for a reason on another machine
  failed,     ///< number: the weight of the reason
  outcome,    ///< OutcomeReport (launch/outcome.h)
  ended,      ///< number: the status of this part of the job
  started,    ///< number: the process that has the segment of this part open, for tools
  reach,      ///< Reach (machines/tree.h): start an agent on a further machine
  relayed,    ///< Relayed: a frame for, or from, the agent of a further machine
  hang_up,    ///< number of a further machine: nothing more is sent to it
  cut,        ///< number of a further machine: end the connection to it
  parted,     ///< Parted: nothing more comes from a further machine, for this reason
  processes,  ///< Processes
  go_on,      ///< ranks that wait in MPI_Init for a debugger may leave it
  alive,
};
inline constexpr Kind last_kind = Kind::alive;

struct Frame {
  Kind kind = Kind::alive;
  std::string body;
};

std::string frame(Kind kind, std::string_view body = {});

/// Cuts bytes that arrive in pieces into frames.
class FrameReader {
public:
  /// The longest permitted frame; a longer one is damaged.
  static constexpr std::size_t longest = std::size_t{64} << 20;

  void feed(std::string_view bytes) { received_ += bytes; }
  /// Takes the next frame. Returns false if there is none yet, or if the received bytes cannot be a frame: see broken().
  bool next(Frame& taken);
  bool broken() const { return broken_; }
  /// Skips everything up to and including `text`. Returns whether it has arrived.
  bool skip_past(std::string_view text);
  /// The bytes received that are not a frame yet.
  std::string_view rest() const { return std::string_view(received_).substr(at_); }

private:
  std::string received_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

/// Writes the body of a frame: numbers and texts, one after another.
class BodyWriter {
public:
  BodyWriter& number(std::uint64_t value);
  BodyWriter& text(std::string_view value);
  BodyWriter& texts(const std::vector<std::string>& values);
  BodyWriter& numbers(const std::vector<unsigned>& values);
  const std::string& body() const { return body_; }

private:
  std::string body_;
};

/// Reads such a body. After a missing value, ok() is false and every further value is empty.
class BodyReader {
public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  std::uint64_t number();
  std::string text();
  std::vector<std::string> texts();
  std::vector<unsigned> numbers();
  /// Whether every requested value was there.
  bool ok() const { return ok_; }
  /// Whether ok() holds and nothing is left.
  bool complete() const { return ok_ && rest_.empty(); }

private:
  std::string_view rest_;
  bool ok_ = true;
};

/// The ranks of one machine, once all of them have been started.
struct Processes {
  std::string space;             ///< the namespace of these numbers: os::number_space()
  std::vector<unsigned> numbers; ///< in the order of the ranks

  std::string body() const { return BodyWriter().text(space).numbers(numbers).body(); }
  static bool read(std::string_view body, Processes& processes);
};

} // namespace near::machines
