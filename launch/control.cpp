#include "launch/control.h"

#include "os/descriptor.h"

#include <string>

namespace near::launch {

void Control::send(machines::Kind kind, std::string_view body) {
  if (!is_open()) return;
  const std::string sent = machines::frame(kind, body);
  // If the agent has gone, read() reports it.
  (void)os::send_all(descriptor_, sent.data(), sent.size());
}

void Control::send(machines::Kind kind, std::uint64_t number) {
  send(kind, machines::BodyWriter().number(number).body());
}

bool Control::read(std::vector<machines::Frame>& frames) {
  frames.clear();
  char buffer[4096];
  std::size_t got = 0;
  const os::Transfer what = os::read_some(descriptor_, buffer, sizeof buffer, got);
  if (what == os::Transfer::nothing_now) return true;
  if (what != os::Transfer::some) return false;
  reader_.feed({buffer, got});
  for (machines::Frame frame; reader_.next(frame);) frames.push_back(std::move(frame));
  return !reader_.broken();
}

} // namespace near::launch
