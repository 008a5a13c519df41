// The output of all ranks on its way to mpiexec's own standard output and standard error.
//
//   rank's stdout --pipe--> Stream: whole lines --> Sink --thread--> mpiexec's stdout
//                              \---- as they come --> Sink --thread--> the rank's file, if it has one
//
// - A line is written as a whole; two ranks' lines never mix. Bytes are passed on as they are.
// - A line too long to hold goes out in pieces: its rank then owns the sink until the line ends, or until the
//   rank wrote nothing for `patience`, since it may be waiting for a rank that waits to write.
// - A sink without room stops the reading, so the pipe fills and the rank waits: memory stays bounded.
// - On a terminal the beginning of a line is shown after `patience`: prompts and progress bars.
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
  /// Which of its parents' two streams.
  enum Which { standard_output = 0, standard_error = 1 };

  /// Opens the sinks on descriptors 1 and 2. `poller` will report the streams as `key_base` + index.
  /// `merge`: both streams go to standard output; `stamp`: each line begins with the time.
  Result open(os::Poller& poller, std::uint64_t key_base, bool merge, bool stamp);

  /// A file that a stream is copied to.
  struct Copy {
    int descriptor = -1; ///< -1: there is none
    std::string name;    ///< for messages
  };
  /// A new stream, each line of which begins with `prefix`. All that comes is written to the file `copy` too,
  /// without the prefix. `write_end` is for the rank, the caller closes it once the rank has it.
  Result add(Which which, std::string prefix, Copy copy, int& write_end);

  /// The poller reported a stream, or the bell rang.
  void readable(std::uint64_t index);
  int bell_descriptor() const { return bell_.descriptor(); }
  void bell_rang();
  /// Looks at what waits for time to pass; returns in how many ms to call again, -1: not needed.
  int tick(std::uint64_t now_ns);

  /// Nobody writes any more: what has arrived is all there will be. Reads the rest, as far as there is room;
  /// true when every stream is at its end.
  bool drain();
  /// Everything has been written out.
  bool idle() const;
  /// Lines of the launcher's own, on standard error, with everything but letters made visible: there are
  /// names in them that others have chosen. Never waits.
  void say(std::string_view line);

  /// What cannot be written and why; empty when both can, or their reader has gone.
  std::string failure() const;
  /// Whether a rank may have written to standard error: it has, or it has mpiexec's own.
  bool may_have_said() const { return streams_.empty() || said_; }
  /// Nothing more can be written to standard output.
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
    bool inside_line = false;   ///< the beginning of the present line has gone out
    std::string held;           ///< the present line so far
    std::uint64_t heard_ns = 0; ///< when it last wrote
  };
  struct Target {
    Sink sink;
    int descriptor = -1;
    void put(std::string_view text) { sink.put(descriptor, text); }
    bool terminal = false;
    std::size_t owner = nobody;     ///< the stream whose long line is under way
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
  bool said_ = false; ///< something has come from a rank's standard error
  bool stamp_ = false;
  std::vector<Stream> streams_;
  std::vector<char> buffer_;
};

} // namespace near::launch
