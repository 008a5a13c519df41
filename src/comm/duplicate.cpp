// MPI_Comm_dup and its kin. Source: MPI 5.0, section 7.4.2.
//
// The nonblocking form is one message of eight bytes to each member: the new communicator exists from the
// start, and its context is the receive buffer of the request that the program gets, so nothing has to run
// when it completes. Two of them cannot wait for each other, since nobody waits: the process that makes the
// context only sends, and its own request is complete at once. Its sends are kept on a list until they have
// left; the list is looked at whenever the next one begins, and finalizing waits for all messages anyway.
#include "comm/exchange.h"

#include <list>

namespace near::comm {

using object::Channel;

namespace {

Result copy_what_is_local(Communicator& parent, const Info* hints, Communicator& made) {
  if (parent.topology != nullptr) made.topology = std::make_unique<object::Topology>(*parent.topology);
  if (hints != nullptr) NEAR_TRY(apply_hints(made, *hints));
  return made.attributes.copy_all(parent, parent.attributes, made);
}

Result build_like(Communicator& parent, std::uint64_t context, Communicator*& made) {
  if (parent.is_inter()) return build_inter(parent, keep(parent.group), keep(parent.remote), context, made);
  return build(parent, keep(parent.group), context, made);
}

/// Contexts on their way to the other members.
struct Told {
  std::uint64_t context;
  std::vector<p2p::Request*> sends;
};

std::list<Told>& on_their_way() {
  static auto& all = *new std::list<Told>;
  return all;
}

void forget_those_that_left() {
  std::erase_if(on_their_way(), [](Told& told) {
    std::erase_if(told.sends, [](p2p::Request* send) {
      if (!send->complete) return false;
      MPI_Request handle = p2p::public_handle(*send);
      (void)p2p::finish(handle, *send, MPI_STATUS_IGNORE, false);
      return true;
    });
    return told.sends.empty();
  });
}

Result start_telling(Told& told, int tag, Communicator& over, int first) {
  for (int rank = first; rank < over.peers; ++rank) {
    p2p::Request* send = nullptr;
    NEAR_TRY(p2p::start_send(bytes_view(&told.context, sizeof told.context), rank, tag, over,
                             p2p::SendMode::standard, send, Channel::internal));
    told.sends.push_back(send);
  }
  return {};
}

/// Starts the exchange that gives `made` its context.
Result start_agreement(Communicator& parent, Communicator& made, p2p::Request*& request) {
  forget_those_that_left();
  int tag = next_tag(parent);
  Communicator* own_side = parent.is_inter() ? local_communicator(parent) : &parent;
  if (own_side == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  bool own_side_decides = !parent.is_inter() || decides(parent);
  if (!own_side_decides || parent.rank != 0)
    return p2p::start_receive(bytes_view(&made.context, sizeof made.context), 0, tag,
                              own_side_decides ? *own_side : parent, request, Channel::internal);
  made.context = object::new_context();
  Told& told = on_their_way().emplace_back(Told{made.context, {}});
  NEAR_TRY(start_telling(told, tag, *own_side, 1));
  if (parent.is_inter()) NEAR_TRY(start_telling(told, tag, parent, 0));
  return p2p::make_completed(parent, {}, request);
}

} // namespace

Result duplicate(Communicator& parent, const Info* hints, Communicator*& made) {
  std::uint64_t context = 0;
  NEAR_TRY(agree_on_context(parent, context));
  Communicator* fresh = nullptr;
  NEAR_TRY(build_like(parent, context, fresh));
  if (Result result = copy_what_is_local(parent, hints, *fresh); !result.ok()) {
    discard(fresh);
    return result;
  }
  made = fresh;
  return {};
}

Result start_duplicate(Communicator& parent, const Info* hints, Communicator*& made, p2p::Request*& request) {
  Communicator* fresh = nullptr;
  NEAR_TRY(build_like(parent, 0, fresh));
  // The callbacks come first: when one fails, nothing has been started that would write into the
  // communicator.
  Result result = copy_what_is_local(parent, hints, *fresh);
  if (result.ok()) result = start_agreement(parent, *fresh, request);
  if (!result.ok()) {
    discard(fresh);
    return result;
  }
  made = fresh;
  return {};
}

} // namespace near::comm
