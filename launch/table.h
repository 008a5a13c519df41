// The table that all processes of a job on several machines share, as seen by the ranks on this machine: the supervisor
// answers them by PMI-1 (boot/pmi.h). mpiexec keeps the table itself, and knows when all machines have entered a fence.
//
//   rank                          supervisor                        agent ... mpiexec
//   put      -------------------> put       ----------------------------------->
//   barrier_in (every rank) ----> fence     ----------------------------------->
//            <------------------- barrier_out <-------------------- fence_over
//   get      -------------------> get (unless known) -------------------------->
//            <------------------- get_result  <-------------------- value
#pragma once

#include "launch/control.h"
#include "os/poller.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace near::launch {

class Table {
public:
  explicit Table(Control& control) : control_(control) {}
  /// Call before the first rank is started: sets how many ranks there will be.
  void expect(std::size_t rows) { rows_ = rows; }
  /// Makes the connection for the next row, which the poller reports as `key`. `for_rank` is the rank's end; the caller closes
  /// it once the rank has it.
  base::Result add(os::Poller& poller, std::uint64_t key, int& for_rank);
  /// Whether the rank of this row is waiting in MPI_Init or MPI_Finalize for all others.
  bool is_in_fence(unsigned row) const { return row < clients_.size() && clients_[row].in_fence; }
  /// Answers a request from the rank of this row.
  void readable(unsigned row);
  /// Passes on a message from mpiexec: Kind::value or Kind::fence_over.
  void told(const machines::Frame& frame);

private:
  struct Client {
    int descriptor = -1; ///< -1: closed
    std::string received;
    std::string awaited; ///< the key that it has requested
    bool in_fence = false;
  };
  void answer(Client& client, std::string_view line);
  void serve(Client& client, const std::string& line);
  void answer_get(Client& client, const std::string& key);
  void enter_fence(Client& client);
  void close(Client& client);

  Control& control_;
  os::Poller* poller_ = nullptr;
  std::size_t rows_ = 0;
  std::vector<Client> clients_;                           ///< by row, for the ranks that have been started
  std::map<std::string, std::string, std::less<>> known_; ///< rows that mpiexec has sent; they do not change
};

} // namespace near::launch
