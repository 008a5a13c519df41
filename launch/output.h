// Carries the output of all ranks to the standard output and standard error of mpiexec.
//
//   rank's stdout --pipe--> Stream: whole lines --> Sink --thread--> mpiexec's stdout
//                              \---- as they come --> Sink --thread--> the rank's file, if it has one
//
// - A line is written as a whole; lines of two ranks never mix. Bytes are passed on unchanged.
// - A line that is too long to buffer is written in parts. Its rank then owns the sink until the line ends,
//   or until the rank has written nothing for `patience_ns`, since it may be waiting for a rank that waits to
//   write.
// - When a sink has no room, reading stops, so the pipe fills and the rank waits: memory stays bounded.
// - On a terminal the beginning of a line is shown after `patience_ns`: prompts and progress bars.
#pragma once

#include "launch/sink.h"
#include "os/poller.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace near::launch {

using base::Result;

class Output {
public:
  /// Which of the two output streams of mpiexec.
  enum Which { standard_output = 0, standard_error = 1 };

  /// Opens the sinks on descriptors 1 and 2. `poller` will report the streams as `key_base` + index.
  /// `merge`: both streams go to standard output. `stamp`: each line begins with the time.
  Result open(os::Poller& poller, std::uint64_t key_base, bool merge, bool stamp);

  /// A file that a stream is copied to.
  struct Copy {
    int descriptor = -1; ///< -1: there is none
    std::string name;    ///< for messages
  };
  /// Adds a stream whose lines begin with `prefix`. Everything that arrives is also written to the file
  /// `copy`, without the prefix. `write_end` is for the rank; the caller closes it once the rank has it.
  Result add(Which which, std::string prefix, Copy copy, int& write_end);

  /// Reads from a stream that the poller reported.
  void readable(std::uint64_t index);
  /// Rings when there is room again; others may ring it as well.
  os::Bell& bell() { return bell_; }
  int bell_descriptor() const { return bell_.descriptor(); }
  void bell_rang();
  /// Handles what has waited long enough. Returns after how many milliseconds to call again; -1: not needed.
  int tick(std::uint64_t now_ns);

  /// Reads the rest of the streams as far as there is room, once no process writes any more. Returns true
  /// when every stream has reached its end.
  bool drain();
  /// Whether everything has been written.
  bool idle() const;
  /// Writes a line of the launcher to standard error. Control characters are made visible, since the line may
  /// contain names chosen by others. Never waits.
  void say(std::string_view line);

  /// What could not be written, and why; empty if nothing failed or the reader has gone.
  std::string failure() const;
  /// Whether a rank may have written to standard error: it has, or it uses mpiexec's standard error directly.
  bool may_have_said() const { return streams_.empty() || said_; }
  /// Whether nothing more can be written to standard output.
  bool broken() const { return sinks_[0].sink.broken(); }

private:
  static constexpr std::size_t longest_held = 1u << 20;
  static constexpr std::uint64_t patience_ns = 100'000'000;
  static constexpr std::size_t nobody = SIZE_MAX;

  struct Stream {
    Which which = standard_output;
    std::string prefix; ///< before each line
    std::size_t sink = 0;
    int descriptor = -1;
    Copy copy;
    bool waiting = false;       ///< not polled: no room, or another owns the sink
    bool inside_line = false;   ///< the beginning of the present line has been written
    std::string held;           ///< the present line so far
    std::uint64_t heard_ns = 0; ///< when it last wrote
  };
  struct Target {
    Sink sink;
    int descriptor = -1;
    void put(std::string_view text) { sink.put(descriptor, text); }
    bool terminal = false;
    std::size_t owner = nobody;     ///< the stream whose long line is being written
    std::size_t open_line = nobody; ///< the stream whose unfinished line was written last
  };

  bool marks(const Stream& stream) const { return stamp_ || !stream.prefix.empty(); }
  void take(std::size_t index, std::string_view data);
  void write_lines(std::size_t index, std::string_view lines);
  void flush_partial(std::size_t index);
  void end(std::size_t index);
  void wait_for_room(std::size_t index);
  void resume(std::size_t sink);
  bool may_read(const Stream& stream, std::size_t index) const;

  os::Poller* poller_ = nullptr;
  std::uint64_t key_base_ = 0;
  os::Bell bell_;
  Target sinks_[2];
  Sink copies_; ///< started by the first stream that has a file
  bool copying_ = false;
  std::size_t sink_of_[2] = {0, 1};
  bool said_ = false; ///< a rank has written to its standard error
  bool stamp_ = false;
  std::vector<Stream> streams_;
  std::vector<char> buffer_;
};

} // namespace near::launch
