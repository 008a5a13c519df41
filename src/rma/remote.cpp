// Operations on processes on other machines, and the code that advances them. See remote.h. Locks are in
// remote_locks.cpp, the network's own reads and writes in direct.cpp.
#include "rma/remote.h"

#include "comm/exchange.h"
#include "rma/completed.h"
#include "rma/direct.h"
#include "rma/elements.h"
#include "rma/wire.h"

#include <algorithm>
#include <utility>

namespace near::rma {

namespace {

/// The most messages and answers under way, and their most bytes.
constexpr std::size_t most_moving = 1024, most_moving_bytes = 8 << 20;

void finish_all(std::vector<Pending>& operations, int error) {
  for (const Pending& each : std::exchange(operations, {})) each->finish(Where::target, error);
}

} // namespace

Remote::Remote(Window& window)
    : window_(window), server_(window), targets_(static_cast<std::size_t>(window.communicator->size)) {
  for (int rank = 0; rank < window.communicator->size; ++rank)
    if (reaches(rank)) ranks_.push_back(rank);
}

void Remote::stop() {
  p2p::wait_until([this] { return server_.is_idle() && is_idle(); });
  agent_.stop();
  p2p::progress();
}

bool Remote::reaches(int rank) const {
  return state_of(window_).members[static_cast<std::size_t>(rank)].locks == nullptr;
}

bool Remote::Target::is_idle() const {
  return sending.empty() && fetching.empty() && unanswered.empty() && flushed.empty() && written.empty() &&
         direct == 0;
}

bool Remote::is_idle() const {
  return std::all_of(active_.begin(), active_.end(),
                     [this](int rank) { return targets_[static_cast<std::size_t>(rank)]->is_idle(); });
}

Remote::Target& Remote::target(int rank) {
  auto& found = targets_[static_cast<std::size_t>(rank)];
  if (found == nullptr) found = std::make_unique<Target>();
  return *found;
}

Remote::Target& Remote::activate(int rank) {
  Target& found = target(rank);
  if (!std::exchange(found.is_active, true)) active_.push_back(rank);
  return found;
}

Remote::Message Remote::make_message(CallHead head, std::span<const Run> runs, std::size_t data_bytes) {
  head.runs = runs.size();
  Message made;
  made.size = sizeof head + runs.size_bytes() + data_bytes;
  made.bytes = std::make_unique_for_overwrite<std::byte[]>(made.size);
  std::memcpy(made.bytes.get(), &head, sizeof head);
  made.data = std::copy_n(reinterpret_cast<const std::byte*>(runs.data()), runs.size_bytes(),
                          made.bytes.get() + sizeof head);
  return made;
}

Result Remote::send(int rank, Message message) {
  Sending made{std::move(message)};
  NEAR_TRY(p2p::start_send(comm::byte_buffer(made.message.bytes.get(), made.message.size), rank, call_tag,
                           *window_.communicator, p2p::SendMode::standard, made.request));
  if (made.request->complete) return end(made.request);
  moving_bytes_ += made.message.size;
  ++moving_;
  activate(rank).sending.push_back(std::move(made));
  return {};
}

std::uint32_t Remote::next_tag() {
  const std::uint32_t tag = next_tag_;
  next_tag_ = tag == last_answer_tag ? first_answer_tag : tag + 1;
  return tag;
}

/// Waits until this many more bytes may be under way.
void Remote::make_room(std::size_t bytes) {
  p2p::wait_until([this, bytes] {
    return moving_ == 0 || (moving_ < most_moving && moving_bytes_ + bytes <= most_moving_bytes);
  });
}

/// Begins to receive one fragment of the target's data; `whole`: it is the only fragment.
Result Remote::fetch(int rank, std::uint32_t tag, const Buffer& into, const Fragment& fragment, bool whole,
                     const std::shared_ptr<Parts>& parts) {
  Fetch made;
  made.into = into;
  made.at = fragment.at;
  made.bytes = fragment.bytes;
  made.parts = parts;
  Buffer there = into;
  if (!whole) {
    const auto bytes = static_cast<std::size_t>(fragment.bytes);
    made.packed = std::make_unique_for_overwrite<std::byte[]>(bytes);
    there = comm::byte_buffer(made.packed.get(), bytes);
  }
  NEAR_TRY(p2p::start_receive(there, rank, static_cast<int>(tag), *window_.communicator, made.request));
  if (!whole && !into.type->predefined) object::keep(into.type);
  ++parts->left;
  ++moving_;
  moving_bytes_ += static_cast<std::size_t>(fragment.bytes);
  activate(rank).fetching.push_back(std::move(made));
  return {};
}

/// Sends the operation to its target, fragment by fragment; `fill` writes the data of each. `into` is where the target's
/// data go; null if it sends none.
template <class Fill>
Result Remote::call(int rank, const Buffer& there, CallHead head, bool has_data, const Buffer* into,
                    const Pending& operation, Fill&& fill) {
  auto parts = std::make_shared<Parts>(Parts{operation});
  const Datatype* element = there.type->element;
  Fragments fragments(there, element != nullptr ? element->size : 1);
  Fragment fragment;
  parts->left = 1; // this call
  Result result;
  while (result.ok() && fragments.next(fragment)) {
    const auto bytes = static_cast<std::size_t>(fragment.bytes);
    make_room(bytes);
    head.bytes = bytes;
    if (into != nullptr) head.answer_tag = next_tag();
    const std::size_t factor = head.call == Call::compare_and_swap ? 2 : 1;
    Message message = make_message(head, fragment.runs, has_data ? factor * bytes : 0);
    if (has_data) fill(fragment, message.data);
    result = send(rank, std::move(message));
    if (result.ok() && into != nullptr)
      result = fetch(rank, head.answer_tag, *into, fragment, fragment.at == 0 && fragments.is_last(fragment),
                     parts);
  }
  if (!result.ok() && parts->left == 1) return result; // nothing has begun, or nothing waits for an answer
  if (into != nullptr) {
    end_part(*parts, result.ok() ? MPI_SUCCESS : object::error_class(result));
    return {};
  }
  operation->finish(Where::origin); // the messages hold the data
  activate(rank).unanswered.push_back(operation);
  advance_flush(rank, target(rank));
  return {};
}

void Remote::end_part(Parts& parts, int error) {
  if (parts.error == MPI_SUCCESS) parts.error = error;
  if (--parts.left == 0) parts.operation->finish(Where::target, parts.error);
}

Result Remote::put(const Buffer& from, int rank, const Buffer& there, const Pending& operation) {
  if (auto direct = Direct::make(window_, true, from, rank, there, operation))
    return begin(std::move(direct));
  return call(rank, there, {.call = Call::put}, true, nullptr, operation,
              [&](const Fragment& fragment, std::byte* data) {
                datatype::pack(from, fragment.at, data, fragment.bytes);
              });
}

Result Remote::get(const Buffer& into, int rank, const Buffer& there, const Pending& operation) {
  if (auto direct = Direct::make(window_, false, into, rank, there, operation))
    return begin(std::move(direct));
  return call(rank, there, {.call = Call::get}, false, &into, operation, [](const Fragment&, std::byte*) {});
}

Result Remote::accumulate(const Buffer& from, const Buffer* before, int rank, const Buffer& there,
                          const Operation& how, const Pending& operation) {
  const Datatype* element = there.type->element;
  CallHead head{.call = Call::accumulate, .fetches = before != nullptr, .operation = handle_of(how)};
  if (element != nullptr) head.element = handle_of(*element);
  return call(rank, there, head, how.builtin != datatype::Builtin::no_op, before, operation,
              [&](const Fragment& fragment, std::byte* data) {
                datatype::pack(from, fragment.at, data, fragment.bytes);
              });
}

Result Remote::compare_and_swap(const void* origin, const void* compare, void* before, int rank,
                                const Buffer& there, const Pending& operation) {
  const Buffer into{before, 1, there.type};
  return call(rank, there, {.call = Call::compare_and_swap}, true, &into, operation,
              [&](const Fragment& fragment, std::byte* data) {
                const auto bytes = static_cast<std::size_t>(fragment.bytes);
                copy::raw(data, origin, bytes);
                copy::raw(data + bytes, compare, bytes);
              });
}

Result Remote::check(int rank, const Buffer& there) {
  Fragments fragments(there, 1);
  Fragment fragment;
  while (fragments.next(fragment)) {
    CallHead head{.call = Call::check, .bytes = static_cast<std::uint64_t>(fragment.bytes)};
    Answer answer;
    NEAR_TRY(ask(rank, head, fragment.runs, answer));
    if (answer.error != MPI_SUCCESS) return base::Result(answer.error);
  }
  return {};
}

/// Begins to receive the answer to a call that was sent with this tag.
Result Remote::begin_answer(int rank, std::uint32_t tag, Answer& answer, p2p::Request*& request) {
  return p2p::start_receive(comm::byte_buffer(&answer, sizeof answer), rank, static_cast<int>(tag),
                            *window_.communicator, request);
}

/// Sends a call, and waits for its answer.
Result Remote::ask(int rank, CallHead head, std::span<const Run> runs, Answer& answer) {
  head.answer_tag = next_tag();
  p2p::Request* request = nullptr;
  NEAR_TRY(send(rank, make_message(head, runs, 0)));
  NEAR_TRY(begin_answer(rank, head.answer_tag, answer, request));
  p2p::wait_complete(*request);
  return end(request);
}

void Remote::expect(int rank) {
  if (rank != every_target) {
    ++target(rank).expected;
    return advance_flush(rank, target(rank));
  }
  ++expected_everywhere_;
  for (std::size_t i = 0; i < active_.size(); ++i) advance_flush(active_[i], target(active_[i]));
}

void Remote::expect_no_more(int rank) {
  --(rank == every_target ? expected_everywhere_ : target(rank).expected);
}

void Remote::advance() {
  server_.advance();
  for (std::size_t i = 0; i < active_.size();) {
    const int rank = active_[i];
    Target& each = target(rank);
    end_sends(each);
    end_fetches(each);
    advance_flush(rank, each);
    if (!each.is_idle()) {
      ++i;
      continue;
    }
    each.is_active = false;
    active_[i] = active_.back();
    active_.pop_back();
  }
  // Other threads may be waiting for what has completed here.
  if (std::exchange(has_ended_, false)) transport::wake_waiting_threads();
}

void Remote::end_sends(Target& target) {
  while (!target.sending.empty() && target.sending.front().request->complete) {
    Sending& first = target.sending.front();
    (void)end(first.request); // an error also ends operations that wait for the target's answer
    moving_bytes_ -= first.message.size;
    --moving_;
    target.sending.pop_front();
    has_ended_ = true;
  }
}

void Remote::end_fetches(Target& target) {
  while (!target.fetching.empty() && target.fetching.front().request->complete) {
    Fetch first = std::move(target.fetching.front());
    target.fetching.pop_front();
    int error = first.request->completion.error;
    if (error == MPI_SUCCESS && first.request->completion.bytes != first.bytes) error = MPI_ERR_RMA_RANGE;
    (void)end(first.request);
    if (first.packed != nullptr) {
      if (error == MPI_SUCCESS) datatype::unpack(first.into, first.at, first.packed.get(), first.bytes);
      if (!first.into.type->predefined) datatype::release(first.into.type);
    }
    moving_bytes_ -= static_cast<std::size_t>(first.bytes);
    --moving_;
    end_part(*first.parts, error);
    has_ended_ = true;
  }
}

/// Asks the target whether its operations are complete, if a call waits for them, and finishes the complete ones.
void Remote::advance_flush(int rank, Target& target) {
  if (target.flush != nullptr && target.flush->complete) {
    const Result answered = end(target.flush);
    finish_all(target.flushed, answered.ok() ? target.flush_answer.error : object::error_class(answered));
    has_ended_ = true;
  }
  const bool expected = expected_everywhere_ != 0 || target.expected != 0;
  if (target.flushed.empty() && !target.unanswered.empty() &&
      (expected || target.unanswered.size() >= most_unanswered)) {
    const CallHead head{.call = Call::flush, .answer_tag = next_tag()};
    target.flushed = std::exchange(target.unanswered, {});
    Result begun = send(rank, make_message(head, {}, 0));
    if (begun.ok()) begun = begin_answer(rank, head.answer_tag, target.flush_answer, target.flush);
    if (!begun.ok()) finish_all(target.flushed, object::error_class(begun));
  }
  if (target.direct == 0 && !target.written.empty() &&
      (expected || target.written.size() >= most_unanswered)) {
    int error = MPI_SUCCESS;
    if (transport::flush(peer_of(window_, rank), error)) {
      finish_all(target.written, error);
      has_ended_ = true;
    }
  }
}

} // namespace near::rma
