// Standard input for several ranks: a thread reads the standard input of mpiexec and writes it to a pipe
// for each rank.
//
//   read from 0 --> | taken by all |  not yet taken by the slower ranks  | free |
//                                  ^ the slowest rank                    ^ the fastest
//
// A rank that does not read delays nobody until the data kept for it fill the buffer. From then on the
// slowest rank sets the pace. A rank that ends, or closes its standard input, is no longer considered.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace near::launch {

class Input {
public:
  /// Makes a pipe for one more rank. `read_end` is for the rank; the caller closes it once the rank has it.
  base::Result add(unsigned rank, int& read_end);
  /// Starts the thread that reads, once all ranks have been started. The object must live as long as the
  /// process.
  base::Result start();

  /// The rank for which all others wait, if there is one.
  struct Hold {
    bool held = false;
    unsigned rank = 0;
    std::uint64_t taken = 0; ///< bytes; grows as long as the rank reads
    friend bool operator==(const Hold&, const Hold&) = default;
  };
  Hold hold() const;

private:
  struct Reader {
    int pipe;
    unsigned rank;
    std::uint64_t taken;
  };
  void carry();
  bool read();
  bool write(Reader& reader) const;
  void tell(const Hold& hold);

  // Owned by the thread once it has started.
  std::vector<Reader> readers_;
  std::unique_ptr<char[]> kept_; ///< a ring: byte n of the input is at n % capacity_
  std::uint64_t capacity_ = 0;
  std::uint64_t come_ = 0; ///< bytes read so far

  mutable std::mutex mutex_; ///< guards hold_
  Hold hold_;
};

} // namespace near::launch
