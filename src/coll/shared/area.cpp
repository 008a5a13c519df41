// See area.h.
#include "coll/shared/area.h"

#include "coll/registry.h"
#include "datatype/operation.h"
#include "p2p/request.h"
#include "transport/doorbell.h"
#include "transport/registry.h"

#include <algorithm>

namespace near::coll {
namespace {

/// Looks at a flag before a wait is set up: some 50 us.
constexpr int looks = 4096, looks_between_polls = 16;

std::string describe(const Description& description) {
  std::string text(name_of(static_cast<Collective>(description.collective)));
  if (description.collective != static_cast<std::uint8_t>(Collective::barrier))
    text += base::format(" of {} bytes", description.bytes);
  if (description.operation != 0)
    text += base::format(", {}", datatype::name_of(static_cast<datatype::Builtin>(description.operation)));
  if (description.root >= 0) text += base::format(", root {}", description.root);
  return text;
}

} // namespace

Description describe(const Call& call, MPI_Count bytes) {
  Description made;
  made.collective = static_cast<std::uint8_t>(call.collective);
  made.root = has_root(call.collective) ? call.root : -1;
  made.bytes = static_cast<std::uint64_t>(bytes);
  if (call.operation != nullptr) {
    made.operation = static_cast<std::uint8_t>(call.operation->builtin);
    made.element = static_cast<std::uint8_t>(call.send.type->basic);
  }
  return made;
}

Area::Area(std::vector<AreaMember> members, int rank, std::byte* base, Slices& slices)
    : members_(std::move(members)), rank_(rank), base_(base), slices_(slices) {}

Area::~Area() { slices_.give_back(*this); }

template <class Done>
void Area::wait_until(Done&& done) {
  if (done()) return;
  ++waits_;
  if (!ranks_share_processors() && !transport::EngineLock::threads_allowed())
    for (int look = 1; look <= looks; ++look) {
      if (done()) return;
      if (look % looks_between_polls == 0)
        p2p::progress();
      else
        base::cpu_relax();
    }
  p2p::wait_until_stored(done);
}

void Area::ring_all() {
  for (const AreaMember& member : members_)
    if (member.doorbell != nullptr)
      transport::DoorbellCalls::ring_if_sleeping(member.doorbell->sleeping, member.doorbell->bell,
                                                 transport::wait_settings.fences);
}

void Area::note_finished(AreaMember& member, Number finished) {
  if (!queue::has_reached(member.finished, finished)) member.finished = finished;
}

bool Area::all_finished(Number number) {
  for (int i = 0; i < size(); ++i) {
    AreaMember& member = members_[static_cast<std::size_t>(i)];
    if (i == rank_ || queue::has_reached(member.finished, number)) continue;
    note_finished(member, member.part->finished.value());
    if (!queue::has_reached(member.finished, number)) return false;
  }
  return true;
}

Number Area::begin(const Description& description, Number numbers) {
  description_ = description;
  const Number first = next_;
  next_ += numbers;
  return first;
}

bool Area::can_prepare(Number number, MPI_Count bytes) {
  return all_finished(number - ring_depth) &&
         (bytes <= inline_bytes || slices_.can_take(static_cast<std::size_t>(bytes)));
}

Result Area::prepare(Number number, MPI_Count bytes, std::byte*& at) {
  wait_until([this, number] { return all_finished(number - ring_depth); });
  segment::Offset& data = prepared_[number % ring_depth];
  if (bytes <= inline_bytes) {
    data = 0;
    at = entry(rank_, number).payload;
    return {};
  }
  const auto needed = static_cast<std::size_t>(bytes);
  at = slices_.take(*this, number, needed);
  if (at == nullptr && !slices_.exhausted(needed)) {
    wait_until([this, needed] { return slices_.can_take(needed) || slices_.exhausted(needed); });
    at = slices_.take(*this, number, needed);
  }
  if (at == nullptr)
    return base::fail(MPI_ERR_NO_MEM,
                      "no shareable memory for {} bytes in which ranks exchange data of collectives", bytes);
  data = static_cast<segment::Offset>(at - base_);
  return {};
}

void Area::publish(Number number) {
  Entry& mine = entry(rank_, number);
  mine.finished = finished_;
  mine.description = description_;
  mine.data = prepared_[number % ring_depth];
  NEAR_KILL_POINT("entry-written");
  mine.flag.raise(number);
  NEAR_KILL_POINT("entry-raised");
  ring_all();
}

void Area::publish_empty(Number number) {
  wait_until([this, number] { return all_finished(number - ring_depth); });
  prepared_[number % ring_depth] = 0;
  publish(number);
}

void Area::publish_failure(Number number) {
  wait_until([this, number] { return all_finished(number - ring_depth); });
  prepared_[number % ring_depth] = no_memory;
  publish(number);
}

std::byte* Area::data(int rank, Number number) const {
  Entry& from = entry(rank, number);
  const segment::Offset at = rank == rank_ ? prepared_[number % ring_depth] : from.data;
  return at == 0 ? from.payload : base_ + at;
}

Result Area::mismatch(int rank, const Description& theirs) {
  return base::fail(MPI_ERR_OTHER, "rank {} calls {}, but rank {} of the same communicator calls {}", rank_,
                    describe(description_), rank, describe(theirs));
}

Result Area::wait(int rank, Number number, const std::byte*& at) {
  Entry& from = entry(rank, number);
  wait_until([&from, number] { return from.flag.has(number); });
  note_finished(members_[static_cast<std::size_t>(rank)], from.finished);
  if (from.description != description_) [[unlikely]]
    return mismatch(rank, from.description);
  if (from.data == no_memory) [[unlikely]]
    return base::fail(MPI_ERR_NO_MEM, "rank {} has no memory in which to exchange data of a collective",
                      rank);
  at = data(rank, number);
  return {};
}

void Area::publish_result(Number number) {
  own().results[number % ring_depth].flag.raise(number);
  ring_all();
}

void Area::wait_for_result(int rank, Number number) {
  auto& flag = members_[static_cast<std::size_t>(rank)].part->results[number % ring_depth].flag;
  wait_until([&flag, number] { return flag.has(number); });
}

void Area::finish(Number number) {
  finished_ = number;
  NEAR_KILL_POINT("entry-read");
  own().finished.raise(number);
  ring_all();
}

} // namespace near::coll
