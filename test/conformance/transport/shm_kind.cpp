// Runs the suite on the node transport, in two processes of one job. The test's process acts as the launcher.
#include "kind.h"
#include "processes.h"

#include "segment/segment.h"
#include "shm/shm.h"

#include <algorithm>

namespace near::test {

namespace {

class Shm : public Kind {
public:
  /// `ranks`: of the two processes in a job that has others on other machines.
  Shm(std::string name, std::vector<std::pair<std::string, std::string>> knobs,
      std::vector<std::uint32_t> ranks = {})
      : name_(std::move(name)), knobs_(std::move(knobs)), ranks_(std::move(ranks)) {}
  std::string name() const override { return name_; }
  bool queues_eager() const override { return has("NEAR_QUEUE_SLOTS", "4"); }
  bool announces_space() const override { return queues_eager(); }
  bool has_fast_path() const override { return !has("NEAR_LANES", "0"); }
  bool may_forbid_copies() const override { return true; }
  int most_unreleased() const override { return static_cast<int>(base::knobs().credits.number); }

  void run(const std::function<void(Part&)>& body, bool receiver_dies) override {
    segment::Segment segment;
    ASSERT_TRUE(segment.create(2, 2, 2).ok()) << base::failure_text();
    Meeting meeting;
    run_two(
        meeting, receiver_dies ? 1 : -1,
        [&](std::uint32_t rank) {
          for (const auto& [knob, value] : knobs_) setenv(knob.c_str(), value.c_str(), 1);
          require(base::read_knobs(environ).ok(), "knobs");
          require(shm::start({segment.descriptor(), rank, 2, ranks_}).ok(), "start");
          const std::uint32_t other = ranks_.empty() ? 1 - rank : ranks_[1 - rank];
          Part part{rank == 0, rank == 1, &transport::peer_at({.rank = other}), [&] { meeting.meet(rank); },
                    [&] { meeting.wait_for_end(rank); }};
          body(part);
          transport::stop();
        },
        [&](std::uint32_t rank, int) {
          // As mpiexec marks a process that it has seen end.
          auto& phase = segment.entry(rank).phase;
          if (phase.load_relaxed() != static_cast<std::uint32_t>(segment::Phase::finalized))
            phase.store_release(static_cast<std::uint32_t>(segment::Phase::dead)); // SYNC: rank-phase
        });
  }

private:
  bool has(const std::string& knob, const std::string& value) const {
    return std::find(knobs_.begin(), knobs_.end(), std::pair(knob, value)) != knobs_.end();
  }

  std::string name_;
  std::vector<std::pair<std::string, std::string>> knobs_;
  std::vector<std::uint32_t> ranks_;
};

Shm shm("shm", {}),
    scarce("shm_scarce", {{"NEAR_QUEUE_SLOTS", "4"}, {"NEAR_PACKETS", "16"}, {"NEAR_LANES", "1"}}),
    pipelined("shm_pipelined", {{"NEAR_COPY", "pipelined"}, {"NEAR_PACKETS", "16"}}),
    cma("shm_cma", {{"NEAR_COPY", "cma"}, {"NEAR_LANES", "0"}}),
    several_machines("shm_of_several_machines", {}, {7, 12});

} // namespace

Kind& shm_kind(int which) {
  Kind* all[] = {&shm, &scarce, &pipelined, &cma, &several_machines};
  return *all[which];
}

} // namespace near::test
