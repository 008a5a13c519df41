// Connections between the machines of a job, by which each learns that another one is lost. They belong to one process on
// each machine, the first. The machines form a ring, and each connects to the next two.
//
//   m1 ---- m2 ---- m3 ---- m4 ---- (m1)
//      \___________/   \___________/
//
// The kernel of the other machine answers, not the process: a process that computes, or is stopped,
// is alive. A connection ends without a goodbye if its process has died, or if nothing answers for
// some seconds. A machine that notices tells its own neighbours, and they tell theirs. If some
// machines are lost, at least one of them has a neighbour that is not, so somebody notices.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace near::os {
class Poller;
}

namespace near::boot {

using base::Result;

/// The address at which the first process on another machine listens.
struct Neighbour {
  std::uint32_t machine = 0; ///< in the launcher's numbering
  std::string name;          ///< for people
  std::vector<std::byte> address;
  std::uint16_t port = 0;
};

/// A machine that is lost.
struct Loss {
  std::uint32_t machine = 0;
  std::string name;
  bool silent = false;    ///< it does not answer; otherwise its first process has ended
  bool first_hand = true; ///< it is the next one in the ring, so this process is the first to report it
};

class Lifelines {
public:
  Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;
  ~Lifelines();

  /// Opens a port at this machine's address.
  Result listen(std::span<const std::byte> address);
  std::uint16_t port() const { return port_; }

  struct Settings {
    std::uint64_t secret = 0; ///< of the job; connections without it are rejected
    std::uint32_t machine = 0;
    std::string name;
    std::uint32_t patience = 5; ///< in seconds
    std::function<void(const Loss&)> on_loss;
  };
  /// Begins to watch: `poller` reports keys from `first_key` on, to be passed to handle().
  Result begin(os::Poller& poller, std::uint64_t first_key, Settings settings);
  /// Connects to the first process on another machine, within the patience. Call it first for the next machine in the ring.
  Result connect(const Neighbour& to);
  /// Returns false if the key does not belong to this object.
  bool handle(std::uint64_t key);
  /// Says goodbye to all, and closes everything.
  void leave();
  /// Closes everything without a goodbye; in a child of fork(), whose copies would keep the connections open.
  void close_all();

private:
  struct Line;
  struct Record;
  void add(int descriptor, const Neighbour* to);
  void accept();
  /// Returns false if the line has ended and is forgotten.
  void read(Line& line);
  bool take(Line& line, const Record& record);
  void lose(Loss loss);
  void send(const Line& line, const Record& record) const;
  Record make_record(std::uint8_t kind) const;
  void end(Line& line);

  os::Poller* poller_ = nullptr;
  std::uint64_t first_key_ = 0, next_key_ = 0;
  Settings settings_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::list<Line> lines_;
  std::optional<std::uint32_t> nearest_;   ///< the machine to which this one connects first
  std::vector<std::uint32_t> lost_, left_; ///< machines
};

/// The next two machines in the ring of `count`, the nearer one first: positions in the order of the machines.
std::vector<std::uint32_t> next_in_ring(std::uint32_t place, std::uint32_t count);

} // namespace near::boot
