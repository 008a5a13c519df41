// See simulation.h.
#include "model/simulation.h"

#include "model/paths.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>

namespace near::model {
namespace {

using choice::Collective;
using choice::Facts;
using pattern::Machines;
using pattern::Program;
using pattern::RankList;
using pattern::Step;
using pattern::Verb;

constexpr double unknown = -1;

/// A send or receive that a rank has started.
struct Request {
  int rank = -1;         ///< the rank that has started it
  double done = unknown; ///< when it is complete
};

struct Message {
  int from, to; ///< ranks
  double bytes;
  double sent;             ///< when the sender has started it
  std::size_t send;        ///< request
  std::size_t receive = 0; ///< request
  double posted = unknown; ///< when the receive was started; unknown: not yet
  double tail = 0;         ///< when its last byte reaches the receiver's NIC; later, the receiver
  bool arrived = false;
};

struct Receive {
  int from;
  std::size_t request;
  double posted;
};

/// A rank that is simulated itself: a leader, or any rank in a call without levels.
struct Rank {
  Program program;
  std::size_t at = 0; ///< the current step
  double time = 0;
  std::vector<std::size_t> open; ///< requests, oldest first
  std::size_t left = 0;          ///< how many of them may remain when it continues
  bool waits = false;
  std::vector<std::size_t> unmatched; ///< messages for it
  std::vector<Receive> posted;        ///< receives for which no message has been sent
};

struct Ports {
  Part transmit, receive;              ///< of the NIC
  std::vector<Part> outwards, inwards; ///< of the link of each node
};

class Simulation {
public:
  Simulation(const Network& network, const Shape& shape, const Asked& asked)
      : network_(network), shape_(shape), paths_(network, shape), facts_(facts_of(shape, asked)),
        levels_(choice::has_levels(choose(facts_))), machines_(machine_of(shape), 0),
        ports_(static_cast<std::size_t>(shape.machines)) {
    if (asked.leaders_near) machines_.set_leaders(near_leaders());
    leaders_ = asked.collective == Collective::broadcast ? machines_.leaders_with(asked.root)
                                                         : machines_.leaders_with(machines_.leaders()[0]);
    for (Ports& each : ports_) {
      each.outwards.resize(static_cast<std::size_t>(shape.nodes));
      each.inwards.resize(static_cast<std::size_t>(shape.nodes));
    }
    const int ranks = levels_ ? shape.machines : facts_.size;
    ranks_.resize(static_cast<std::size_t>(ranks));
    for (int i = 0; i < ranks; ++i)
      ranks_[static_cast<std::size_t>(i)].program =
          program_of(facts_, machines_, RankList::of(leaders_), rank_of(i), asked.root);
  }

  Simulated run() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) push(0, Kind::run, i);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      switch (event.kind) {
      case Kind::run: step(event.id); break;
      case Kind::depart: depart(event.id, event.time); break;
      case Kind::arrive: arrive(event.id, event.time); break;
      }
    }
    return result_;
  }

