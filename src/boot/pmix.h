// PMIx, the interface between the processes of a job and launchers such as Open MPI's prterun and Slurm's srun
// --mpi=pmix. Its protocol is internal to libpmix, which talks to the launcher in a thread of its own (pmix_library.h).
//
//   process                                        libpmix, launcher
//   PMIx_Init                            ------->
//                                        <-------  job and rank, and whatever is known of the other processes
//   PMIx_Get(pmix.job.size, pmix.hname)            answered in this process
//   PMIx_Put, PMIx_Commit                ------->
//   PMIx_Fence(pmix.collect)             ------->  once all have sent it, the launcher of each machine knows what all have put:
//                                        <-------
//   PMIx_Get(rank, key)                  ------->  answered on this machine
//                                        <-------
//   PMIx_Finalize                        ------->
#pragma once

#include "base/atomic.h"
#include "boot/pmix_library.h"
#include "boot/table.h"

#include <memory>

namespace near::boot {

class Pmix : public Table {
public:
  /// Whether this is the environment of a process of a PMIx launcher.
  static bool is_offered(char** environment);

  Pmix() = default;
  /// Uses these functions instead of libpmix's.
  explicit Pmix(const pmix::Library& library) : library_(&library) {}

  /// Loads libpmix and connects to the launcher, according to the environment of this process.
  Result connect(char** environment) override;
  Result find_machines(std::vector<std::uint32_t>& machine_of) override;
  Result put(std::string_view key, std::string_view value) override;
  Result fence() override;
  Result begin_fence() override;
  Result look_at_fence(bool& over) override;
  Result get(std::uint32_t rank, std::string_view key, std::string& value) override;
  Result finalize() override;
  void when_lost(void (*callback)()) override;
  void abort(int status) override;

private:
  struct Freed {
    void operator()(pmix::Value* value) const;
  };
  using Owned = std::unique_ptr<pmix::Value, Freed>;

  Result check(int status, const char* function) const;
  pmix::Process process(std::uint32_t rank) const;
  /// Gets what is known about a process, or, with all_ranks, about the job.
  Result look_up(std::uint32_t rank, const char* key, const pmix::Info& directive, Owned& value) const;
  Result number_of(std::uint32_t rank, const char* key, std::uint32_t& number) const;
  Result text_of(std::uint32_t rank, const char* key, const pmix::Info& directive, std::string& text) const;

  const pmix::Library* library_ = nullptr;
  pmix::Process self_{};
  base::Atomic<int> fence_status_{0}; ///< of begin_fence(): libpmix's answer, once it has come
  base::Atomic<std::uint32_t> abort_answered_{0};
  base::Atomic<int> abort_status_{0};
};

} // namespace near::boot
