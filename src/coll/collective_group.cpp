// The verbs. See collective_group.h.
#include "coll/collective_group.h"

#include "base/checked.h"
#include "coll/schedule.h"
#include "coll/shared/area.h"

#include <algorithm>
#include <new>
#include <utility>

namespace near::coll {
namespace {

constexpr MPI_Count alignment = 16; // enough for every basic type

} // namespace

Datatype& byte_type() {
  static Datatype* type = datatype::find_datatype(MPI_BYTE);
  return *type;
}

Buffer byte_range(const Buffer& packed, MPI_Count offset, MPI_Count bytes) {
  return Buffer{static_cast<std::byte*>(packed.address) + offset, bytes, &byte_type()};
}

bool scratch_layout(MPI_Count count, const Datatype& type, std::size_t& bytes, std::ptrdiff_t& origin) {
  bytes = 0;
  origin = 0;
  if (count == 0) return true;
  MPI_Count span, total;
  if (!base::checked_multiply(count - 1, type.extent, span)) return false;
  // With a negative extent the last element lies lowest.
  MPI_Count lowest = type.true_lb + std::min<MPI_Count>(span, 0);
  MPI_Count padding = ((lowest % alignment) + alignment) % alignment;
  if (!base::checked_add(std::abs(span), type.true_extent, total) ||
      !base::checked_add(total, padding, total))
    return false;
  bytes = static_cast<std::size_t>(total);
  origin = padding - lowest;
  return true;
}

CollectiveGroup::CollectiveGroup(Communicator& communicator, Schedule* schedule, Area* area)
    : communicator_(communicator), schedule_(schedule), area_(area),
      ranks_(RankList::all(communicator.peers)), rank_(communicator.rank), size_(communicator.size),
      tag_(TagSpace::next(communicator)) {}

CollectiveGroup::CollectiveGroup(Communicator& communicator, AreaCall& begun)
    : communicator_(communicator), schedule_(nullptr), area_call_(&begun),
      ranks_(RankList::all(communicator.peers)), rank_(communicator.rank), size_(communicator.size), tag_(0) {
}

CollectiveGroup::CollectiveGroup(Communicator& communicator, RankList ranks, TagSpace& tags,
                                 Schedule* schedule)
    : communicator_(communicator), schedule_(schedule), ranks_(ranks), rank_(ranks.find(communicator.rank)),
      size_(ranks.size()), tag_(tags.next()) {}

CollectiveGroup::CollectiveGroup(const CollectiveGroup& whole, RankList ranks)
    : communicator_(whole.communicator_), schedule_(whole.schedule_), whole_(&whole), ranks_(ranks),
      rank_(ranks.find(whole.rank_)), size_(ranks.size()), tag_(whole.tag_) {}

CollectiveGroup::CollectiveGroup(const CollectiveGroup& whole, RankList ranks, Area* area, const Call& asked)
    : CollectiveGroup(whole, ranks) {
  area_ = area;
  asked_ = &asked;
  asked_bytes_ = whole.bytes_;
}

CollectiveGroup::~CollectiveGroup() {
  if (pending_count_ != 0) [[unlikely]] {
    // An error ended the algorithm early. No message may write into buffers that are about to be freed.
    auto abandon = [](p2p::Request* request) {
      if (request == nullptr) return;
      (void)p2p::cancel(*request);
      p2p::wait_complete(*request);
      MPI_Request handle = p2p::public_handle(*request);
      (void)p2p::finish(handle, *request, MPI_STATUS_IGNORE, false);
    };
    std::size_t here = std::min(pending_count_, inline_pending);
    for (std::size_t i = 0; i < here; ++i) abandon(pending_[i]);
    for (p2p::Request* request : overflow_) abandon(request);
  }
}

Result CollectiveGroup::send(const Buffer& buffer, int to) {
  if (schedule_ != nullptr)
    return schedule_->wait(schedule_->send(buffer, communicator_rank(to), tag_, communicator_));
  return p2p::send(buffer, communicator_rank(to), tag_, communicator_, p2p::SendMode::standard,
                   object::Channel::collective);
}

Result CollectiveGroup::receive(const Buffer& buffer, int from) {
  if (schedule_ != nullptr)
    return schedule_->wait(schedule_->receive(buffer, communicator_rank(from), tag_, communicator_));
  p2p::Completion completion;
  return p2p::receive(buffer, communicator_rank(from), tag_, communicator_, completion,
                      object::Channel::collective);
}

Result CollectiveGroup::send_receive(const Buffer& out, int to, const Buffer& in, int from) {
  if (schedule_ != nullptr) {
    auto arriving = schedule_->receive(in, communicator_rank(from), tag_, communicator_);
    NEAR_TRY(schedule_->wait(schedule_->send(out, communicator_rank(to), tag_, communicator_)));
    return schedule_->wait(arriving);
  }
  p2p::Completion completion;
  return p2p::send_receive(out, communicator_rank(to), tag_, in, communicator_rank(from), tag_, communicator_,
                           completion, object::Channel::collective);
}

/// The result of starting a message.
Result CollectiveGroup::started(Result result) {
  if (!result.ok()) [[unlikely]]
    dropped_out_ = true;
  return result;
}

Result CollectiveGroup::start_send(const Buffer& buffer, int to) {
  if (schedule_ != nullptr)
    return schedule_->pend(schedule_->send(buffer, communicator_rank(to), tag_, communicator_));
  p2p::Request* made = nullptr;
  NEAR_TRY(started(p2p::start_send(buffer, communicator_rank(to), tag_, communicator_,
                                   p2p::SendMode::standard, made, object::Channel::collective)));
  if (pending_count_ < inline_pending)
    pending_[pending_count_] = made;
  else
    overflow_.push_back(made);
  ++pending_count_;
  return {};
}

Result CollectiveGroup::start_receive(const Buffer& buffer, int from) {
  if (schedule_ != nullptr)
    return schedule_->pend(schedule_->receive(buffer, communicator_rank(from), tag_, communicator_));
  p2p::Request* made = nullptr;
  NEAR_TRY(started(p2p::start_receive(buffer, communicator_rank(from), tag_, communicator_, made,
                                      object::Channel::collective)));
  if (pending_count_ < inline_pending)
    pending_[pending_count_] = made;
  else
    overflow_.push_back(made);
  ++pending_count_;
  return {};
}

Result CollectiveGroup::start_receive_if(const bool& condition, const Buffer& buffer, int from) {
  if (schedule_ != nullptr)
    return schedule_->pend(
        schedule_->receive(buffer, communicator_rank(from), tag_, communicator_, &condition));
  return condition ? start_receive(buffer, from) : Result{};
}

/// Waits until the message is complete, or until no rank can rely on messages any more.
Result CollectiveGroup::wait(p2p::Request& request) {
  if (area_ == nullptr) {
    p2p::wait_complete(request);
    return {};
  }
  p2p::wait_until_stored([&] { return request.complete || area_->is_broken(); });
  return request.complete ? Result{} : area_->broken();
}

Result CollectiveGroup::finish_until(std::size_t remaining) {
  if (schedule_ != nullptr) return schedule_->finish_until(remaining);
  auto at = [this](std::size_t i) -> p2p::Request*& {
    return i < inline_pending ? pending_[i] : overflow_[i - inline_pending];
  };
  Result first;
  std::size_t done = 0;
  for (; pending_count_ - done > remaining; ++done) {
    if (Result waited = wait(*at(done)); !waited.ok()) { // the destructor cancels what is under way
      if (first.ok()) first = waited;
      break;
    }
    p2p::Request* oldest = std::exchange(at(done), nullptr);
    MPI_Request handle = p2p::public_handle(*oldest);
    Result result = p2p::finish(handle, *oldest, MPI_STATUS_IGNORE, false);
    if (first.ok()) first = result;
  }
  // Moved up once, since a rank may have thousands of neighbours.
  for (std::size_t i = done; i < pending_count_; ++i) at(i - done) = at(i);
  pending_count_ -= done;
  overflow_.resize(pending_count_ - std::min(pending_count_, inline_pending));
  return first;
}

Result CollectiveGroup::copy(const Buffer& from, const Buffer& to) {
  if (from.bytes() == 0) return {};
  if (from.address == to.address && from.type == to.type) return {};
  if (schedule_ != nullptr) return schedule_->copy(from, to);
  datatype::copy(from, to, std::min(from.bytes(), to.bytes()));
  return {};
}

Result CollectiveGroup::reduce(const Operation& operation, const Buffer& in, const Buffer& inout) {
  if (in.count == 0) return {};
  if (schedule_ != nullptr) return schedule_->reduce(operation, in, inout);
  datatype::reduce(operation, in.address, inout.address, in.count, *in.type);
  return {};
}

Result CollectiveGroup::allocate(std::size_t bytes, std::byte*& at) {
  if (schedule_ != nullptr) return schedule_->allocate(bytes, at);
  std::size_t rounded = base::round_up(bytes, alignment);
  if (rounded >= bytes && rounded <= inline_scratch - scratch_used_) {
    at = scratch_ + scratch_used_;
    scratch_used_ += rounded;
    return {};
  }
  std::unique_ptr<std::byte[]> storage(new (std::nothrow) std::byte[bytes]);
  if (storage == nullptr) [[unlikely]] {
    dropped_out_ = true;
    return base::fail(MPI_ERR_NO_MEM, "no memory for {} bytes of temporary space of a collective", bytes);
  }
  at = storage.get();
  owned_.push_back(std::move(storage));
  return {};
}

Result CollectiveGroup::scratch(MPI_Count count, Datatype& type, Buffer& made) {
  std::size_t bytes;
  std::ptrdiff_t origin;
  if (!scratch_layout(count, type, bytes, origin))
    return base::fail(MPI_ERR_NO_MEM, "temporary space for {} elements of {} does not fit an address", count,
                      datatype::describe(type));
  std::byte* at = nullptr;
  NEAR_TRY(allocate(bytes, at));
  made = Buffer{at + origin, count, &type};
  return {};
}

Result CollectiveGroup::scratch_bytes(MPI_Count bytes, Buffer& made) {
  return scratch(bytes, byte_type(), made);
}

} // namespace near::coll
