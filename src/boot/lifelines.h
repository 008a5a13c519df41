// Connections between the machines of a job, by which each learns that another one is lost. One process of each machine, the
// first, has them; its machine stands in a ring, and it connects to the next two.
//
//   m1 ---- m2 ---- m3 ---- m4 ---- (m1)
//      \___________/   \___________/
//
// What answers is the kernel of the other machine, not the process: one that computes, or is stopped, is alive. A connection
// ends without a goodbye if its process has died, or if nothing answers for some seconds. Whoever notices tells its own
// neighbours, and they theirs. If any machine is lost, one that is not stands beside one that is, so somebody notices.
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

/// Where the first process of another machine listens.
struct Neighbour {
  std::uint32_t machine = 0; ///< by the launcher's count
  std::string name;          ///< for people
  std::vector<std::byte> address;
  std::uint16_t port = 0;
};

/// A machine that is lost.
struct Loss {
  std::uint32_t machine = 0;
  std::string name;
  bool silent = false;    ///< it does not answer; otherwise its first process has ended
  bool first_hand = true; ///< it is the next one in the ring: this process is the first to say it
};

class Lifelines {
public:
  Lifelines();
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;
  ~Lifelines();

  /// Opens a port at the address of this machine.
  Result listen(std::span<const std::byte> address);
  std::uint16_t port() const { return port_; }

  struct Settings {
    std::uint64_t secret = 0; ///< of the job: what connects without it is turned away
    std::uint32_t machine = 0;
    std::string name;
    std::uint32_t patience = 5; ///< seconds
    std::function<void(const Loss&)> on_loss;
  };
  /// Begins to watch: `poller` reports keys from `first_key` on, which handle() takes.
  Result begin(os::Poller& poller, std::uint64_t first_key, Settings settings);
  /// Connects to the first process of another machine, within the patience; first to that of the next one in the ring.
  Result connect(const Neighbour& to);
  /// Returns false if the key is none of this object's.
  bool handle(std::uint64_t key);
  /// Says goodbye to all, and closes everything.
  void leave();
  /// Closes everything without a word; in a child made by fork(), whose copies would keep the connections open.
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
  std::optional<std::uint32_t> nearest_;   ///< the machine that this one connects to first
  std::vector<std::uint32_t> lost_, left_; ///< machines
};

/// The next two machines in the ring of `count`, the nearer one first: places in the order of the machines.
std::vector<std::uint32_t> next_in_ring(std::uint32_t place, std::uint32_t count);

} // namespace near::boot
