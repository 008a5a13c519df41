// Graph and distributed graph topologies. Source: MPI 5.0, sections 8.5.3 and 8.5.4.
#include "comm/exchange.h"
#include "comm/order.h"

#include <numeric>

namespace near::comm {

using object::Topology;

namespace {

/// An edge, in the form sent to one of its two ends, the receiver.
struct Edge {
  std::int32_t leaving; ///< 1 if the receiver is the source of the edge
  std::int32_t other;   ///< the rank at the other end
  std::int32_t weight;
};

/// Sends the edges in `by_rank` to these ranks. `mine` receives the edges that were sent to this process,
/// ordered by the senders' ranks, and for each sender in the order in which it specified them.
Result deliver(Communicator& parent, const std::vector<std::vector<Edge>>& by_rank, std::vector<Edge>& mine) {
  auto size = static_cast<std::size_t>(parent.size);
  std::vector<MPI_Count> out(size), in(size), out_at(size), in_at(size);
  std::vector<Edge> leaving;
  for (std::size_t rank = 0; rank < size; ++rank) {
    out_at[rank] = static_cast<MPI_Count>(leaving.size() * sizeof(Edge));
    out[rank] = static_cast<MPI_Count>(by_rank[rank].size() * sizeof(Edge));
    leaving.insert(leaving.end(), by_rank[rank].begin(), by_rank[rank].end());
  }
  NEAR_TRY(coll::all_to_all(byte_buffer(out.data(), sizeof(MPI_Count)),
                            byte_buffer(in.data(), sizeof(MPI_Count)), parent));
  MPI_Count total = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    in_at[rank] = total;
    total += in[rank];
  }
  mine.resize(static_cast<std::size_t>(total) / sizeof(Edge));
  datatype::Datatype* byte = byte_buffer(nullptr, 0).type;
  coll::VectorSide send{leaving.data(), coll::Counts(out.data()), coll::Counts(out_at.data()), byte, nullptr};
  coll::VectorSide receive{mine.data(), coll::Counts(in.data()), coll::Counts(in_at.data()), byte, nullptr};
  return coll::all_to_all_varying(send, receive, parent);
}

/// How many ends of edges are made known to all processes to find a
/// better order. Meanwhile each end takes about 60 bytes in each process.
constexpr std::int64_t most_ends_for_an_order = 1 << 20;

/// The edges of `topology`, in the form sent to everybody: first those that lead to this process, in order.
std::vector<Edge> edges_of(const Topology& topology) {
  std::vector<Edge> edges;
  auto add = [&](std::int32_t leaving, const std::vector<int>& others, const std::vector<int>& weights) {
    for (std::size_t i = 0; i < others.size(); ++i)
      edges.push_back({leaving, others[i], topology.weighted ? weights[i] : 1});
  };
  add(0, topology.sources, topology.source_weights);
  add(1, topology.destinations, topology.destination_weights);
  return edges;
}

/// Replaces the edges of `topology`.
void set_edges(Topology& topology, std::span<const Edge> edges) {
  topology.sources.clear();
  topology.destinations.clear();
  topology.source_weights.clear();
  topology.destination_weights.clear();
  for (const Edge& edge : edges) {
    (edge.leaving != 0 ? topology.destinations : topology.sources).push_back(edge.other);
    if (topology.weighted)
      (edge.leaving != 0 ? topology.destination_weights : topology.source_weights).push_back(edge.weight);
  }
}

/// The edges of all ranks of a distributed graph.
class AllEdges {
public:
  /// Collective. `topology` holds the edges of this process. Omits all edges if there are too many.
  Result gather(Communicator& parent, const Topology& topology) {
    std::vector<Edge> own = edges_of(topology);
    const auto size = static_cast<std::size_t>(parent.size);
    std::vector<MPI_Count> bytes(size), begins(size);
    MPI_Count own_bytes = static_cast<MPI_Count>(own.size() * sizeof(Edge));
    NEAR_TRY(coll::all_gather(byte_buffer(&own_bytes, sizeof own_bytes),
                              byte_buffer(bytes.data(), sizeof own_bytes), parent));
    std::exclusive_scan(bytes.begin(), bytes.end(), begins.begin(), MPI_Count{0});
    const std::size_t count = static_cast<std::size_t>(begins.back() + bytes.back()) / sizeof(Edge);
    if (count > most_ends_for_an_order) return {};
    edges_.resize(count);
    coll::VectorSide receive{edges_.data(), coll::Counts(bytes.data()), coll::Counts(begins.data()),
                             byte_buffer(nullptr, 0).type, nullptr};
    NEAR_TRY(coll::run(
        coll::allgatherv_call(byte_buffer(own.data(), static_cast<std::size_t>(own_bytes)), receive, parent),
        parent));
    for (std::size_t rank = 0; rank < size; ++rank)
      of_rank_.push_back(std::span(edges_).subspan(static_cast<std::size_t>(begins[rank]) / sizeof(Edge),
                                                   static_cast<std::size_t>(bytes[rank]) / sizeof(Edge)));
    return {};
  }
  bool empty() const { return of_rank_.empty(); }
  std::span<const Edge> of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }

