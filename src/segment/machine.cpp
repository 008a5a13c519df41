#include "segment/machine.h"

#include "base/checked.h"
#include "os/memory.h"

#include <algorithm>
#include <new>

namespace near::segment {

using base::Code;
using base::fail;

namespace {

constexpr std::uint32_t most_processors = 1u << 16, most_nodes = 1u << 10; // the kernel's maximum

std::uint64_t bytes_for(std::uint64_t processors, std::uint64_t nodes) {
  auto whole = [](std::uint64_t bytes) { return base::round_up(bytes, 8); };
  return sizeof(MachineHead) + whole(processors * sizeof(MachineProcessor)) + nodes * sizeof(MachineNode) +
         whole(nodes * nodes * sizeof(std::uint16_t)) + most_devices * sizeof(MachineDevice);
}

/// The tables after a head, with the first `devices` of the last one.
Machine tables(MachineHead& head, std::uint32_t processors, std::uint32_t nodes, std::uint32_t devices) {
  auto* at = reinterpret_cast<std::byte*>(&head + 1);
  auto next = [&at]<class T>(T*, std::uint64_t count) {
    std::span<T> table(reinterpret_cast<T*>(at), count);
    at += base::round_up(count * sizeof(T), 8);
    return table;
  };
  Machine machine;
  machine.processors = next(static_cast<MachineProcessor*>(nullptr), processors);
  machine.nodes = next(static_cast<MachineNode*>(nullptr), nodes);
  machine.distances = next(static_cast<std::uint16_t*>(nullptr), std::uint64_t{nodes} * nodes);
  machine.devices = next(static_cast<MachineDevice*>(nullptr), devices);
  return machine;
}

/// At a fixed place; the header's offset may have been overwritten.
MachineHead& head_of(const Segment& segment) { return *segment.at<MachineHead>(table_bytes(segment.rows())); }

} // namespace

Result make_machine(Segment& segment, std::uint32_t processors, std::uint32_t nodes, Machine& machine) {
  auto& header = segment.header();
  std::uint64_t begin = table_bytes(segment.rows());
  std::uint64_t bytes = bytes_for(processors, nodes);
  if (processors > most_processors || nodes > most_nodes || begin + bytes > segment.stride())
    return fail(Code::limit, "the launcher's part of the segment has no space for {} processors and {} nodes",
                processors, nodes);
  NEAR_TRY(os::populate(segment.at<std::byte>(begin), base::round_up(bytes, os::page_size())));
  auto* head = new (segment.at<std::byte>(begin)) MachineHead{};
  head->processor_count = processors;
  head->node_count = nodes;
  header.machine = begin;
  machine = tables(*head, processors, nodes, 0);
  return {};
}

void add_devices(const Segment& segment, std::uint32_t processors, std::uint32_t nodes,
                 std::span<const MachineDevice> devices) {
  MachineHead& head = head_of(segment);
  auto count = std::min(static_cast<std::uint32_t>(devices.size()), most_devices);
  auto listed = tables(head, processors, nodes, count).devices;
  std::copy_n(devices.begin(), count, listed.begin());
  // SYNC: devices-listed. Release: a process that sees the count sees the devices.
  head.device_count.store_release(count);
}

bool find_machine(const Segment& segment, Machine& machine) {
  std::uint64_t begin = table_bytes(segment.rows());
  if (base::load_once(segment.header().machine) != begin || begin + sizeof(MachineHead) > segment.stride())
    return false;
  MachineHead& head = head_of(segment);
  std::uint32_t processors = base::load_once(head.processor_count), nodes = base::load_once(head.node_count);
  if (processors > most_processors || nodes > most_nodes ||
      bytes_for(processors, nodes) > segment.stride() - begin)
    return false;
  // SYNC: devices-listed. Acquire: this many devices were written before.
  machine = tables(head, processors, nodes, std::min(head.device_count.load_acquire(), most_devices));
  return true;
}

} // namespace near::segment
