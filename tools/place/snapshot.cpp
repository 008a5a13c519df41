#include "place/snapshot.h"

#include "segment/activity.h"

#include <algorithm>

namespace near::place {

namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view without(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

} // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
  case Kind::program: return "program";
  case Kind::library: return "library";
  case Kind::heap: return "heap";
  case Kind::stack: return "stack";
  case Kind::anonymous: return "anonymous";
  case Kind::segment: return "segment";
  case Kind::shared: return "shared";
  case Kind::file: return "file";
  case Kind::kernel: return "kernel";
  }
  return "?";
}

Kind kind_of(const SmapsEntry& entry, const std::string& program) {
  std::string_view name = entry.name;
  if (name == "[heap]") return Kind::heap;
  if (name.starts_with("[stack")) return Kind::stack;
  if (name == "[vdso]" || name.starts_with("[vvar") || name == "[vsyscall]" || name == "[uprobes]")
    return Kind::kernel;
  if (name.starts_with("/memfd:nearmpi")) return Kind::segment;
  if (entry.shared()) return Kind::shared;
  if (name.empty() || name.starts_with("[anon")) return Kind::anonymous;
  if (!program.empty() && name == program) return Kind::program;
  auto file = last_part(without(name, " (deleted)"));
  if (file.ends_with(".so") || file.find(".so.") != std::string_view::npos) return Kind::library;
  return Kind::file;
}

Share Process::own() const {
  Share sum;
  for (const auto& mapping : mappings) sum += mapping.own;
  return sum;
}

segment::Amount Flow::total() const {
  segment::Amount sum;
  for (const auto& amount : sent) sum += amount;
  return sum;
}

BytesOn Snapshot::bytes_on() const {
  BytesOn sum;
  for (const auto& process : processes)
    for (auto [node, bytes] : process.bytes_on) sum[node] += bytes;
  return sum;
}

std::string Snapshot::program() const {
  for (const auto& process : processes)
    if (!process.program.empty()) return std::string(last_part(process.program));
  return {};
}

const Process& Snapshot::process_of(int rank) const {
  return *std::find_if(processes.begin(), processes.end(),
                       [&](const Process& each) { return each.rank == rank; });
}

std::vector<int> nodes_of(const std::vector<os::Node>& nodes, const os::CpuSet& cpus) {
  std::vector<int> found;
  for (const auto& node : nodes)
    if (!(node.cpus & cpus).empty()) found.push_back(node.number);
  return found;
}

void append_page(std::vector<Range>& ranges, std::uint64_t begin, std::uint64_t bytes, int node, bool wrong) {
  if (!ranges.empty() && ranges.back().end == begin && ranges.back().node == node &&
      ranges.back().wrong == wrong)
    ranges.back().end += bytes;
  else
    ranges.push_back({begin, begin + bytes, node, wrong});
}

Weight weight_of(const Snapshot& snapshot) {
  Weight weight;
  weight.job = !snapshot.job.empty();
  for (const auto& process : snapshot.processes)
    if (process.problem.empty() && process.phase == segment::phase_name(segment::Phase::ready))
      ++weight.ranks;
  for (auto [node, count] : snapshot.bytes_on()) weight.bytes += count;
  for (const auto& part : snapshot.parts)
    for (auto [node, count] : part.bytes_on) weight.bytes += count;
  return weight;
}

} // namespace near::place
