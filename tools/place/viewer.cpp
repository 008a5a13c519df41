#include "place/viewer.h"

#include "os/memory.h"
#include "os/process.h"
#include "place/parts.h"
#include "place/process.h"
#include "segment/activity.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace near::place {

using base::Code;
using base::fail;

namespace {

std::string now_text() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::vector<Flow> read_flows(const segment::Segment& segment, int descriptor) {
  const std::uint32_t ranks = segment.job_size();
  std::vector<Flow> flows;
  for (std::uint32_t from = 0; from < ranks; ++from) {
    if (!segment::has_region(segment, from)) continue;
    for (const auto& [to, sent] : segment::traffic_of(segment, descriptor, from)) {
      if (to >= ranks) break;
      auto distance =
          from == to ? segment::Distance::core // also of one that is not bound
                     : segment::distance_between(segment.entry(from).location, segment.entry(to).location);
      flows.push_back({static_cast<int>(from), static_cast<int>(to), distance, sent});
    }
  }
  return flows;
}

/// In a job on several machines, the rows of this machine's segment have different numbers from their ranks. Everything was
/// found by row; from here on it is identified by its rank.
class Ranks {
public:
  explicit Ranks(const segment::Segment& segment) {
    for (std::uint32_t row = 0; row < segment.job_size(); ++row)
      of_row_.push_back(static_cast<int>(segment.entry(row).rank));
  }
  void name(int& row) const {
    if (row >= 0 && static_cast<std::size_t>(row) < of_row_.size())
      row = of_row_[static_cast<std::size_t>(row)];
  }
  void name(std::vector<Flow>& flows) const {
    for (Flow& flow : flows) name(flow.from), name(flow.to);
  }
  void name(Snapshot& snapshot) const {
    for (Process& process : snapshot.processes) name(process.rank);
    for (Part& part : snapshot.parts) {
      name(part.owner);
      for (int& row : part.mapped_by) name(row);
    }
  }

private:
  std::vector<int> of_row_;
};

} // namespace

Viewer::~Viewer() { os::close_descriptor(descriptor_); }

Result Viewer::open_job(std::int32_t launcher) {
  NEAR_TRY(segment::open_job(launcher, descriptor_));
  NEAR_TRY(segment_.attach(descriptor_, false));
  pid_ = launcher;
  return {};
}

Result Viewer::open_process(std::int32_t pid) {
  std::string text;
  NEAR_TRY(os::read_process_file(pid, "smaps", text));
  pid_ = pid;
  return {};
}

Result Viewer::sample(Snapshot& snapshot) {
  auto started = std::chrono::steady_clock::now();
  Snapshot made;
  made.launcher = pid_;
  made.at = now_text();
  made.page_bytes = os::page_size();
  NEAR_TRY(os::read_nodes(made.nodes));
  if (!segment_.mapped()) {
    Process process;
    process.pid = pid_;
    NEAR_TRY(read_process(made.nodes, process));
    made.processes.push_back(std::move(process));
  } else {
    made.job = segment_.name();
    bool any = false;
    for (std::uint32_t rank = 0; rank < segment_.job_size(); ++rank) {
      Process process;
      read_rank(segment_, pid_, rank, made.nodes, process);
      any |= process.problem.empty();
      made.processes.push_back(std::move(process));
    }
    // If every rank has the same problem (no permission, no NUMA), there is nothing to show.
    if (!any) {
      std::string problem = made.processes.empty() ? "it has no ranks" : made.processes[0].problem;
      return fail(Code::gone, "no rank of {} can be inspected: {}", made.job, problem);
    }
    locate_segment(segment_, descriptor_, made);
    Ranks(segment_).name(made);
    read_traffic(made);
  }
  made.took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  snapshot = std::move(made);
  return {};
}

void Viewer::read_traffic(Snapshot& snapshot) const {
  if (!segment_.mapped() || snapshot.job != segment_.name()) return;
  snapshot.flows = read_flows(segment_, descriptor_);
  Ranks(segment_).name(snapshot.flows);
  for (std::uint32_t row = 0; row < segment_.job_size() && row < snapshot.processes.size(); ++row)
    if (segment::has_region(segment_, row))
      snapshot.processes[row].sent_elsewhere = segment::sent_elsewhere(segment_, row);
}

} // namespace near::place
