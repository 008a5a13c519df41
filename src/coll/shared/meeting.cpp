// Algorithms of messages for ranks that have an area: whoever receives a message first reads in the area what the other
// rank calls, so ranks that call different collectives are told, and none waits for messages that do not come. Cost: one
// cache line, and a wait of those that receive. A call that is recorded may start its messages first, and read what the
// other rank calls while it waits for them.
#include "coll/shared/exchange.h"

namespace near::coll {
namespace {

/// Those that send data publish what they call, and those that receive it read that. A rank that only sends waits for
/// nobody.
Result tell(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  exchange.call().owe_more();
  const int size = exchange.size(), rank = exchange.rank();
  if (publishes(call, rank)) {
    NEAR_TRY(exchange.publish(0, [](std::byte*) {}));
  } else {
    exchange.only_read();
    const bool from_root = call.collective == Collective::broadcast || call.collective == Collective::scatter;
    for (int step = 1; step < size; ++step)
      if (const int from = (rank + step) % size; !from_root || from == call.root)
        NEAR_TRY(exchange.wait(from, 0));
  }
  exchange.finish(0);
  return {};
}

// These do not wait for ever if a rank has found that the ranks call different collectives.

Result send(CollectiveGroup& group, const Buffer& buffer, int to) {
  NEAR_TRY(group.start_send(buffer, to));
  return group.finish_all();
}

Result receive(CollectiveGroup& group, const Buffer& buffer, int from) {
  NEAR_TRY(group.start_receive(buffer, from));
  return group.finish_all();
}

} // namespace

Result meet(CollectiveGroup& group, const Call& call) {
  Exchange exchange(group, call, 1);
  exchange.call().owe_more();
  NEAR_TRY(exchange.publish(0, [](std::byte*) {}));
  for (int step = 1; step < exchange.size(); ++step)
    NEAR_TRY(exchange.wait((exchange.rank() + step) % exchange.size(), 0));
  exchange.finish(0);
  return {};
}

Result meet_meanwhile(Result (*algorithm)(CollectiveGroup&, const Call&), CollectiveGroup& group,
                      const Call& call) {
  if (group.schedule() == nullptr) {
    NEAR_TRY(meet(group, call));
    return algorithm(group, call);
  }
  Exchange exchange(group, call, 1);
  exchange.call().owe_more();
  NEAR_TRY(exchange.publish(0, [](std::byte*) {}));
  NEAR_TRY(algorithm(group, call));
  for (int step = 1; step < exchange.size(); ++step)
    NEAR_TRY(exchange.wait_early((exchange.rank() + step) % exchange.size(), 0));
  exchange.finish(0);
  return {};
}

Result broadcast_pair(CollectiveGroup& group, const Call& call) {
  NEAR_TRY(tell(group, call));
  return group.rank() == call.root ? send(group, call.receive, 1 - call.root)
                                   : group.receive(call.receive, call.root);
}

Result gather_pair(CollectiveGroup& group, const Call& call) {
  NEAR_TRY(tell(group, call));
  if (group.rank() == call.root) return gather_linear(group, call);
  return call.send.bytes() != 0 ? send(group, call.send, call.root) : Result{};
}

Result scatter_pair(CollectiveGroup& group, const Call& call) {
  NEAR_TRY(tell(group, call));
  return scatter_linear(group, call);
}

/// The root may learn from one rank that it makes another call, and then sends nothing to the others.
Result scatter_messages(CollectiveGroup& group, const Call& call) {
  NEAR_TRY(tell(group, call));
  if (group.rank() == call.root) return scatter_linear(group, call);
  return call.receive.bytes() != 0 ? receive(group, call.receive, call.root) : Result{};
}

/// The binomial tree reduces what is not commutative at rank 0, which then sends the result to the root: both receive.
Result reduce_pair(CollectiveGroup& group, const Call& call) {
  if (call.root != 0 && !call.operation->commutative) return after_meeting<reduce_binomial>(group, call);
  NEAR_TRY(tell(group, call));
  return group.rank() == call.root ? reduce_binomial(group, call) : send(group, call.send, call.root);
}

/// Rank 0 has its result and only sends. The order of commutative operands is that of scan_shared().
Result scan_pair(CollectiveGroup& group, const Call& call) {
  const Buffer &own = call.send, &result = call.receive;
  if (group.rank() == 0) {
    NEAR_TRY(tell(group, call));
    NEAR_TRY(group.start_send(own, 1));
    NEAR_TRY(group.copy(own, result));
    return group.finish_all();
  }
  NEAR_TRY(meet(group, call));
  if (call.operation->commutative && !call.in_place) {
    NEAR_TRY(group.receive(result, 0));
    return group.reduce(*call.operation, own, result);
  }
  Buffer incoming;
  NEAR_TRY(group.scratch(own.count, *own.type, incoming));
  NEAR_TRY(group.receive(incoming, 0));
  NEAR_TRY(group.copy(own, result));
  return group.reduce(*call.operation, incoming, result);
}

Result exscan_pair(CollectiveGroup& group, const Call& call) {
  if (group.rank() == 0) {
    NEAR_TRY(tell(group, call));
    return send(group, call.send, 1);
  }
  NEAR_TRY(meet(group, call));
  return group.receive(call.receive, 0);
}

} // namespace near::coll
