// A segment whose words a test overwrites, and all that outside readers do with it.
#pragma once

#include "segment/activity.h"
#include "segment/machine.h"
#include "segment/traffic.h"

#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace near::segment {

/// The segment of a job of four processes, all initialised; it is valid until the test overwrites it.
class Crafted {
public:
  static constexpr std::uint32_t processes = 4;
  /// Bytes that may be overwritten: the header, the rank table with the machine behind it, the control pages.
  static constexpr std::size_t page = 4096, area = (2 + processes) * page;

  Crafted() {
    made_ = segment_.create(processes, processes, 2).ok();
    if (!made_) return;
    Machine machine;
    made_ = make_machine(segment_, 3, 2, machine).ok();
    for (std::uint32_t row = 0; row < processes; ++row) {
      Offset region = segment_.region(row);
      auto* control = new (segment_.at<std::byte>(region)) ControlPage{};
      control->traffic = region + 16 * page;
      control->statistics = region + 32 * page;
      control->arena = region + 64 * page;
      segment_.at<Traffic>(control->traffic)->messages.store_relaxed(3);
      segment_.entry(row).pid.store_relaxed(100 + row);
      segment_.entry(row).phase.store_release(static_cast<std::uint32_t>(Phase::ready));
    }
    right_.resize(area);
    for (std::size_t i = 0; i < area / page; ++i) std::memcpy(right_.data() + i * page, at(i * page), page);
  }

  bool made() const { return made_; }
  int descriptor() const { return segment_.descriptor(); }
  Header& header() const { return segment_.header(); }
  /// `where` is below `area`.
  void overwrite(std::size_t where, const void* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count && where + i < area; ++i)
      *at(where + i) = static_cast<const std::byte*>(bytes)[i];
  }
  void repair() {
    for (std::size_t i = 0; i < area / page; ++i) std::memcpy(at(i * page), right_.data() + i * page, page);
  }

  /// What `near` and mpiexec read and print; "" if the segment cannot be mapped.
  std::string read() const {
    Segment seen;
    if (!seen.attach(descriptor(), false).ok()) return {};
    std::string text = seen.name() + '\n' + job_table(seen, descriptor(), {}, 1);
    std::uint64_t sum = 0;
    Machine machine;
    if (find_machine(seen, machine)) {
      for (const auto& processor : machine.processors) sum += processor.number;
      for (const auto& node : machine.nodes) sum += node.bytes;
      for (auto distance : machine.distances) sum += distance;
      for (const auto& device : machine.devices) sum += static_cast<unsigned char>(device.name[39]);
    }
    return text + std::to_string(sum) + '\n';
  }

private:
  /// The control pages are in the regions.
  std::byte* at(std::size_t where) const {
    std::size_t number = where / page;
    return segment_.base() +
           (number < 2 ? where : segment_.region(static_cast<std::uint32_t>(number - 2)) + where % page);
  }
  Segment segment_;
  bool made_ = false;
  std::vector<std::byte> right_;
};

/// Whether a terminal would interpret part of the text as a command.
inline bool has_commands(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto each = static_cast<unsigned char>(text[i]);
    if ((each < 0x20 && each != '\n') || each == 0x7f) return true;
    // U+0080 to U+009F in UTF-8. Names may contain all other letters.
    if (each == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

} // namespace near::segment
