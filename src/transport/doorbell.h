// The doorbell protocol, implemented with the kernel's futexes and barriers.
#pragma once

#include "queue/doorbell.h"
#include "queue/flow_control.h"

namespace near::transport {

struct DoorbellSystem {
  static void wait(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns);
  static void wake(std::uint32_t* word);
  static void barrier_all();
};
using DoorbellCalls = queue::DoorbellProtocol<base::Hardware, DoorbellSystem>;
using FlowControlCalls = queue::FlowControl<base::Hardware, DoorbellSystem>;

} // namespace near::transport
