// Graph and distributed graph topologies. Source: MPI 5.0, sections 8.5.3 and 8.5.4. `reorder` is not used.
#include "comm/exchange.h"

namespace near::comm {

using object::Topology;

namespace {

/// An edge as it is sent to one of its two ends, the receiver.
struct Edge {
  std::int32_t leaving; ///< 1 if the receiver is the source of the edge
  std::int32_t other;   ///< the rank at the other end
  std::int32_t weight;
};

/// Sends the edges in `by_rank` to these ranks. `mine` gets the edges that were sent to this process, in the
/// order of the senders' ranks, and for each sender in the order of naming.
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

Result build_with(Communicator& parent, std::unique_ptr<Topology> topology, const Info* hints,
                  Communicator*& made) {
  std::uint64_t context = 0;
  NEAR_TRY(agree_on_context(parent, context));
  Communicator* fresh = nullptr;
  NEAR_TRY(build(parent, keep(parent.group), context, fresh));
  fresh->topology = std::move(topology);
  if (hints != nullptr)
    if (Result result = apply_hints(*fresh, *hints); !result.ok()) {
      discard(fresh);
      return result;
    }
  made = fresh;
  return {};
}

} // namespace

std::span<const int> neighbours_of(const Topology& graph, int rank) {
  auto node = static_cast<std::size_t>(rank);
  std::size_t begin = node == 0 ? 0 : static_cast<std::size_t>(graph.index[node - 1]);
  return std::span(graph.edges).subspan(begin, static_cast<std::size_t>(graph.index[node]) - begin);
}

Result create_graph(Communicator& parent, std::span<const int> index, std::span<const int> edges,
                    Communicator*& made) {
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
  Communicator* fresh = nullptr;
  NEAR_TRY(build_on_first(parent, nodes, fresh));
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

Result create_adjacent_graph(Communicator& parent, const Neighbours& neighbours, const Info* hints,
                             Communicator*& made) {
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
  return build_with(parent, std::move(topology), hints, made);
}

Result create_distributed_graph(Communicator& parent, std::span<const int> sources,
                                std::span<const int> degrees, std::span<const int> destinations,
                                const int* weights, bool weighted, const Info* hints, Communicator*& made) {
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
  for (const Edge& heard : mine) {
    (heard.leaving != 0 ? topology->destinations : topology->sources).push_back(heard.other);
    if (weighted)
      (heard.leaving != 0 ? topology->destination_weights : topology->source_weights).push_back(heard.weight);
  }
  return build_with(parent, std::move(topology), hints, made);
}

} // namespace near::comm
