#include "planning/units.h"

#include <map>

namespace near::planning {

bool comes_before(const Unit& one, const Unit& other) {
  return std::pair(one.core->index, one.cpus.first()) < std::pair(other.core->index, other.cpus.first());
}

unsigned domain_of(const Core& core, Level level) {
  switch (level) {
  case Level::hwthread:
  case Level::core: return core.index;
  case Level::l2: return core.l2;
  case Level::l3: return core.l3;
  case Level::numa: return core.numa;
  case Level::package: return core.package;
  case Level::machine: break;
  }
  return 0;
}

Units usable_units(const Machine& machine, const CpuSet& allowed, bool hwthreads) {
  Units units;
  for (const auto& core : machine.cores) {
    CpuSet cpus = core.cpus & allowed;
    if (cpus.empty()) continue;
    if (!hwthreads) {
      units.push_back({cpus, &core});
      continue;
    }
    for (unsigned cpu : cpus.members()) {
      CpuSet one;
      one.add(cpu);
      units.push_back({one, &core});
    }
  }
  return units;
}

std::vector<Units> grouped(const Units& units, Level level) {
  std::map<unsigned, std::size_t> position;
  std::vector<Units> groups;
  for (const auto& unit : units) {
    auto [at, fresh] = position.try_emplace(domain_of(*unit.core, level), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(unit);
  }
  return groups;
}

unsigned capacity_of(const Units& group, unsigned threads) {
  return static_cast<unsigned>(group.size()) / threads;
}

CpuSet cpus_of(const Units& units) {
  CpuSet all;
  for (const auto& unit : units) all = all | unit.cpus;
  return all;
}

} // namespace near::planning
