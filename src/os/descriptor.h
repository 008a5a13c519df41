// File descriptors: which file one refers to, pipes, and reading and writing without surprises.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace near::os {

using base::Result;

/// What tells two open files apart while either is open: the pair that fstat(2) gives.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Which file `descriptor` refers to. Fails (Code::system) when it is not open.
Result identify(int descriptor, FileIdentity& identity);

/// What read(2) and write(2) gave, without their special numbers.
enum class Transfer { some, nothing_now, ended, failed };

/// Reads once, at most `capacity` bytes. `ended` is the end of the file.
Transfer read_some(int descriptor, char* buffer, std::size_t capacity, std::size_t& bytes);
/// As read_some, but waits: also where somebody has made the file description non-blocking.
Transfer read_waiting(int descriptor, char* buffer, std::size_t capacity, std::size_t& bytes);
/// Writes all of it, waiting as long as that takes. Fails with Code::gone when nobody reads any more (with
/// SIGPIPE ignored), with Code::system and the reason otherwise.
Result write_all(int descriptor, const char* data, std::size_t bytes);

/// Writes once, as much as there is room for now where the descriptor does not wait. `ended` means that
/// nobody reads any more (with SIGPIPE ignored).
Transfer write_some(int descriptor, const char* data, std::size_t size, std::size_t& bytes);

/// A descriptor to write to, and what wait_for_transfer has found out about it.
struct Outlet {
  int descriptor;
  bool wanted; ///< there is something to write
  bool ready;  ///< `wanted`, and something can be written
  bool gone;   ///< nobody reads any more
};
/// Waits until `source` (-1: none) can be read or has ended, or one of the outlets is ready or gone. Returns
/// whether that is so of `source`.
bool wait_for_transfer(int source, std::span<Outlet> outlets);

/// Waits until one of the descriptors can be read or has ended, at most `timeout_ns`; true if one can. Ends early,
/// with false, when a signal arrives.
bool wait_until_readable(std::span<const int> descriptors, std::uint64_t timeout_ns);

/// A pipe, both ends close-on-exec; reading does not wait, writing does.
Result make_pipe(int& read_end, int& write_end);
/// A pipe for the standard input of another program, both ends close-on-exec: reading waits, writing does
/// not.
Result make_input_pipe(int& read_end, int& write_end);
/// Opens a file for appending, which is made if need be and not emptied; close-on-exec. The failure names it:
/// also a named pipe that nobody reads, for which it does not wait.
Result open_output_file(const std::string& name, int& descriptor);
/// Takes what was in the file before; a pipe, terminal or other device stays as it is. `name` is for the
/// message.
Result empty_file(int descriptor, const std::string& name);
/// Opens /dev/null where descriptor 0, 1 or 2 is closed, so that no other file can get such a number.
void fill_standard_descriptors();
/// /dev/null for reading, close-on-exec.
Result open_null(int& descriptor);
bool is_terminal(int descriptor);
/// Terminal with this process's group in its foreground.
bool is_foreground_terminal(int descriptor);

} // namespace near::os