private:
  enum class Kind : std::uint8_t { run, depart, arrive };
  struct Event {
    double time;
    std::uint64_t order; ///< of events at the same time
    Kind kind;
    std::size_t id; ///< of a rank or message
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  static std::vector<std::uint32_t> machine_of(const Shape& shape) {
    std::vector<std::uint32_t> made;
    for (int rank = 0; rank < shape.machines * shape.ranks; ++rank)
      made.push_back(static_cast<std::uint32_t>(rank / shape.ranks));
    return made;
  }
  std::vector<int> near_leaders() const {
    std::vector<int> made;
    for (int machine = 0; machine < shape_.machines; ++machine)
      made.push_back(machine * shape_.ranks + shape_.near_rank());
    return made;
  }
  int rank_of(int index) const { return levels_ ? leaders_[static_cast<std::size_t>(index)] : index; }
  std::size_t index_of(int rank) const {
    return static_cast<std::size_t>(levels_ ? rank / shape_.ranks : rank);
  }
  Ports& ports_of(int rank) { return ports_[static_cast<std::size_t>(paths_.machine_of(rank))]; }

  void push(double time, Kind kind, std::size_t id) { events_.push({time, ++order_, kind, id}); }

  // Actions of ranks.

  void step(std::size_t index) {
    Rank& rank = ranks_[index];
    if (rank.at == rank.program.size()) {
      result_.time = std::max(result_.time, rank.time);
      return;
    }
    const Step& step = rank.program[rank.at++];
    switch (step.verb) {
    case Verb::receive: start_receive(index, step), wait(index, 0); break;
    case Verb::send: start_send(index, step), wait(index, 0); break;
    case Verb::exchange: start_receive(index, step), start_send(index, step), wait(index, 0); break;
    case Verb::start_receive: start_receive(index, step), go_on(index); break;
    case Verb::start_send: start_send(index, step), go_on(index); break;
    case Verb::finish: wait(index, static_cast<std::size_t>(step.count)); break;
    case Verb::add:
      rank.time += static_cast<double>(step.in) * network_.add_gap;
      go_on(index);
      break;
    case Verb::on_machine: call_on_machine(index, step), go_on(index); break;
    case Verb::ring:
      if (++at_ring_ == ranks_.size()) go_round(step);
      break;
    }
  }
  void go_on(std::size_t index) { push(ranks_[index].time, Kind::run, index); }

  void wait(std::size_t index, std::size_t left) {
    ranks_[index].left = left;
    ranks_[index].waits = true;
    check(index);
  }
  /// Lets a rank continue if everything for which it waits is known to be done.
  void check(std::size_t index) {
    Rank& rank = ranks_[index];
    if (!rank.waits) return;
    const std::size_t needed = rank.open.size() - std::min(rank.left, rank.open.size());
    double until = rank.time;
    for (std::size_t i = 0; i < needed; ++i) {
      const double done = requests_[rank.open[i]].done;
      if (done == unknown) return;
      until = std::max(until, done);
    }
    rank.open.erase(rank.open.begin(), rank.open.begin() + static_cast<std::ptrdiff_t>(needed));
    rank.waits = false;
    rank.time = until;
    go_on(index);
  }
  std::size_t open(std::size_t index) {
    requests_.push_back({.rank = static_cast<int>(index)});
    ranks_[index].open.push_back(requests_.size() - 1);
    return requests_.size() - 1;
  }
  void complete(std::size_t request, double time) {
    requests_[request].done = time;
    check(static_cast<std::size_t>(requests_[request].rank));
  }

  void start_send(std::size_t index, const Step& step) {
    Rank& rank = ranks_[index];
    rank.time += network_.overhead;
    messages_.push_back({.from = rank_of(static_cast<int>(index)),
                         .to = step.to,
                         .bytes = static_cast<double>(step.out),
                         .sent = rank.time,
                         .send = open(index)});
    const std::size_t id = messages_.size() - 1;
    Rank& receiver = ranks_[index_of(step.to)];
    const auto found = std::find_if(receiver.posted.begin(), receiver.posted.end(),
                                    [&](const Receive& each) { return each.from == messages_[id].from; });
    if (found == receiver.posted.end()) {
      receiver.unmatched.push_back(id);
    } else {
      const Receive match = *found;
      receiver.posted.erase(found);
      pair_up(id, match.request, match.posted);
    }
    if (!waits_for_receiver(messages_[id])) push(messages_[id].sent, Kind::depart, id);
  }
  void start_receive(std::size_t index, const Step& step) {
    Rank& rank = ranks_[index];
    const std::size_t request = open(index);
    const auto found = std::find_if(rank.unmatched.begin(), rank.unmatched.end(),
                                    [&](std::size_t id) { return messages_[id].from == step.from; });
    if (found == rank.unmatched.end()) {
      rank.posted.push_back({step.from, request, rank.time});
      return;
    }
    const std::size_t id = *found;
    rank.unmatched.erase(found);
    pair_up(id, request, rank.time);
  }
  bool waits_for_receiver(const Message& message) const {
    return paths_.waits(message.from, message.to, message.bytes);
  }
  void pair_up(std::size_t id, std::size_t receive, double posted) {
    Message& message = messages_[id];
    message.receive = receive;
    message.posted = posted;
    if (waits_for_receiver(message)) {
      const double trip = paths_.announcing(message.from, message.to);
      push(std::max(message.sent + trip, posted) + trip, Kind::depart, id);
    } else if (message.arrived) {
      complete(receive, std::max(message.tail, posted) + network_.overhead);
    }
  }

  // Progress of messages.

  void depart(std::size_t id, double now) {
    Message& message = messages_[id];
    Ports& ports = ports_of(message.from);
    const auto node = static_cast<std::size_t>(paths_.node_of(message.from)),
               nic = static_cast<std::size_t>(shape_.nic_node);
    double head = now, tail = now;
    if (paths_.is_inside(message.from, message.to)) {
      const auto there = static_cast<std::size_t>(paths_.node_of(message.to));
      tail += message.bytes * network_.copy_gap;
      if (node != there) {
        ports.outwards[node].pass(head, tail, message.bytes, network_.link_gap);
        ports.inwards[there].pass(head, tail, message.bytes, network_.link_gap);
      }
      message.tail = tail + paths_.way(message.from, message.to);
      message.arrived = true;
      complete(message.send, tail);
      if (messages_[id].posted != unknown)
        complete(messages_[id].receive,
                 std::max(messages_[id].tail, messages_[id].posted) + network_.overhead);
      return;
    }
    ++result_.messages;
    if (node != nic) {
      ports.outwards[node].pass(head, tail, message.bytes, network_.link_gap);
      ports.inwards[nic].pass(head, tail, message.bytes, network_.link_gap, network_.crossing);
      result_.crossed_out += message.bytes;
    }
    ports.transmit.pass(head, tail, message.bytes, network_.gap);
    message.tail = tail + network_.latency;
    push(head + network_.latency, Kind::arrive, id);
    complete(message.send, tail);
  }
  void arrive(std::size_t id, double now) {
    Message& message = messages_[id];
    Ports& ports = ports_of(message.to);
    const auto node = static_cast<std::size_t>(paths_.node_of(message.to)),
               nic = static_cast<std::size_t>(shape_.nic_node);
    double head = now;
    ports.receive.pass(head, message.tail, message.bytes, network_.gap);
    if (node != nic) {
      ports.outwards[nic].pass(head, message.tail, message.bytes, network_.link_gap);
      ports.inwards[node].pass(head, message.tail, message.bytes, network_.link_gap, network_.crossing);
      result_.crossed_in += message.bytes;
    }
    message.arrived = true;
    if (message.posted != unknown)
      complete(message.receive, std::max(message.tail, message.posted) + network_.overhead);
  }

  // Phases that are simulated as a whole.

  void call_on_machine(std::size_t index, const Step& step) {
    const int leader = leaders_[index] % shape_.ranks;
    const auto key = std::tuple{step.collective, step.in, leader};
    auto found = on_machine_.find(key);
    if (found == on_machine_.end()) {
      const pattern::Here here{.ranks = shape_.ranks, .nodes = shape_.nodes};
      for (const pattern::Phase& phase : phases_of(facts_, here)) {
        if (phase.among_leaders || phase.facts.collective != step.collective) continue;
        Facts facts = phase.facts;
        facts.bytes = step.in; // the last chunk of a chain is shorter
        found = on_machine_.emplace(key, on_machine(network_, shape_, facts, leader)).first;
        break;
      }
    }
    const OnMachine& took = found->second;
    Rank& rank = ranks_[index];
    // Data that leave the leader's node share its link with messages.
    Part& link = ports_[index].outwards[static_cast<std::size_t>(shape_.node_of(leader))];
    const double start =
        step.collective == Collective::broadcast ? std::max(rank.time, link.free) : rank.time;
    if (step.collective == Collective::broadcast) link.free = start + took.leaves_node * network_.link_gap;
    rank.time = start + took.leader;
    result_.time = std::max(result_.time, start + took.last);
  }

  /// All ranks have reached the same ring.
  void go_round(const Step& step) {
    at_ring_ = 0;
    const auto bytes = static_cast<double>(step.out);
    std::vector<std::size_t> order; // in ring order
    for (std::size_t index = 0; order.size() < ranks_.size(); index = index_of(ring_step(index).to))
      order.push_back(index);
    Paths::Shares shares(shape_);
    for (const std::size_t index : order)
      paths_.count(rank_of(static_cast<int>(index)), ring_step(index).to, shares);
    std::vector<Hop> hops;
    std::vector<double> ready;
    for (const std::size_t index : order) {
      hops.push_back(
          paths_.hop_of(rank_of(static_cast<int>(index)), ring_step(index).to, bytes, step.reduces, shares));
      ready.push_back(ranks_[index].time);
      count_crossings(rank_of(static_cast<int>(index)), ring_step(index).to, bytes, step.count);
    }
    model::go_round(hops, ready, step.count, levels_ ? 1 : static_cast<std::size_t>(shape_.ranks));
    for (std::size_t i = 0; i < order.size(); ++i) {
      ranks_[order[i]].time = ready[i];
      go_on(order[i]);
    }
  }
  const Step& ring_step(std::size_t index) const { return ranks_[index].program[ranks_[index].at - 1]; }

  void count_crossings(int from, int to, double bytes, int rounds) {
    if (paths_.is_inside(from, to)) return;
    result_.messages += static_cast<std::uint64_t>(rounds);
    if (paths_.is_far(from)) result_.crossed_out += bytes * rounds;
    if (paths_.is_far(to)) result_.crossed_in += bytes * rounds;
  }

  const Network& network_;
  const Shape& shape_;
  const Paths paths_;
  const Facts facts_;
  const bool levels_;
  Machines machines_;
  std::vector<int> leaders_;
  std::vector<Ports> ports_;
  std::vector<Rank> ranks_;
  std::vector<Request> requests_;
  std::vector<Message> messages_;
  std::map<std::tuple<Collective, MPI_Count, int>, OnMachine> on_machine_;
  std::size_t at_ring_ = 0;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  Simulated result_;
};

} // namespace

choice::Facts facts_of(const Shape& shape, const Asked& asked) {
  return {.collective = asked.collective,
          .bytes = asked.bytes,
          .size = shape.machines * shape.ranks,
          .machines = shape.machines,
          .most_on_machine = shape.ranks};
}

Simulated simulate(const Network& network, const Shape& shape, const Asked& asked) {
  return Simulation(network, shape, asked).run();
}

} // namespace near::model
