// The client's side of PMI-1, the protocol by which launchers such as MPICH's Hydra and Slurm (srun --mpi=pmi2) tell the
// processes of a job who they are: lines of `key=value` over an inherited socket, and a table of texts shared by all
// processes.
//   process                                             launcher
//   cmd=init pmi_version=1 pmi_subversion=1  ------->
//                                            <-------   cmd=response_to_init ... rc=0
//   cmd=put kvsname=K key=k value=v          ------->
//   cmd=barrier_in                           ------->   once all have sent it:
//                                            <-------   cmd=barrier_out
//   cmd=get kvsname=K key=k                  ------->
//                                            <-------   cmd=get_result rc=0 value=v
//   cmd=finalize                             ------->
//                                            <-------   cmd=finalize_ack
#pragma once

#include "boot/table.h"

namespace near::boot {

class Pmi : public Table {
public:
  /// Whether the environment names a socket of a PMI-1 launcher, and this process's rank among several.
  static bool is_offered(char** environment);
  /// The number of processes of the job according to the environment; 0 if it is not a number.
  static std::uint32_t size_in(char** environment);

  /// Connects to the launcher. Fails with Code::unsupported if it speaks another version.
  Result connect(char** environment) override;
  /// Connects over this descriptor, which stays open until this process ends.
  Result connect(int descriptor, std::uint32_t rank, std::uint32_t size);
  Result find_machines(std::vector<std::uint32_t>& machine_of) override;

  Result put(std::string_view key, std::string_view value) override;
  Result fence() override;
  Result begin_fence() override;
  Result look_at_fence(bool& over) override;
  Result get(std::uint32_t, std::string_view key, std::string& value) override { return get(key, value); }
  /// Gets a value, whether a process or the launcher itself has put it.
  Result get(std::string_view key, std::string& value);
  Result finalize() override;
  void abort(int status) override;

private:
  /// Sends a request and reads the answer, which must have the name `answer` and no error.
  Result ask(std::string_view request, std::string_view answer, std::string& line);
  Result take_answer(std::string_view request, std::string_view answer, std::string& line);
  Result read_line(std::string& line);

  int descriptor_ = -1;
  std::string table_;    ///< kvsname
  std::string received_; ///< received after the last line
};

/// The value of `key` in a PMI-1 line; empty if it is absent. The value of `value` or `msg` extends to the next key or to the end.
std::string_view field_of(std::string_view line, std::string_view key);

/// Reads PMI_process_mapping, such as "(vector,(0,2,4))": blocks of (first machine, machines, processes on each), in the order
/// of the ranks, repeated as needed. A block may be just a machine, which has one process, and several blocks may be repeated:
/// "(vector,[0,(1,1,2)]x3,0)". Gets the machine of each rank; fails with Code::invalid if the text is malformed.
Result machines_of(std::string_view mapping, std::uint32_t size, std::vector<std::uint32_t>& machines);

} // namespace near::boot
