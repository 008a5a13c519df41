// `near model --coll`: simulated times of broadcasts and allreduces on many machines, with and without leaders near the NIC.
#include "base/knob.h"
#include "base/text.h"
#include "choice/choice.h"
#include "model/curves.h"
#include "model/job.h"
#include "model/simulation.h"
#include "profile/profile.h"
#include "tools/choices.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "topo/machine.h"

#include <cstdio>

namespace near::tools {

namespace {

using model::Network;
using model::Shape;

/// 8 bytes, and the powers of four from 64 bytes to 64 MiB.
std::vector<MPI_Count> sizes() {
  std::vector<MPI_Count> made{8};
  for (MPI_Count bytes = 64; bytes <= 64 << 20; bytes *= 4) made.push_back(bytes);
  return made;
}

std::string microseconds(double nanoseconds) {
  const double value = nanoseconds / 1e3;
  return value < 1000 ? base::format("{:.1f}", value) : base::format("{:.0f}", value);
}

/// Reads a job of machines that are all alike.
base::Result parse_shape(const std::string& text, const ModelCollectivesOptions& options, Shape& shape) {
  std::vector<model::MachineKind> kinds;
  NEAR_TRY(parse_machines({.text = text, .ranks_each = 8}, kinds));
  if (kinds.size() != 1 || !kinds[0].file.empty())
    return base::fail(
        base::Code::invalid,
        "--machines: '{}' names machines that differ, or are described; the model is of machines "
        "that are all alike, such as 64x8",
        base::printable(text));
  shape = {.machines = kinds[0].count,
           .ranks = kinds[0].ranks,
           .nodes = std::min(static_cast<int>(options.nodes), kinds[0].ranks),
           .nic_node = 0};
  shape.nic_node = static_cast<int>(options.nic_node);
  if (shape.nic_node >= shape.nodes)
    return base::fail(base::Code::invalid, "--nic-node: {} with {} on a machine have no node {}",
                      base::counted(static_cast<unsigned>(shape.nodes), "node"),
                      base::counted(static_cast<unsigned>(shape.ranks), "rank"), shape.nic_node);
  if (options.root >= static_cast<unsigned>(shape.machines * shape.ranks))
    return base::fail(base::Code::invalid, "--root: there is no rank {} among {}", options.root,
                      shape.machines * shape.ranks);
  return {};
}

/// Takes the costs of copies from this machine's profile, if there is one. Returns the source of the figures.
const char* read_profile(Network& network) {
  topo::Machine machine;
  profile::Profile known;
  bool found = false;
  if (!topo::read_machine(machine).ok()) return "default";
  if (!profile::load(profile::machine_name(machine), known, found).ok() || !found) return "default";
  return take_profile(known, network) ? "profile" : "default";
}

const char* apply(const ModelCollectivesOptions& options, Network& network) {
  const char* source = options.copy_bandwidth == 0 ? read_profile(network) : "given";
  auto set = [](double& value, double given, double made) {
    if (given != 0) value = made;
  };
  set(network.latency, options.latency, options.latency * 1e3);
  set(network.overhead, options.overhead, options.overhead * 1e3);
  set(network.gap, options.bandwidth, 1 / options.bandwidth);
  set(network.link_gap, options.link_bandwidth, 1 / options.link_bandwidth);
  set(network.copy_gap, options.copy_bandwidth, 1 / options.copy_bandwidth);
  set(network.memory_gap, options.memory_bandwidth, 1 / options.memory_bandwidth);
  if (options.eager != 0) network.eager = static_cast<MPI_Count>(options.eager);
  return source;
}

/// The algorithm that is simulated, with the leaders' algorithm.
std::string algorithm_text(const Shape& shape, const choice::Facts& facts) {
  std::string text = chosen_text(facts);
  if (!choice::has_levels(choice::choose(facts))) return text;
  for (const pattern::Phase& phase : pattern::phases_of(facts, {.ranks = shape.ranks, .nodes = shape.nodes}))
    if (phase.among_leaders) text += phase.chain ? ", chain" : ", " + chosen_text(phase.facts);
  return text;
}

model::Curve predict(const Network& network, const Shape& shape, Collective collective, int root) {
  model::Curve curve{.name = base::counted(static_cast<unsigned>(shape.machines), "machine"), .points = {}};
  std::printf("\n%s, %s with %s each\n%-8s  %-32s  %12s  %12s  %7s  %17s  %17s\n",
              std::string(choice::name_of(collective)).c_str(), curve.name.c_str(),
              base::counted(static_cast<unsigned>(shape.ranks), "rank").c_str(), "bytes", "algorithm",
              "near the NIC", "lowest lead", "saved", "crossed near", "crossed lowest");
  for (const MPI_Count bytes : sizes()) {
    model::Asked asked{.collective = collective, .bytes = bytes, .root = root};
    const model::Simulated near = simulate(network, shape, asked);
    asked.leaders_near = false;
    const model::Simulated far = simulate(network, shape, asked);
    const double vectors = static_cast<double>(bytes) * shape.machines;
    auto crossed = [&](const model::Simulated& of) {
      return base::format("{:.2f} in {:.2f} out", of.crossed_in / vectors, of.crossed_out / vectors);
    };
    std::printf("%-8s  %-32s  %12s  %12s  %6.1f%%  %17s  %17s\n", size_text(bytes).c_str(),
                algorithm_text(shape, facts_of(shape, asked)).c_str(), microseconds(near.time).c_str(),
                microseconds(far.time).c_str(), 100 * (1 - near.time / far.time), crossed(near).c_str(),
                crossed(far).c_str());
    curve.points.push_back({bytes, near.time, far.time});
  }
  return curve;
}

} // namespace

int model_collectives(const ModelCollectivesOptions& options) {
  std::vector<Collective> wanted;
  if (!read_collectives(options.names.empty() ? "broadcast,allreduce" : options.names, wanted)) return 2;
  for (const Collective collective : wanted)
    if (!pattern::has_program(collective)) {
      std::fprintf(stderr, "near: there is no model of %s, but of broadcast and allreduce\n",
                   std::string(choice::name_of(collective)).c_str());
      return 2;
    }
  std::vector<Shape> shapes;
  const std::vector<std::string> defaults{"64x8", "1024x8", "16384x8"};
  for (const std::string& text : options.machines.empty() ? defaults : options.machines)
    if (!parse_shape(text, options, shapes.emplace_back()).ok()) {
      complain();
      return 2;
    }
  if (!choice::configure(base::knobs().coll.text, 0).ok()) return complain();
  Output plot;
  if (!options.plot.empty() && !plot.open(options.plot).ok()) return complain();
  Network network;
  const char* source = apply(options, network);
  std::printf(
      "network: %.2f us latency, %.2f us overhead of a message, %.1f GB/s each way; longer than %s: a round "
      "trip more\n"
      "machines: %s, the NIC at node %d; links between nodes %.1f GB/s each way and %.2f us\n"
      "ranks: copy %.1f GB/s and see each other after %.2f us (%s), reduce %.1f GB/s; memory of a node %.1f "
      "GB/s\n"
      "times in us; crossed: bytes between leaders and NICs that pass a link, in vectors for each machine\n",
      network.latency / 1e3, network.overhead / 1e3, 1 / network.gap, size_text(network.eager).c_str(),
      base::counted(static_cast<unsigned>(shapes.front().nodes), "node").c_str(), shapes.front().nic_node,
      1 / network.link_gap, network.crossing / 1e3, 1 / network.copy_gap, network.flag / 1e3, source,
      1 / network.add_gap, 1 / network.memory_gap);
  std::vector<model::Panel> panels;
  for (const Collective collective : wanted) {
    model::Panel& panel = panels.emplace_back();
    panel.title = base::format("{}, {} each", choice::name_of(collective),
                               base::counted(static_cast<unsigned>(shapes.front().ranks), "rank"));
    for (const Shape& shape : shapes)
      panel.curves.push_back(predict(network, shape, collective, static_cast<int>(options.root)));
  }
  if (!options.plot.empty() && !plot.write(drawing_of(panels)).ok()) return complain();
  return 0;
}

} // namespace near::tools
