#include "mpi/network.h"

#include "base/knob.h"
#include "base/log.h"
#include "boot/watch.h"
#include "memory/segments.h"
#include "ofi/ofi.h"
#include "os/process.h"
#include "transport/watch_start.h"

#include <algorithm>
#include <cstring>

namespace near::mpi {

namespace {

/// What a process publishes.
struct Published {
  std::uint16_t port = 0; ///< on which other machines watch this one, if this process is the first here
  std::string machine;    ///< its name
  std::vector<std::byte> address;
};

std::vector<std::byte> write(const Published& published) {
  std::vector<std::byte> bytes(sizeof published.port);
  std::memcpy(bytes.data(), &published.port, sizeof published.port);
  const std::string name = published.machine.substr(0, 63) + '\0';
  const auto name_bytes = std::as_bytes(std::span(name));
  bytes.insert(bytes.end(), name_bytes.begin(), name_bytes.end());
  bytes.insert(bytes.end(), published.address.begin(), published.address.end());
  return bytes;
}

boot::Result read(const boot::Start& start, std::uint32_t rank, Published& published) {
  std::vector<std::byte> bytes;
  NEAR_TRY(boot::address_of(start, rank, bytes));
  const auto name = bytes.begin() + sizeof published.port;
  const auto end =
      bytes.size() < sizeof published.port ? bytes.end() : std::find(name, bytes.end(), std::byte{});
  if (end == bytes.end())
    return base::fail(base::Code::invalid, "rank {} has published something that is not an address", rank);
  std::memcpy(&published.port, bytes.data(), sizeof published.port);
  published.machine.assign(reinterpret_cast<const char*>(&*name), static_cast<std::size_t>(end - name));
  published.address.assign(end + 1, bytes.end());
  return {};
}

/// Asks the launcher where processes are, and the watch whether they are alive.
class Launcher : public ofi::Directory {
public:
  explicit Launcher(const boot::Start& start) : start_(start) {}
  ofi::Result address_of(object::ProcessId process, std::vector<std::byte>& address) override {
    Published published;
    NEAR_TRY(read(start_, process.rank, published));
    address = std::move(published.address);
    return {};
  }
  bool is_elsewhere(object::ProcessId process) override {
    return process.job == 0 && process.rank < start_.size && memory::find_segment_of(process) == nullptr;
  }
  std::uint32_t deaths() override { return boot::lost_machines(); }
  bool has_died(object::ProcessId process) override {
    return process.rank < start_.machine_of.size() && boot::is_lost(start_.machine_of[process.rank]);
  }
  std::vector<object::ProcessId> processes_elsewhere() override {
    std::vector<object::ProcessId> found;
    for (std::uint32_t rank = 0; rank < start_.machine_of.size(); ++rank)
      if (start_.machine_of[rank] != start_.machine) found.push_back({.rank = rank});
    return found;
  }
  /// If a machine is lost, the launcher waits for it in vain.
  bool all_leave() override { return boot::all_leave(start_) || deaths() != 0; }

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

std::uint32_t patience() { return static_cast<std::uint32_t>(base::knobs().lost_after.number); }

/// The addresses of the first processes on other machines to which this one connects. One that does not listen is not watched.
boot::Result find_neighbours(const boot::Start& start, std::vector<boot::Neighbour>& neighbours) {
  if (start.row != 0) return {};
  for (const auto& [machine, rank] : boot::next_machines(start)) {
    Published published;
    NEAR_TRY(read(start, rank, published));
    const auto address = ofi::socket_address_in(published.address);
    if (published.port != 0)
      neighbours.push_back({machine, published.machine, {address.begin(), address.end()}, published.port});
  }
  return {};
}

} // namespace

boot::Result open_network(boot::Start& start) {
  if (!spans_machines(start)) return boot::meet(start, {});
  const std::string& choice = base::knobs().network.text;
  if (boot::Result opened = ofi::open(choice_of(choice == "auto" ? std::string() : choice)); !opened.ok())
    return base::fail(opened.code(),
                      "this job has {} machines, but no network joins them: {} (NEAR_NETWORK={})",
                      start.machines, std::string(base::failure_text()), choice);
  Published published;
  published.machine = os::machine_name();
  published.address.assign(ofi::own_address().begin(), ofi::own_address().end());
  if (start.row == 0 && patience() != 0 &&
      !boot::listen_for_machines(ofi::socket_address_in(published.address), published.port).ok())
    base::log(base::Level::warning, "other machines cannot watch this one, so its loss may go unnoticed: {}",
              std::string(base::failure_text()));
  return boot::meet(start, write(published));
}

std::uint32_t nic_distance(const boot::Start& start) {
  return spans_machines(start) ? ofi::nic_distance() : 0;
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

boot::Result watch_processes(const boot::Start& start) {
  // In a job on one machine, mpiexec watches the processes.
  if (!(start.by_other || spans_machines(start)) || patience() == 0) return {};
  std::vector<boot::Neighbour> neighbours;
  if (spans_machines(start)) NEAR_TRY(find_neighbours(start, neighbours));
  return transport::begin_watch(start, neighbours, patience());
}

} // namespace near::mpi
