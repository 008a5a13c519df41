#include "launch/published_machine.h"

#include "base/log.h"
#include "profile/profile.h"
#include "segment/machine.h"

namespace near::launch {
namespace {

std::uint32_t kind_of(topo::Tier tier) {
  switch (tier) {
  case topo::Tier::dram: return static_cast<std::uint32_t>(segment::Tier::dram);
  case topo::Tier::hbm: return static_cast<std::uint32_t>(segment::Tier::hbm);
  case topo::Tier::slow: return static_cast<std::uint32_t>(segment::Tier::slow);
  case topo::Tier::device: break;
  }
  return static_cast<std::uint32_t>(segment::Tier::count);
}

} // namespace

segment::NearestNodes nearest_nodes(const topo::Machine& machine, const os::CpuSet& cpus) {
  static constexpr std::pair<segment::Tier, topo::Tier> kinds[] = {{segment::Tier::dram, topo::Tier::dram},
                                                                   {segment::Tier::hbm, topo::Tier::hbm},
                                                                   {segment::Tier::slow, topo::Tier::slow}};
  segment::NearestNodes nearest;
  for (auto [kind, its] : kinds)
    nearest.of[static_cast<std::size_t>(kind)] =
        static_cast<std::int16_t>(topo::nearest_node(machine, cpus, its));
  return nearest;
}

bool publish(const topo::Machine& machine, segment::Segment& segment) {
  segment::Machine tables;
  auto nodes = static_cast<std::uint32_t>(machine.nodes.size());
  if (!segment::make_machine(segment, machine.cpus().count(), nodes, tables).ok()) {
    base::log(base::Level::debug, "{}", base::failure_text());
    return false;
  }
  auto processor = tables.processors.begin();
  for (const auto& core : machine.cores)
    for (unsigned number : core.cpus.members()) {
      auto narrow = [](unsigned value) { return static_cast<std::uint16_t>(value); };
      *processor++ = {narrow(number),  narrow(core.index), narrow(core.l2),
                      narrow(core.l3), narrow(core.numa),  narrow(core.package)};
    }
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    const auto& node = machine.nodes[i];
    tables.nodes[i] = {node.bytes, static_cast<std::int32_t>(node.number), kind_of(node.tier)};
    for (std::size_t other = 0; other < machine.nodes.size(); ++other)
      tables.distances[i * machine.nodes.size() + other] = static_cast<std::uint16_t>(
          machine.distance(static_cast<unsigned>(i), static_cast<unsigned>(other)));
  }
  return true;
}

void publish_devices(const topo::Machine& machine, const topo::Machine& published,
                     const segment::Segment& segment) {
  std::vector<segment::MachineDevice> devices;
  for (const auto& device : machine.devices) {
    segment::MachineDevice told{};
    device.name.copy(told.name, sizeof told.name - 1);
    told.near = profile::location_of(machine, device.near);
    told.nic = device.kind == topo::Device::Kind::nic ? 1 : 0;
    told.verbs = device.verbs ? 1 : 0;
    devices.push_back(told);
  }
  segment::add_devices(segment, published.cpus().count(), static_cast<std::uint32_t>(published.nodes.size()),
                       devices);
}

} // namespace near::launch
