#include "mpi/network.h"

#include "base/knob.h"
#include "memory/segments.h"
#include "ofi/ofi.h"

#include <algorithm>

namespace near::mpi {

namespace {

/// Asks the launcher. It ends the job when a process dies, so all that it does not end live.
class Launcher : public ofi::Directory {
public:
  explicit Launcher(const boot::Start& start) : start_(start) {}
  ofi::Result address_of(object::ProcessId process, std::vector<std::byte>& address) override {
    return boot::address_of(start_, process.rank, address);
  }
  bool is_elsewhere(object::ProcessId process) override {
    return process.job == 0 && process.rank < start_.size && memory::find_segment_of(process) == nullptr;
  }
  bool has_died(object::ProcessId) override { return false; }
  bool all_leave() override { return boot::all_leave(start_); }

private:
  const boot::Start& start_;
};

bool spans_machines(const boot::Start& start) { return start.here < start.size; }

/// NEAR_NETWORK: a provider, an interface, or both: "verbs;ofi_rxm", "@eth0", "tcp@eth0".
ofi::Choice choice_of(const std::string& text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  ofi::Choice choice;
  choice.provider = text.substr(0, at);
  if (at < text.size()) choice.domain = text.substr(at + 1);
  return choice;
}

} // namespace

boot::Result open_network(boot::Start& start) {
  if (!spans_machines(start)) return boot::meet(start, {});
  const std::string& choice = base::knobs().network.text;
  if (boot::Result opened = ofi::open(choice_of(choice == "auto" ? std::string() : choice)); !opened.ok())
    return base::fail(opened.code(),
                      "this job has {} machines, but no network joins them: {} (NEAR_NETWORK={})",
                      start.machines, std::string(base::failure_text()), choice);
  return boot::meet(start, ofi::own_address());
}

void start_network(const boot::Start& start) {
  if (!spans_machines(start)) return;
  static Launcher directory(start);
  ofi::Settings settings;
  settings.self = {.rank = start.rank};
  settings.secret = start.secret;
  settings.directory = &directory;
  ofi::start(settings);
}

} // namespace near::mpi
