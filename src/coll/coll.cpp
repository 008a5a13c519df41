// From the standard's arguments to a Call, and from a Call to its algorithm.
#include "coll/coll.h"

#include "coll/inter/inter.h"
#include "coll/leaders.h"
#include "coll/registry.h"
#include "coll/schedule.h"
#include "coll/shared/parts.h"
#include "coll/shared/short_call.h"
#include "coll/shared/single_copy.h"
#include "coll/shared/straight.h"

#include <algorithm>
#include <utility>

namespace near::coll {
namespace {

bool is_in_place(const void* address) { return address == MPI_IN_PLACE; }

Call reduction_call(Collective collective, const void* send, void* receive, MPI_Count count, Datatype& type,
                    const Operation& operation) {
  Call call;
  call.collective = collective;
  call.in_place = is_in_place(send);
  call.send = Buffer{call.in_place ? receive : const_cast<void*>(send), count, &type};
  call.receive = Buffer{receive, count, &type};
  call.operation = &operation;
  return call;
}

} // namespace

Call barrier_call() { return {}; }

Call broadcast_call(const Buffer& buffer, int root) {
  Call call;
  call.collective = Collective::broadcast;
  call.receive = buffer;
  call.root = root;
  return call;
}

Call reduce_call(const void* send, void* receive, MPI_Count count, Datatype& type, const Operation& operation,
                 int root, const Communicator& communicator) {
  if (communicator.rank != root && !communicator.is_inter()) receive = nullptr;
  Call call = reduction_call(Collective::reduce, send, receive, count, type, operation);
  call.root = root;
  return call;
}

Call allreduce_call(const void* send, void* receive, MPI_Count count, Datatype& type,
                    const Operation& operation) {
  return reduction_call(Collective::allreduce, send, receive, count, type, operation);
}

Call scan_call(const void* send, void* receive, MPI_Count count, Datatype& type, const Operation& operation) {
  return reduction_call(Collective::scan, send, receive, count, type, operation);
}

Call exscan_call(const void* send, void* receive, MPI_Count count, Datatype& type,
                 const Operation& operation) {
  return reduction_call(Collective::exscan, send, receive, count, type, operation);
}

Call reduce_scatter_block_call(const void* send, void* receive, MPI_Count count, Datatype& type,
                               const Operation& operation) {
  return reduction_call(Collective::reduce_scatter_block, send, receive, count, type, operation);
}

Call reduce_scatter_call(const void* send, void* receive, Counts counts, Datatype& type,
                         const Operation& operation) {
  Call call = reduction_call(Collective::reduce_scatter, send, receive, 0, type, operation);
  call.receive_blocks.counts = counts;
  return call;
}

Call gather_call(const Buffer& send, const Buffer& receive, int root, const Communicator& communicator) {
  Call call;
  call.collective = Collective::gather;
  call.root = root;
  call.receive = receive;
  call.in_place = is_in_place(send.address);
  call.send = call.in_place ? block(receive, communicator.rank) : send;
  return call;
}

Call gatherv_call(const Buffer& send, const Blocks& receive, int root, const Communicator& communicator) {
  Call call;
  call.collective = Collective::gatherv;
  call.root = root;
  call.receive_blocks = receive;
  call.in_place = is_in_place(send.address);
  call.send = call.in_place ? receive.at(communicator.rank) : send;
  return call;
}

Call scatter_call(const Buffer& send, const Buffer& receive, int root, const Communicator& communicator) {
  Call call;
  call.collective = Collective::scatter;
  call.root = root;
  call.send = send;
  call.in_place = is_in_place(receive.address);
  call.receive = call.in_place ? block(send, communicator.rank) : receive;
  return call;
}

Call scatterv_call(const Blocks& send, const Buffer& receive, int root, const Communicator& communicator) {
  Call call;
  call.collective = Collective::scatterv;
  call.root = root;
  call.send_blocks = send;
  call.in_place = is_in_place(receive.address);
  call.receive = call.in_place ? send.at(communicator.rank) : receive;
  return call;
}

Call allgather_call(const Buffer& send, const Buffer& receive, const Communicator& communicator) {
  Call call = gather_call(send, receive, 0, communicator);
  call.collective = Collective::allgather;
  return call;
}

Call allgatherv_call(const Buffer& send, const Blocks& receive, const Communicator& communicator) {
  Call call = gatherv_call(send, receive, 0, communicator);
  call.collective = Collective::allgatherv;
  return call;
}

Call alltoall_call(const Buffer& send, const Buffer& receive) {
  Call call;
  call.collective = Collective::alltoall;
  call.receive = receive;
  call.in_place = is_in_place(send.address);
  call.send = call.in_place ? receive : send;
  return call;
}

Call alltoallv_call(const Blocks& send, const Blocks& receive) {
  Call call;
  call.collective = receive.types != nullptr ? Collective::alltoallw : Collective::alltoallv;
  call.receive_blocks = receive;
  call.in_place = is_in_place(send.address);
  call.send_blocks = call.in_place ? receive : send;
  return call;
}

namespace {

Call neighbour_call(Collective collective, const Topology& topology) {
  Call call;
  call.collective = collective;
  call.topology = &topology;
  return call;
}

Call neighbour_call(Collective collective, const Blocks& send, const Blocks& receive,
                    const Topology& topology) {
  Call call = neighbour_call(collective, topology);
  call.send_blocks = send;
  call.receive_blocks = receive;
  return call;
}

} // namespace

Call neighbor_allgather_call(const Buffer& send, const Buffer& receive, const Topology& topology) {
  Call call = neighbour_call(Collective::neighbor_allgather, topology);
  call.send = send;
  call.receive = receive;
  return call;
}

Call neighbor_allgatherv_call(const Buffer& send, const Blocks& receive, const Topology& topology) {
  Call call = neighbour_call(Collective::neighbor_allgatherv, topology);
  call.send = send;
  call.receive_blocks = receive;
  return call;
}

Call neighbor_alltoall_call(const Buffer& send, const Buffer& receive, const Topology& topology) {
  Call call = neighbor_allgather_call(send, receive, topology);
  call.collective = Collective::neighbor_alltoall;
  return call;
}

Call neighbor_alltoallv_call(const Blocks& send, const Blocks& receive, const Topology& topology) {
  return neighbour_call(Collective::neighbor_alltoallv, send, receive, topology);
}

Call neighbor_alltoallw_call(const Blocks& send, const Blocks& receive, const Topology& topology) {
  return neighbour_call(Collective::neighbor_alltoallw, send, receive, topology);
}

namespace {

/// Algorithms copy and reduce what they hold, so every buffer of the call must be of a kind that allows it.
Result check_copyable(const Call& call) {
  for (const Buffer* buffer : {&call.send, &call.receive})
    if (buffer->type != nullptr) NEAR_TRY(datatype::check_copyable(*buffer));
  for (const Blocks* blocks : {&call.send_blocks, &call.receive_blocks})
    if (!copy::can_copy(blocks->kind)) [[unlikely]]
      NEAR_TRY(datatype::refuse_kind(Buffer{blocks->address, 1, &byte_type(), blocks->kind}));
  return {};
}

enum class Form : std::uint8_t { blocking, nonblocking, persistent };

/// What a rank publishes if it publishes a part for each rank: each begins at a cache line.
MPI_Count bytes_in_parts(const Facts& facts) {
  return part_stride((published_bytes(facts) + facts.size - 1) / facts.size, facts.size) * facts.size;
}

/// What this rank publishes in a call, in bytes. `area`: one that the communicator already has.
MPI_Count bytes_of_rank(const Call& call, const Facts& facts, const Area& area) {
  const int rank = area.rank();
  const bool is_root = rank == call.root, leads = area.leader_of(area.node_of(rank), call.root) == rank;
  switch (call.collective) {
  case Collective::broadcast: return is_root || leads ? published_bytes(facts) : 0;
  case Collective::scatter: return is_root ? bytes_in_parts(facts) : 0;
  case Collective::alltoall:
  case Collective::reduce_scatter:
  case Collective::reduce_scatter_block: return bytes_in_parts(facts);
  case Collective::gather: return is_root ? 0 : published_bytes(facts);
  default: return std::max(published_bytes(facts), bytes_of_parts(call, rank, facts.size));
  }
}

/// The area that the call may use. Starts of persistent calls need not have the same order at all ranks, so each call
/// has an area of its own, which `own` then keeps. Neighbourhood collectives consist of messages.
Result area_for(const Call& call, Communicator& communicator, Form form, Area*& area,
                std::unique_ptr<AreaExtension>& own) {
  if (call.topology != nullptr) return {};
  NEAR_TRY(find_area(communicator, form != Form::nonblocking, area));
  if (form != Form::persistent || area == nullptr) return {};
  Area& shared = *std::exchange(area, nullptr);
  Facts facts = facts_of(call, communicator.size);
  add_area(facts, shared);
  if (choice::reads_memory(choose(facts)) && shared.reading() == Area::Reading::unknown)
    NEAR_TRY(agree_on_reading(call, facts.bytes, communicator, shared));
  facts.recorded = true;
  add_area(facts, shared);
  if (!uses_area(facts)) return {};
  const MPI_Count bytes = choice::publishes_no_data(facts) ? 0 : bytes_of_rank(call, facts, shared);
  NEAR_TRY(static_cast<AreaExtension&>(*communicator.extension).make_another(communicator, bytes, own));
  area = own->area.get();
  if (area != nullptr) area->set_reading(shared.reading());
  return {};
}

/// Lets the algorithms of a group that is the whole communicator know its machines. The first call that may wait elects their leaders.
Result tell_machines(CollectiveGroup& group, Communicator& communicator, Form form) {
  if (communicator.extension == nullptr) return {};
  auto& extension = static_cast<AreaExtension&>(*communicator.extension);
  if (extension.machines == nullptr) return {};
  if (!extension.leaders_elected && form != Form::nonblocking)
    NEAR_TRY(elect_leaders(communicator, extension));
  group.set_machines(extension.machines.get(), extension.area.get());
  return {};
}

Result perform(const Call& call, Communicator& communicator) {
  NEAR_TRY(check_copyable(call));
  if (communicator.is_inter()) [[unlikely]]
    return perform_between_groups(call, communicator, nullptr);
  Area* area = nullptr;
  std::unique_ptr<AreaExtension> own;
  NEAR_TRY(area_for(call, communicator, Form::blocking, area, own));
  CollectiveGroup group(communicator, nullptr, area);
  NEAR_TRY(tell_machines(group, communicator, Form::blocking));
  return run(group, call);
}

/// This rank has left a call, perhaps even before it took its numbers in the communicator's area. Other ranks may wait for any of
/// it, and would take this rank's next call for this one: the area ends.
[[gnu::cold]] [[gnu::noinline]] void end_area(const Call& call, Communicator& communicator) {
  if (communicator.extension == nullptr) return;
  if (Area* const area = static_cast<AreaExtension&>(*communicator.extension).area.get())
    area->give_up(describe(call, facts_of(call, communicator.size).bytes));
}

/// Does `act`, a rank's part in the call, which an exception may end anywhere.
template <class Act>
Result take_part(const Call& call, Communicator& communicator, Act act) {
  try {
    return act();
  } catch (...) {
    end_area(call, communicator);
    throw;
  }
}

/// The rest of a call of start_straight(), as a schedule.
std::unique_ptr<ShortCall> go_on(const Call& call, Communicator& communicator, AreaCall& rest) {
  try {
    return std::make_unique<ShortCall>(call, communicator, std::move(rest));
  } catch (const std::bad_alloc&) {
    (void)rest.abandon(true); // waits for nothing: this rank has published
    rest.end();
    throw;
  }
}

/// Makes a request for the call, which is recorded unless a ShortCall serves. `begun`: the number of start_parts_straight(), whose
/// rest this is; else 0.
Result record(const Call& call, Communicator& communicator, Form form, Number begun, p2p::Request*& made) {
  const bool persistent = form == Form::persistent;
  NEAR_TRY(check_copyable(call));
  if (communicator.is_inter()) [[unlikely]] {
    auto schedule = std::make_unique<Schedule>(form == Form::nonblocking);
    NEAR_TRY(perform_between_groups(call, communicator, schedule.get()));
    return p2p::make_scheduled(&communicator, std::move(schedule), persistent, made);
  }
  Area* area = nullptr;
  std::unique_ptr<AreaExtension> own;
  NEAR_TRY(area_for(call, communicator, form, area, own));
  if (area != nullptr)
    if (auto short_call = ShortCall::make(call, communicator, *area, own)) {
      const Result result = p2p::make_scheduled(&communicator, std::move(short_call), persistent, made);
      if (!result.ok() && !persistent) [[unlikely]]
        end_area(call, communicator); // there is no memory for a request, so it has taken no number
      return result;
    }
  auto schedule = std::make_unique<Schedule>(form == Form::nonblocking);
  if (area != nullptr) {
    schedule->keep(call, communicator.size);
    schedule->set_area(*area, describe(call, facts_of(call, communicator.size).bytes));
  }
  if (own != nullptr) schedule->keep(std::move(own));
  schedule->go_on(begun);
  CollectiveGroup group(communicator, schedule.get(), area);
  NEAR_TRY(tell_machines(group, communicator, form));
  NEAR_TRY(run(group, call));
  return p2p::make_scheduled(&communicator, std::move(schedule), persistent, made);
}

} // namespace

Result run(const Call& call, Communicator& communicator) {
  return take_part(call, communicator, [&] {
    Result result;
    if (run_straight(call, communicator, result) || run_parts_straight(call, communicator, result)) [[likely]]
      return result;
    return perform(call, communicator);
  });
}

Result start(const Call& call, Communicator& communicator, p2p::Request*& made) {
  const bool has_finished_request = p2p::sent_request != MPI_REQUEST_NULL;
  // Not in take_part(): an exception in go_on() need not end the area.
  std::optional<AreaCall> rest;
  if (has_finished_request && start_straight(call, communicator, rest)) [[likely]] {
    if (rest) return p2p::make_scheduled(&communicator, go_on(call, communicator, *rest), false, made);
    made = p2p::finished_request();
    return {};
  }
  return take_part(call, communicator, [&]() -> Result {
    Number begun = 0;
    if (!has_finished_request || !start_parts_straight(call, communicator, begun) || begun != 0)
      return record(call, communicator, Form::nonblocking, begun, made);
    made = p2p::finished_request();
    return {};
  });
}

Result prepare(const Call& call, Communicator& communicator, p2p::Request*& made) {
  return record(call, communicator, Form::persistent, 0, made);
}

} // namespace near::coll
