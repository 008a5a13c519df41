// File descriptors: their files, pipes, and complete reads and writes.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace near::os {

using base::Result;

/// Identifies an open file: while it is open, no other file has this pair from fstat(2).
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Gets the identity of the file to which `descriptor` refers. Fails with Code::system if the descriptor is not open.
Result identify(int descriptor, FileIdentity& identity);

/// The outcome of read(2) or write(2).
enum class Transfer { some, nothing_now, ended, failed };

/// Reads once, at most `capacity` bytes. `ended` means the end of the file.
Transfer read_some(int descriptor, char* buffer, std::size_t capacity, std::size_t& bytes);
/// Writes all bytes, waiting as long as that takes. Fails with Code::gone if no reader is left (SIGPIPE must
/// be ignored), otherwise with Code::system and the reason.
Result write_all(int descriptor, const char* data, std::size_t bytes);

/// Sends all bytes over a socket, waiting as long as that takes. Fails with Code::gone if no reader is left; the
/// process gets no SIGPIPE.
Result send_all(int descriptor, const char* data, std::size_t bytes);

/// Holds the lock of an open file against other processes. The lock ends with this object, or with the process.
class FileLock {
public:
  /// Waits until no other process holds the lock. If `descriptor` is -1, or the system does not lock the file, there
  /// is no lock.
  explicit FileLock(int descriptor);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

private:
  int descriptor_;
};

/// Writes once; on a non-blocking descriptor, as much as fits now. `ended` means that no reader is left
/// (SIGPIPE must be ignored).
Transfer write_some(int descriptor, const char* data, std::size_t size, std::size_t& bytes);

/// A descriptor to write to, with the results of wait_for_transfer().
struct Outlet {
  int descriptor;
  bool wanted; ///< input: there is something to write
  bool ready;  ///< result: `wanted`, and the descriptor accepts data
  bool gone;   ///< result: no reader is left
};
/// Waits until `source` (-1: none) is readable or at its end, or until one of the outlets is ready or gone.
/// Returns whether `source` is readable or at its end.
bool wait_for_transfer(int source, std::span<Outlet> outlets);

/// Waits until one of the descriptors can be read or has ended, for at most `timeout_ns`. Returns whether one can.
/// Returns false early if a signal arrives.
bool wait_until_readable(std::span<const int> descriptors, std::uint64_t timeout_ns);

/// Makes a pipe with both ends close-on-exec and a non-blocking read end.
Result make_pipe(int& read_end, int& write_end);
/// Makes a pipe for the standard input of another program. Both ends are close-on-exec; the write end is
/// non-blocking.
Result make_input_pipe(int& read_end, int& write_end);
/// Makes two connected sockets, close-on-exec. `own` is non-blocking.
Result make_sockets(int& own, int& other);
/// Opens a file for appending, close-on-exec. Creates it if it does not exist, and does not truncate it.
/// Fails, with the name in the message, if it is a named pipe without a reader, instead of waiting for one.
Result open_output_file(const std::string& name, int& descriptor);
/// Truncates a file; pipes, terminals and other devices are left alone. `name` is for the message.
Result empty_file(int descriptor, const std::string& name);
/// Closes the descriptor in programs that this process becomes or starts.
void close_on_exec(int descriptor);
/// Makes these descriptors the standard input, output and error of this process. The originals stay open.
void redirect(int input, int output, int error);
/// Opens /dev/null as those of the descriptors 0, 1 and 2 that are closed, so that no other file gets such a number.
void fill_standard_descriptors();
/// Opens /dev/null for reading, close-on-exec.
Result open_null(int& descriptor);
bool is_terminal(int descriptor);
/// Whether the descriptor is a terminal in whose foreground this process's group is.
bool is_foreground_terminal(int descriptor);
/// Whether the descriptor is the terminal of this process's session, which controls its jobs.
bool is_controlling_terminal(int descriptor);

} // namespace near::os
