// MPI_Comm_dup and related functions. Source: MPI 5.0, section 7.4.2.
//
// The nonblocking form is a schedule: the new communicator exists from the start, and its context is sent
// down the same tree as in the blocking form. A process waits for at most one message, from a process that
// has already begun its own call. So several duplications, of one communicator or of many, cannot wait for
// each other in a cycle; the tag keeps them apart.
#include "comm/exchange.h"

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

class Telling : public p2p::Schedule {
public:
  Telling(Communicator& parent, Communicator& local, Communicator& made)
      : parent_(parent), local_(local), made_(*keep(&made)), tag_(next_tag(parent)) {}
  ~Telling() override { object::release(&made_); }

  Result begin() override {
    bool first = local_.rank == 0;
    if (first && (!parent_.is_inter() || decides(parent_))) {
      context_ = object::new_context();
      return {};
    }
    int above = local_.rank & (local_.rank - 1);
    return p2p::start_receive(byte_buffer(&context_, sizeof context_), above, tag_, first ? parent_ : local_,
                              receive_, Channel::internal);
  }

  bool advance(p2p::Completion& completion) override {
    if (!told_) {
      if (receive_ != nullptr && !receive_->complete) return false;
      told_ = true;
      Result result = receive_ != nullptr ? finish(*receive_) : Result();
      made_.context = context_;
      if (result.ok()) result = start_sends();
      if (!result.ok()) fail(result, completion);
    }
    std::erase_if(sends_, [&](p2p::Request* send) {
      if (!send->complete) return false;
      if (Result result = finish(*send); !result.ok()) fail(result, completion);
      return true;
    });
    return sends_.empty();
  }

  std::string_view sentence() const override { return sentence_; }

private:
  static Result finish(p2p::Request& request) {
    MPI_Request handle = p2p::public_handle(request);
    return p2p::finish(handle, request, MPI_STATUS_IGNORE, false);
  }

  Result start_send(int rank, Communicator& over) {
    p2p::Request* send = nullptr;
    NEAR_TRY(p2p::start_send(byte_buffer(&context_, sizeof context_), rank, tag_, over,
                             p2p::SendMode::standard, send, Channel::internal));
    sends_.push_back(send);
    return {};
  }

  Result start_sends() {
    if (parent_.is_inter() && local_.rank == 0 && decides(parent_)) NEAR_TRY(start_send(0, parent_));
    int lowest = local_.rank != 0 ? local_.rank & -local_.rank : local_.size;
    for (int bit = 1; bit < lowest && local_.rank + bit < local_.size; bit <<= 1)
      NEAR_TRY(start_send(local_.rank + bit, local_));
    return {};
  }

  void fail(Result result, p2p::Completion& completion) {
    completion.error = object::error_class(result);
    sentence_ = base::failure_text();
  }

  Communicator& parent_; ///< kept by the request
  Communicator& local_;  ///< the parent, or the communicator of its own group
  Communicator& made_;
  int tag_;
  std::uint64_t context_ = 0;
  p2p::Request* receive_ = nullptr;
  bool told_ = false;
  std::vector<p2p::Request*> sends_;
  std::string sentence_;
};

} // namespace

namespace {

/// copy_what_is_local(), whose callbacks may fail or throw: then `fresh` is discarded.
Result copy_or_discard(Communicator& parent, const Info* hints, Communicator*& fresh) {
  try {
    const Result result = copy_what_is_local(parent, hints, *fresh);
    if (!result.ok()) discard(fresh);
    return result;
  } catch (...) {
    discard(fresh);
    throw;
  }
}

} // namespace

Result duplicate(Communicator& parent, const Info* hints, Communicator*& made) {
  std::uint64_t context = 0;
  NEAR_TRY(agree_on_context(parent, context));
  Communicator* fresh = nullptr;
  NEAR_TRY(build_like(parent, context, fresh));
  NEAR_TRY(copy_or_discard(parent, hints, fresh));
  made = fresh;
  return {};
}

Result start_duplicate(Communicator& parent, const Info* hints, Communicator*& made, p2p::Request*& request) {
  Communicator* fresh = nullptr;
  NEAR_TRY(build_like(parent, 0, fresh));
  // The callbacks come first: if one fails, nothing has been started.
  NEAR_TRY(copy_or_discard(parent, hints, fresh));
  Result result;
  Communicator* local = parent.is_inter() ? local_communicator(parent) : &parent;
  if (local == nullptr) result = base::fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  if (result.ok())
    result = p2p::make_scheduled(&parent, std::make_unique<Telling>(parent, *local, *fresh), false, request);
  if (!result.ok()) {
    discard(fresh);
    return result;
  }
  made = fresh;
  return {};
}

} // namespace near::comm