  /// Each edge counts at both of its ends, where it is described.
  Pattern pattern() const {
    std::vector<WeightedEdge> edges;
    for (std::size_t rank = 0; rank < of_rank_.size(); ++rank)
      for (const Edge& edge : of_rank_[rank])
        edges.push_back({static_cast<int>(rank), edge.other, edge.weight});
    return {WeightedGraph(static_cast<int>(of_rank_.size()), std::move(edges)), {}, {}};
  }

private:
  std::vector<Edge> edges_;
  std::vector<std::span<const Edge>> of_rank_;
};

/// Makes the communicator of a distributed graph. `topology` holds the edges of this process's rank in `parent`. If the process
/// gets another rank, it takes over that rank's edges.
Result build_with(Communicator& parent, std::unique_ptr<Topology> topology, const Info* hints, bool reorder,
                  Communicator*& made) {
  Communicator* fresh = nullptr;
  AllEdges edges;
  if (reorder && may_reorder(parent, parent.size)) NEAR_TRY(edges.gather(parent, *topology));
  if (edges.empty()) {
    NEAR_TRY(build_on_first(parent, parent.size, fresh));
  } else {
    std::vector<int> order;
    NEAR_TRY(agree_on_order(parent, edges.pattern(), order));
    NEAR_TRY(build_in_order(parent, order, fresh));
    set_edges(*topology, edges.of(fresh->rank));
  }
  fresh->topology = std::move(topology);
  if (hints != nullptr)
    if (Result result = apply_hints(*fresh, *hints); !result.ok()) {
      discard(fresh);
      return result;
    }
  made = fresh;
  return {};
}

Result check_graph(const Communicator& parent, std::span<const int> index, std::span<const int> edges) {
  int nodes = static_cast<int>(index.size());
  if (nodes > parent.size)
    return base::fail(MPI_ERR_ARG, "a graph of {} nodes needs more processes than the {} of {}", nodes,
                      parent.size, object::describe(parent));
  int before = 0;
  for (int last : index) {
    if (last < before)
      return base::fail(MPI_ERR_ARG, "index[] must not decrease, but {} follows {}", last, before);
    before = last;
  }
  for (int edge : edges)
    if (edge < 0 || edge >= nodes)
      return base::fail(MPI_ERR_ARG, "an edge leads to {}, outside the {} nodes", edge, nodes);
  return {};
}

Pattern pattern_of_graph(std::span<const int> index, std::span<const int> edges) {
  std::vector<WeightedEdge> weighted;
  std::size_t edge = 0;
  for (std::size_t rank = 0; rank < index.size(); ++rank)
    for (; edge < static_cast<std::size_t>(index[rank]); ++edge)
      weighted.push_back({static_cast<int>(rank), edges[edge], 1});
  return {WeightedGraph(static_cast<int>(index.size()), std::move(weighted)), {}, {}};
}

} // namespace

