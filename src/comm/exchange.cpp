// Agreement on contexts, and steps that several kinds of creation share.
#include "comm/exchange.h"

#include <algorithm>

namespace near::comm {

using object::Channel;

datatype::Buffer byte_buffer(void* address, std::size_t bytes) {
  static datatype::Datatype* const byte = datatype::find_datatype(MPI_BYTE);
  return {address, static_cast<MPI_Count>(bytes), byte};
}

int next_tag(Communicator& communicator) { return coll::TagSpace::next(communicator); }

Result tell(const Tree& tree, std::uint64_t& value) {
  auto rank = [&](int position) {
    return tree.ranks.empty() ? position : tree.ranks[static_cast<std::size_t>(position)];
  };
  int bit = 1;
  for (; bit < tree.count; bit <<= 1)
    if ((tree.position & bit) != 0) {
      p2p::Completion completion;
      NEAR_TRY(p2p::receive(byte_buffer(&value, sizeof value), rank(tree.position - bit), tree.tag, tree.over,
                            completion, tree.channel));
      break;
    }
  for (bit >>= 1; bit > 0; bit >>= 1)
    if (tree.position + bit < tree.count)
      NEAR_TRY(p2p::send(byte_buffer(&value, sizeof value), rank(tree.position + bit), tree.tag, tree.over,
                         p2p::SendMode::standard, tree.channel));
  return {};
}

Result agree_on_context(Communicator& parent, std::uint64_t& context) {
  int tag = next_tag(parent);
  if (!parent.is_inter()) {
    if (parent.rank == 0) context = object::new_context();
    return tell({parent, {}, parent.rank, parent.size, tag, Channel::internal}, context);
  }
  Communicator* local = local_communicator(parent);
  if (local == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  if (parent.rank == 0) {
    if (decides(parent)) {
      context = object::new_context();
      NEAR_TRY(p2p::send(byte_buffer(&context, sizeof context), 0, tag, parent, p2p::SendMode::standard,
                         Channel::internal));
    } else {
      p2p::Completion completion;
      NEAR_TRY(
          p2p::receive(byte_buffer(&context, sizeof context), 0, tag, parent, completion, Channel::internal));
    }
  }
  return tell({*local, {}, local->rank, local->size, tag, Channel::internal}, context);
}

Result build(Communicator& parent, Group* group, std::uint64_t context, Communicator*& made) {
  if (group != nullptr) made = object::make_communicator(parent, group, context);
  if (group == nullptr || made == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another communicator");
  return {};
}

Result build_inter(Communicator& parent, Group* local, Group* remote, std::uint64_t context,
                   Communicator*& made) {
  if (local != nullptr && remote != nullptr)
    made = object::make_intercommunicator(parent, local, remote, context);
  else if (local != nullptr || remote != nullptr)
    object::release(local != nullptr ? local : remote);
  if (made == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another communicator");
  return {};
}

Result build_on_first(Communicator& parent, int count, Communicator*& made) {
  int tag = next_tag(parent);
  if (parent.rank >= count) return {};
  std::uint64_t context = parent.rank == 0 ? object::new_context() : 0;
  NEAR_TRY(tell({parent, {}, parent.rank, count, tag, Channel::internal}, context));
  auto& members = parent.group->members;
  Group* group = count == parent.size ? keep(parent.group)
                                      : object::make_group({members.begin(), members.begin() + count});
  return build(parent, group, context, made);
}

Result build_in_order(Communicator& parent, std::span<const int> order, Communicator*& made) {
  int tag = next_tag(parent);
  const auto own = std::find(order.begin(), order.end(), parent.rank);
  if (own == order.end()) return {};
  const int rank = static_cast<int>(own - order.begin());
  std::uint64_t context = rank == 0 ? object::new_context() : 0;
  NEAR_TRY(tell({parent, order, rank, static_cast<int>(order.size()), tag, Channel::internal}, context));
  return build(parent, object::group_include(*parent.group, order), context, made);
}

void discard(Communicator* communicator) {
  // Keeps the message of the failure being reported, which preceded any failure of a delete callback.
  std::string why(base::failure_text());
  (void)communicator->attributes.remove_all(*communicator);
  base::set_failure_text(std::move(why));
  object::communicators().retire(communicator);
  object::release(communicator);
}

Result free_communicator(Communicator& communicator) {
  if (communicator.context == 0)
    return base::fail(MPI_ERR_COMM, "{} is still being made by MPI_Comm_idup",
                      object::describe(communicator));
  NEAR_TRY(communicator.attributes.remove_all(communicator));
  p2p::forget(communicator);
  object::communicators().retire(&communicator);
  object::release(&communicator);
  return {};
}

int compare(const Communicator& a, const Communicator& b) {
  if (&a == &b) return MPI_IDENT;
  if (a.is_inter() != b.is_inter()) return MPI_UNEQUAL;
  int result = object::group_compare(*a.group, *b.group);
  if (a.is_inter() && result != MPI_UNEQUAL) {
    int remote = object::group_compare(*a.remote, *b.remote);
    if (remote != MPI_IDENT) result = remote;
  }
  return result == MPI_IDENT ? MPI_CONGRUENT : result;
}

} // namespace near::comm
