// The supervisor's connection to the agent of its machine, in a job on several machines (machines/frames.h).
#pragma once

#include "machines/frames.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace near::launch {

class Control {
public:
  /// `descriptor` is Part::control; if it is -1, there is no agent, and send() has no effect.
  void open(int descriptor) { descriptor_ = descriptor; }
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// Waits for the agent if necessary; the agent always reads.
  void send(machines::Kind kind, std::string_view body = {});
  void send(machines::Kind kind, std::uint64_t number);
  /// Reads what has arrived. Returns false if the agent has gone.
  bool read(std::vector<machines::Frame>& frames);

private:
  int descriptor_ = -1;
  machines::FrameReader reader_;
};

} // namespace near::launch
