// Standard input for several ranks: a thread reads mpiexec's own and writes it to a pipe of each.
//
//   read from 0 --> | taken by all |  what the slower ranks have not taken yet  | room |
//                                  ^ the slowest rank                           ^ the fastest
//
// A rank that does not read stops nobody until what waits for it fills the memory for that; from then on the
// slowest rank sets the pace. A rank that ends, or closes its standard input, is left out from then on.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace near::launch {

class Input {
public:
  /// A pipe for one more rank; `read_end` is for the rank, the caller closes it once the rank has it.
  base::Result add(unsigned rank, int& read_end);
  /// Starts to read, once all ranks have been started. The object must live as long as the process.
  base::Result start();

  /// The rank that all others wait for.
  struct Hold {
    bool held = false;
    unsigned rank = 0;
    std::uint64_t taken = 0; ///< bytes; the rank reads as long as they become more
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

  // The thread's, once it has started.
  std::vector<Reader> readers_;
  std::unique_ptr<char[]> kept_; ///< byte n of the input is at n % capacity_
  std::uint64_t capacity_ = 0;
  std::uint64_t come_ = 0; ///< bytes that have been read

  mutable std::mutex mutex_; ///< of hold_
  Hold hold_;
};

} // namespace near::launch
