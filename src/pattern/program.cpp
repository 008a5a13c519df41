// See program.h.
#include "pattern/program.h"

#include "pattern/chain.h"
#include "pattern/doubling.h"
#include "pattern/ring.h"
#include "pattern/tree.h"

#include <string_view>

namespace near::pattern {
namespace {

using base::Result;

/// The steps of a member of a group whose members have the ranks in a list.
class Writer {
public:
  Writer(Program& into, RankList ranks) : into_(into), ranks_(ranks) {}

  Result send(MPI_Count bytes, int to) { return put({.verb = Verb::send, .to = ranks_[to], .out = bytes}); }
  Result receive(MPI_Count bytes, int from) {
    return put({.verb = Verb::receive, .from = ranks_[from], .in = bytes});
  }
  Result exchange(MPI_Count bytes, int partner) {
    return put(
        {.verb = Verb::exchange, .to = ranks_[partner], .from = ranks_[partner], .out = bytes, .in = bytes});
  }
  Result start_send(MPI_Count bytes, int to) {
    return put({.verb = Verb::start_send, .to = ranks_[to], .out = bytes});
  }
  Result start_receive(MPI_Count bytes, int from) {
    return put({.verb = Verb::start_receive, .from = ranks_[from], .in = bytes});
  }
  Result finish(int remaining) { return put({.verb = Verb::finish, .count = remaining}); }
  Result add(MPI_Count bytes) { return put({.verb = Verb::add, .in = bytes}); }
  void go_round(const Ring& ring, MPI_Count bytes, bool reduces) {
    if (ring.rounds() > 0)
      (void)put({.verb = Verb::ring,
                 .to = ranks_[ring.right()],
                 .from = ranks_[ring.left()],
                 .out = bytes,
                 .in = bytes,
                 .count = ring.rounds(),
                 .reduces = reduces});
  }
  void on_machine(Collective collective, MPI_Count bytes) {
    (void)put({.verb = Verb::on_machine, .in = bytes, .collective = collective});
  }

private:
  Result put(const Step& step) {
    into_.push_back(step);
    return {};
  }
  Program& into_;
  RankList ranks_;
};

/// A rank of a group, and the group's call.
struct Member {
  int rank, size, root;
  MPI_Count bytes;
};

void broadcast_binomial(Writer& writer, const Member& own) {
  const BinomialTree tree(own.rank, own.size, own.root);
  (void)go_down(
      tree, [&] { return writer.receive(own.bytes, tree.parent()); },
      [&](int distance) { return writer.send(own.bytes, tree.child(distance)); });
}

void broadcast_scatter_allgather(Writer& writer, const Member& own) {
  const BinomialTree tree(own.rank, own.size, own.root);
  const int position = tree.position();
  auto bytes_of = [&](int first, int pieces) { return pieces_of(own.bytes, first, pieces, own.size).count; };
  (void)go_down(
      tree, [&] { return writer.receive(bytes_of(position, tree.subtree()), tree.parent()); },
      [&](int distance) {
        return writer.send(bytes_of(position + distance, tree.subtree_of_child(distance)),
                           tree.child(distance));
      });
  writer.go_round(Ring(own.rank, own.size), bytes_of(0, 1), false);
}

/// Sends and receives whole vectors, which are added to the data of this rank.
struct Vectors {
  Writer& writer;
  MPI_Count bytes;
  Result give(int to) { return writer.send(bytes, to); }
  Result take(int from) { return writer.receive(bytes, from); }
  Result pass(int to) { return writer.send(bytes, to); }
  Result absorb(int from) {
    (void)writer.receive(bytes, from);
    return writer.add(bytes);
  }
  Result exchange(int partner) {
    (void)writer.exchange(bytes, partner);
    return writer.add(bytes);
  }
};

void allreduce_recursive_doubling(Writer& writer, const Member& own) {
  (void)double_up(Doubling(own.rank, own.size), Vectors{writer, own.bytes});
}

void allreduce_ring(Writer& writer, const Member& own) {
  const Ring ring(own.rank, own.size);
  const MPI_Count longest = (own.bytes + own.size - 1) / own.size;
  writer.go_round(ring, longest, true);
  writer.go_round(ring, longest, false);
}

void allreduce_linear(Writer& writer, const Member& own) {
  Vectors vectors{writer, own.bytes};
  if (own.rank != 0) {
    (void)vectors.give(0);
    (void)vectors.take(0);
    return;
  }
  for (int rank = 1; rank < own.size; ++rank) (void)vectors.absorb(rank);
  for (int rank = 1; rank < own.size; ++rank) (void)vectors.pass(rank);
}

struct Row {
  Collective collective;
  std::string_view name;
  void (*write)(Writer& writer, const Member& own);
};
constexpr Row rows[] = {{Collective::broadcast, "binomial", broadcast_binomial},
                        {Collective::broadcast, "scatter_allgather", broadcast_scatter_allgather},
                        {Collective::allreduce, "recursive_doubling", allreduce_recursive_doubling},
                        {Collective::allreduce, "ring", allreduce_ring},
                        {Collective::allreduce, "linear", allreduce_linear}};

/// The call of a group whose members are each on a machine of their own, or which has no levels.
void write_messages(Program& program, const Facts& facts, RankList ranks, int rank, int root) {
  Writer writer(program, ranks);
  const choice::Algorithm& chosen = choose(facts);
  for (const Row& row : rows)
    if (row.collective == facts.collective && row.name == chosen.name)
      row.write(writer, {.rank = rank, .size = ranks.size(), .root = root, .bytes = facts.bytes});
}

/// The part of a leader, or of another rank on its machine, in a long broadcast.
struct Chunks {
  Writer& writer;
  MPI_Count bytes;
  Result start_receive(int index, int from) {
    return writer.start_receive(bytes_of_chunk(bytes, index), from);
  }
  Result start_send(int index, int to) { return writer.start_send(bytes_of_chunk(bytes, index), to); }
  Result finish_until(int remaining) { return writer.finish(remaining); }
  Result here(int index) {
    writer.on_machine(Collective::broadcast, bytes_of_chunk(bytes, index));
    return {};
  }
};

} // namespace

bool has_program(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::allreduce;
}

Program program_of(const Facts& call, const Machines& machines, RankList leaders, int rank, int root) {
  Program program;
  if (!choice::has_levels(choose(call))) {
    write_messages(program, call, RankList::all(call.size), rank, root);
    return program;
  }
  const int own = machines.index_of(rank), root_machine = machines.index_of(root);
  const bool leads = leaders[own] == rank;
  const int ranks_here = machines.ranks_of(own).size();
  Writer writer(program, leaders);
  for (const Phase& phase : phases_of(call, {.ranks = std::max(ranks_here, 2)})) {
    if (phase.chain) {
      const Chain chain(machines.count(), root_machine, own);
      (void)pass_along(chain, chunks_of_chain(call.bytes), leads, Chunks{writer, call.bytes});
      break; // the phases on the machine take place between its steps
    }
    if (!phase.among_leaders)
      writer.on_machine(phase.facts.collective, phase.facts.bytes);
    else if (leads)
      write_messages(program, phase.facts, leaders, own, root_machine);
  }
  if (ranks_here == 1) std::erase_if(program, [](const Step& step) { return step.verb == Verb::on_machine; });
  return program;
}

} // namespace near::pattern
