// Recording and running schedules. See schedule.h.
#include "coll/schedule.h"

#include <algorithm>
#include <new>

namespace near::coll {

Schedule::~Schedule() {
  for (Datatype* type : types_) datatype::release(type);
  for (Operation* operation : operations_) datatype::release(operation);
}

Schedule::Step Schedule::add(const Entry& entry) {
  steps_.push_back(entry);
  return steps_.size() - 1;
}

void Schedule::keep_type(Datatype* type) {
  if (type == nullptr || type->predefined) return;
  if (std::find(types_.begin(), types_.end(), type) == types_.end()) types_.push_back(object::keep(type));
}

Schedule::Step Schedule::send(const Buffer& buffer, int to, int tag, Communicator& communicator) {
  keep_type(buffer.type);
  return add({.kind = Kind::send, .peer = to, .tag = tag, .a = buffer, .communicator = &communicator});
}

Schedule::Step Schedule::receive(const Buffer& buffer, int from, int tag, Communicator& communicator) {
  keep_type(buffer.type);
  return add({.kind = Kind::receive, .peer = from, .tag = tag, .a = buffer, .communicator = &communicator});
}

Result Schedule::wait(Step message) {
  add({.kind = Kind::wait, .message = message});
  return {};
}

Result Schedule::pend(Step message) {
  pending_.push_back(message);
  return {};
}

Result Schedule::finish_until(std::size_t remaining) {
  while (pending_.size() > remaining) {
    NEAR_TRY(wait(pending_.front()));
    pending_.erase(pending_.begin());
  }
  return {};
}

Result Schedule::copy(const Buffer& from, const Buffer& to) {
  keep_type(from.type);
  keep_type(to.type);
  add({.kind = Kind::copy, .a = from, .b = to});
  return {};
}

Result Schedule::reduce(const Operation& operation, const Buffer& in, const Buffer& inout) {
  keep_type(in.type);
  auto* kept = const_cast<Operation*>(&operation);
  if (!kept->predefined && std::find(operations_.begin(), operations_.end(), kept) == operations_.end())
    operations_.push_back(object::keep(kept));
  add({.kind = Kind::reduce, .a = in, .b = inout, .operation = &operation});
  return {};
}

Result Schedule::allocate(std::size_t bytes, std::byte*& at) {
  std::unique_ptr<std::byte[]> storage(new (std::nothrow) std::byte[bytes]);
  if (storage == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory for {} bytes of temporary space of a collective", bytes);
  at = storage.get();
  storage_.push_back(std::move(storage));
  return {};
}

Result Schedule::begin() {
  next_ = 0;
  outcome_ = {};
  return {};
}

/// Keeps the first failure, which becomes the collective's.
void Schedule::note(Result result) {
  if (result.ok() || !outcome_.ok()) return;
  outcome_ = result;
  sentence_ = base::failure_text();
}

Result Schedule::run(Entry& entry) {
  switch (entry.kind) {
  case Kind::send:
    return p2p::start_send(entry.a, entry.peer, entry.tag, *entry.communicator, p2p::SendMode::standard,
                           entry.request, object::Channel::collective);
  case Kind::receive:
    return p2p::start_receive(entry.a, entry.peer, entry.tag, *entry.communicator, entry.request,
                              object::Channel::collective);
  case Kind::copy: datatype::copy(entry.a, entry.b, std::min(entry.a.bytes(), entry.b.bytes())); return {};
  case Kind::reduce:
    datatype::reduce(*entry.operation, entry.a.address, entry.b.address, entry.a.count, *entry.a.type);
    return {};
  case Kind::wait: break;
  }
  return {};
}

/// True when the message is no longer under way.
bool Schedule::finished(Entry& entry) {
  if (entry.request == nullptr) return true;
  if (!entry.request->complete) return false;
  MPI_Request handle = p2p::public_handle(*entry.request);
  Result own = p2p::finish(handle, *entry.request, MPI_STATUS_IGNORE, false);
  entry.request = nullptr;
  note(own);
  return true;
}

bool Schedule::advance(p2p::Completion& completion) {
  for (; next_ < steps_.size(); ++next_) {
    Entry& entry = steps_[next_];
    if (entry.kind == Kind::wait) {
      if (!finished(steps_[entry.message])) return false;
    } else {
      note(run(entry));
    }
    if (!outcome_.ok()) [[unlikely]] {
      for (Entry& other : steps_)
        if (other.request != nullptr) (void)p2p::cancel(*other.request);
      next_ = steps_.size();
      break;
    }
  }
  // Only a failure leaves messages without a wait step that reached them.
  if (!outcome_.ok()) [[unlikely]]
    for (Entry& entry : steps_)
      if (!finished(entry)) return false;
  completion = p2p::Completion{};
  completion.error = object::error_class(outcome_);
  return true;
}

} // namespace near::coll
