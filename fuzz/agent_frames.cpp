// The messages between an agent and mpiexec, and lists of machines: whatever arrives is either read completely or rejected,
// and whatever was read is written again unchanged.
#include "boot/rank_list.h"
#include "machines/frames.h"
#include "machines/hosts.h"
#include "machines/tree.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace near;

namespace {

/// The frames of agents in a tree. What can be read is written unchanged.
void read_tree(const std::string& text) {
  machines::Reach reach;
  if (machines::Reach::read(text, reach) && reach.body() != text) std::abort();
  machines::Parted parted;
  if (machines::Parted::read(text, parted) && parted.body() != text) std::abort();
  unsigned machine = 0;
  if (machines::read_machine(text, machine) && machines::BodyWriter().number(machine).body() != text)
    std::abort();
  // As they pass from agent to agent, down to the last one.
  machines::Relayed relayed;
  for (std::string body = text; machines::Relayed::read(body, relayed); body = relayed.frame.body) {
    const std::string frame = machines::frame(relayed.frame.kind, relayed.frame.body);
    if (machines::Relayed::body(relayed.machine, frame) != body) std::abort();
    if (relayed.frame.kind != machines::Kind::relayed) break;
  }
}

void read_frames(const std::string& text) {
  machines::FrameReader whole, in_pieces;
  whole.feed(text);
  std::size_t bytes = 0;
  std::vector<machines::Frame> taken;
  for (machines::Frame frame; whole.next(frame); taken.push_back(frame)) {
    bytes += machines::frame(frame.kind, frame.body).size();
    machines::BodyReader body(frame.body);
    (void)body.texts();
    (void)body.numbers();
    (void)body.text();
    if (body.complete() && !body.ok()) std::abort();
    read_tree(frame.body);
  }
  if (bytes > text.size() || (!whole.broken() && whole.rest().size() != text.size() - bytes)) std::abort();
  std::size_t same = 0;
  for (const char each : text) {
    in_pieces.feed({&each, 1});
    for (machines::Frame frame; in_pieces.next(frame); ++same)
      if (same >= taken.size() || frame.body != taken[same].body || frame.kind != taken[same].kind)
        std::abort();
  }
  if (same != taken.size()) std::abort();
}

void read_lists(const std::string& text) {
  std::vector<machines::Host> hosts, again;
  if (machines::parse_hosts(text, "--hosts", hosts).ok()) {
    std::string written;
    for (const auto& host : hosts)
      written += "," + host.name + (host.slots == 0 ? "" : ":" + std::to_string(host.slots));
    if (!machines::parse_hosts(written, "--hosts", again).ok()) std::abort();
  }
  hosts.clear();
  (void)machines::parse_host_file(text, "file", hosts);
  hosts.clear();
  (void)machines::parse_slurm_nodes(text, text, hosts);
  std::vector<std::uint32_t> ranks, same;
  if (!boot::read_rank_list(text, 1000, ranks).ok()) return;
  if (!boot::read_rank_list(boot::rank_list_text(ranks), 1000, same).ok() || same != ranks) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_frames(text);
  read_tree(text);
  read_lists(text);
  return 0;
}
