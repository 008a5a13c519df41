// Recording and running schedules. See schedule.h.
#include "coll/schedule.h"

#include "coll/shared/exchange.h"
#include "coll/spare_memory.h"

#include <algorithm>
#include <new>
#include <utility>

namespace near::coll {

void* Schedule::operator new(std::size_t size) { return SpareMemory<Schedule>::take(size); }
void Schedule::operator delete(void* memory, std::size_t) { SpareMemory<Schedule>::keep(memory); }

Schedule::Schedule(bool begins) : executes_(begins), under_way_(begins) { steps_.reserve(usual_steps); }

Schedule::~Schedule() {
  if (under_way_) [[unlikely]]
    leave();
  for (Datatype* type : types_) datatype::release(type);
  for (Operation* operation : operations_) datatype::release(operation);
}

Schedule::Step Schedule::add(Entry entry) {
  steps_.push_back(std::move(entry));
  return steps_.size() - 1;
}

/// A message, which is started at once if nothing before it has to wait.
Schedule::Step Schedule::add_message(Entry entry) {
  const Step step = add(std::move(entry));
  if (executes_) {
    note_executed(run(steps_[step]));
    steps_[step].kind = Kind::started;
  }
  return step;
}

void Schedule::leave() {
  under_way_ = executes_ = false;
  if (area_call_ != nullptr)
    area_call_->leave();
  else
    give_up();
  for (Entry& entry : steps_) {
    if (entry.request == nullptr) continue;
    try {
      (void)p2p::cancel(*entry.request);
      p2p::wait_complete(*entry.request);
      (void)finished(entry);
    } catch (const std::bad_alloc&) {
      continue; // of what moves meanwhile: nothing more can be done for this message
    }
  }
}

void Schedule::keep_type(Datatype* type) {
  if (type == nullptr || type->predefined) return;
  if (std::find(types_.begin(), types_.end(), type) == types_.end()) types_.push_back(object::keep(type));
}

Schedule::Step Schedule::send(const Buffer& buffer, int to, int tag, Communicator& communicator) {
  keep_type(buffer.type);
  return add_message(
      {.kind = Kind::send, .peer = to, .tag = tag, .a = buffer, .communicator = &communicator});
}

Schedule::Step Schedule::receive(const Buffer& buffer, int from, int tag, Communicator& communicator,
                                 const bool* condition) {
  keep_type(buffer.type);
  return add_message({.kind = Kind::receive,
                      .peer = from,
                      .tag = tag,
                      .a = buffer,
                      .communicator = &communicator,
                      .condition = condition});
}

Result Schedule::wait(Step message) {
  if (executes_ && finished(steps_[message])) {
    if (!outcome_.ok()) [[unlikely]]
      stop_executing();
    return {};
  }
  executes_ = false;
  add({.kind = Kind::wait, .message = message});
  return {};
}

Result Schedule::pend(Step message) {
  pending_.push_back(message);
  return {};
}

Result Schedule::finish_until(std::size_t remaining) {
  if (pending_.size() <= remaining) return {};
  auto end = pending_.end() - static_cast<std::ptrdiff_t>(remaining);
  for (auto at = pending_.begin(); at != end; ++at) NEAR_TRY(wait(*at));
  pending_.erase(pending_.begin(), end);
  return {};
}

Result Schedule::add_local(Entry entry) {
  if (executes_)
    note_executed(run(entry));
  else
    add(std::move(entry));
  return {};
}

Result Schedule::copy(const Buffer& from, const Buffer& to) {
  keep_type(from.type);
  keep_type(to.type);
  return add_local({.kind = Kind::copy, .a = from, .b = to});
}

Result Schedule::reduce(const Operation& operation, const Buffer& in, const Buffer& inout) {
  keep_type(in.type);
  auto* kept = const_cast<Operation*>(&operation);
  if (!kept->predefined && std::find(operations_.begin(), operations_.end(), kept) == operations_.end())
    operations_.push_back(object::keep(kept));
  return add_local({.kind = Kind::reduce, .a = in, .b = inout, .operation = &operation});
}

Result Schedule::allocate(std::size_t bytes, std::byte*& at) {
  std::unique_ptr<std::byte[]> storage(new (std::nothrow) std::byte[bytes]);
  if (storage == nullptr)
    return base::fail(MPI_ERR_NO_MEM, "no memory for {} bytes of temporary space of a collective", bytes);
  at = storage.get();
  storage_.push_back(std::move(storage));
  return {};
}

AreaCall& Schedule::use_area(Area& area, const Description& description, std::uint64_t numbers) {
  area_call_.reset(place<AreaCall>(area, description, numbers));
  if (begun_ != 0)
    area_call_->begin(begun_, AreaCall::Published{});
  else if (under_way_)
    area_call_->begin();
  turn_ = steps_.size();
  attempt([at = area_call_.get()] { return at->is_turn(); }, [] { return Result{}; });
  return *area_call_;
}

void Schedule::add_attempt(Attempt* attempt, bool early) {
  const Step step = add({.kind = Kind::attempt, .attempt = std::unique_ptr<Attempt, Destroy>(attempt)});
  if (early) early_.push_back(step);
}

void Schedule::keep(const Call& call, int size) {
  for (const Buffer* buffer : {&call.send, &call.receive}) keep_type(buffer->type);
  for (const Blocks* blocks : {&call.send_blocks, &call.receive_blocks}) {
    keep_type(blocks->type);
    for (int rank = 0; blocks->types != nullptr && rank < size; ++rank) keep_type(blocks->types[rank]);
  }
}

void Schedule::keep(std::unique_ptr<AreaExtension> area) { own_area_ = std::move(area); }

void Schedule::set_area(Area& area, const Description& call) {
  area_ = &area;
  description_ = place<Description>(call);
}

Result Schedule::begin() {
  if (under_way_) return {};
  next_ = next_early_ = 0;
  outcome_ = {};
  for (Entry& step : steps_) step.done = false;
  if (area_call_ != nullptr) area_call_->begin();
  return {};
}

bool Schedule::may_advance() const {
  if (!outcome_.ok()) return true;
  if (next_ >= steps_.size()) return false;
  if (area_call_ == nullptr) return false;
  const auto look = area_call_->look();
  const Entry& entry = steps_[next_];
  if (entry.kind == Kind::attempt && entry.attempt->ready()) return true;
  if (entry.kind == Kind::wait && area_call_->is_broken()) return true;
  if (!may_attempt_early()) return false;
  const auto early = std::find_if(early_.begin() + static_cast<std::ptrdiff_t>(next_early_), early_.end(),
                                  [this](Step step) { return step >= next_; });
  return early != early_.end() && !steps_[*early].done && steps_[*early].attempt->ready();
}

/// A rank that publishes more chunks ahead of what it reads fills more of the caches (doc/adr/0024).
constexpr Number most_ahead_of_reads = 2;

/// Steps that do not concern the area come first, and a rank publishes a limited number of chunks ahead of what it reads.
bool Schedule::may_attempt_early() const {
  return next_ >= turn_ && (area_call_->may_publish() || area_call_->is_turn()) &&
         area_call_->published() <= area_call_->finished() + std::min(chunks_ahead(), most_ahead_of_reads);
}

/// Does the step if it need not wait. True if it has been done, now or before.
bool Schedule::attempted(Entry& entry) {
  if (!entry.done && entry.attempt->ready()) {
    note(entry.attempt->act());
    entry.done = true;
  }
  return entry.done;
}

/// While a step has to wait: does the next early one if it need not; before the call's turn, as many as it may.
void Schedule::attempt_next_early() {
  if (area_call_ == nullptr || next_ < turn_) return;
  while (may_attempt_early()) {
    while (next_early_ < early_.size() && early_[next_early_] < next_) ++next_early_;
    if (next_early_ == early_.size() || !attempted(steps_[early_[next_early_]])) break;
    ++next_early_;
    if (area_call_->is_turn()) break; // what it waits for may have come
  }
  area_call_->pass_on();
}

/// After the failure of a message: if an early step finds that the ranks call different collectives, that says more.
void Schedule::look_for_mismatch() {
  if (area_call_ == nullptr) return;
  const Result failure = std::exchange(outcome_, {});
  std::string sentence = std::exchange(sentence_, {});
  attempt_next_early();
  if (!outcome_.ok()) return;
  outcome_ = failure;
  sentence_ = std::move(sentence);
}

/// Keeps the first failure, which becomes the collective's.
void Schedule::note(Result result) {
  if (result.ok() || !outcome_.ok()) return;
  outcome_ = result;
  base::keep_failure_text(sentence_);
}

/// The same for what is executed while the call is recorded.
void Schedule::note_executed(Result result) {
  if (result.ok()) return;
  note(result);
  stop_executing();
}

/// After a failure: what is recorded after this relies on what has failed, and advance() finds the failure before it does any of
/// that.
void Schedule::stop_executing() {
  if (std::exchange(executes_, false)) add({.kind = Kind::started});
}

/// Ends the area: others may wait for messages of this rank.
void Schedule::give_up() {
  if (area_call_ != nullptr)
    area_call_->give_up();
  else if (area_ != nullptr)
    area_->give_up(*description_);
}

/// The result of starting a message. If it was not, its other rank waits for it.
Result Schedule::started(Result result) {
  if (!result.ok()) [[unlikely]]
    lacks_message_ = true;
  return result;
}

Result Schedule::run(Entry& entry) {
  switch (entry.kind) {
  case Kind::send:
    return started(p2p::start_send(entry.a, entry.peer, entry.tag, *entry.communicator,
                                   p2p::SendMode::standard, entry.request, object::Channel::collective));
  case Kind::receive:
    if (entry.condition != nullptr && !*entry.condition) return {};
    return started(p2p::start_receive(entry.a, entry.peer, entry.tag, *entry.communicator, entry.request,
                                      object::Channel::collective));
  case Kind::copy: datatype::copy(entry.a, entry.b, std::min(entry.a.bytes(), entry.b.bytes())); return {};
  case Kind::reduce:
    if (entry.operation->builtin == datatype::Builtin::user)
      reduce_recorded(entry);
    else
      datatype::reduce(*entry.operation, entry.a.address, entry.b.address, entry.a.count, *entry.a.type);
    return {};
  case Kind::started:
  case Kind::wait:
  case Kind::attempt: break;
  }
  return {};
}

/// What the progress engine calls must not end with an exception of the program: whatever call makes progress would end with it, with
/// its request still posted. An operation of a recorded call that throws ends the process.
void Schedule::reduce_recorded(const Entry& entry) noexcept {
  datatype::reduce(*entry.operation, entry.a.address, entry.b.address, entry.a.count, *entry.a.type);
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
      if (!finished(steps_[entry.message])) {
        attempt_next_early();
        if (area_call_ != nullptr && area_call_->is_broken()) note(area_call_->broken());
        if (outcome_.ok()) return false;
      }
    } else if (entry.kind == Kind::attempt) {
      if (!attempted(entry)) {
        attempt_next_early();
        if (outcome_.ok()) return false;
      }
    } else {
      note(run(entry));
    }
    if (!outcome_.ok()) [[unlikely]] {
      look_for_mismatch();
      if (lacks_message_) give_up();
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
  if (area_call_ != nullptr) {
    if (!outcome_.ok() && !(area_call_->is_turn() && area_call_->abandon(false))) return false;
    area_call_->end();
  }
  under_way_ = false;
  completion = p2p::Completion{};
  completion.error = object::error_class(outcome_);
  return true;
}

} // namespace near::coll