std::span<const int> neighbours_of(const Topology& graph, int rank) {
  auto node = static_cast<std::size_t>(rank);
  std::size_t begin = node == 0 ? 0 : static_cast<std::size_t>(graph.index[node - 1]);
  return std::span(graph.edges).subspan(begin, static_cast<std::size_t>(graph.index[node]) - begin);
}

Result create_graph(Communicator& parent, std::span<const int> index, std::span<const int> edges,
                    bool reorder, Communicator*& made) {
  NEAR_TRY(check_graph(parent, index, edges));
  const int nodes = static_cast<int>(index.size());
  Communicator* fresh = nullptr;
  if (reorder && may_reorder(parent, nodes)) {
    std::vector<int> order;
    NEAR_TRY(agree_on_order(parent, pattern_of_graph(index, edges), order));
    NEAR_TRY(build_in_order(parent, order, fresh));
  } else {
    NEAR_TRY(build_on_first(parent, nodes, fresh));
  }
  if (fresh != nullptr) {
    fresh->topology = std::make_unique<Topology>();
    fresh->topology->kind = MPI_GRAPH;
    fresh->topology->index.assign(index.begin(), index.end());
    fresh->topology->edges.assign(edges.begin(), edges.end());
    std::span<const int> own = neighbours_of(*fresh->topology, fresh->rank);
    fresh->topology->sources.assign(own.begin(), own.end());
    fresh->topology->destinations = fresh->topology->sources;
  }
  made = fresh;
  return {};
}

Result rank_in_graph(const Communicator& parent, std::span<const int> index, std::span<const int> edges,
                     int& rank) {
  NEAR_TRY(check_graph(parent, index, edges));
  const int nodes = static_cast<int>(index.size());
  if (may_reorder(parent, nodes))
    rank = own_rank_in(parent, pattern_of_graph(index, edges));
  else
    rank = parent.rank < nodes ? parent.rank : MPI_UNDEFINED;
  return {};
}

Result create_adjacent_graph(Communicator& parent, const Neighbours& neighbours, const Info* hints,
                             bool reorder, Communicator*& made) {
  auto topology = std::make_unique<Topology>();
  topology->kind = MPI_DIST_GRAPH;
  topology->weighted = neighbours.weighted;
  topology->sources.assign(neighbours.sources.begin(), neighbours.sources.end());
  topology->destinations.assign(neighbours.destinations.begin(), neighbours.destinations.end());
  if (neighbours.weighted) {
    if (!neighbours.sources.empty())
      topology->source_weights.assign(neighbours.source_weights,
                                      neighbours.source_weights + neighbours.sources.size());
    if (!neighbours.destinations.empty())
      topology->destination_weights.assign(neighbours.destination_weights,
                                           neighbours.destination_weights + neighbours.destinations.size());
  }
  return build_with(parent, std::move(topology), hints, reorder, made);
}

Result create_distributed_graph(Communicator& parent, std::span<const int> sources,
                                std::span<const int> degrees, std::span<const int> destinations,
                                const int* weights, bool weighted, const Info* hints, bool reorder,
                                Communicator*& made) {
  std::vector<std::vector<Edge>> by_rank(static_cast<std::size_t>(parent.size));
  std::size_t edge = 0;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (int n = 0; n < degrees[i]; ++n, ++edge) {
      int weight = weighted ? weights[edge] : 1;
      by_rank[static_cast<std::size_t>(sources[i])].push_back({1, destinations[edge], weight});
      by_rank[static_cast<std::size_t>(destinations[edge])].push_back({0, sources[i], weight});
    }
  std::vector<Edge> mine;
  NEAR_TRY(deliver(parent, by_rank, mine));
  auto topology = std::make_unique<Topology>();
  topology->kind = MPI_DIST_GRAPH;
  topology->weighted = weighted;
  set_edges(*topology, mine);
  return build_with(parent, std::move(topology), hints, reorder, made);
}

} // namespace near::comm
