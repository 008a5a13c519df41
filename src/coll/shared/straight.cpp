// See straight.h.
#include "coll/shared/straight.h"

#include "coll/collective_group.h"
#include "coll/registry.h"
#include "coll/shared/straight_halves.h"

namespace near::coll {
namespace {

bool has_form(Collective collective) {
  switch (collective) {
    using enum Collective;
  case barrier:
  case broadcast:
  case reduce:
  case allreduce:
  case gather:
  case scatter:
  case allgather:
  case allgatherv:
  case alltoall:
  case scan:
  case exscan:
  case reduce_scatter:
  case reduce_scatter_block: return true;
  default: return false;
  }
}

/// A nonblocking or persistent call's use of the area: forwards to its AreaCall.
class CallInTurn {
public:
  explicit CallInTurn(AreaCall& call) : call_(call) {}

  int rank() const { return call_.rank(); }
  int size() const { return call_.size(); }
  bool finished() const { return call_.finished() != 0; }

  template <class Fill>
  Result publish(MPI_Count bytes, Fill&& fill) {
    return call_.publish(0, bytes, fill);
  }
  template <class Fill>
  Result only_publish(MPI_Count bytes, Fill&& fill) {
    return call_.only_publish(bytes, fill);
  }
  template <class Consume>
  Result read(int rank, MPI_Count bytes, Consume&& consume) {
    return call_.read(rank, 0, bytes, consume);
  }
  void finish() { call_.finish(0); }

private:
  AreaCall& call_;
};

/// Of an allgatherv: whether they have no gaps, and this rank's is as long as what it sends.
bool has_blocks(const Call& call, int rank) {
  return is_one_block(call.receive_blocks.at(rank)) &&
         call.send.bytes() == call.receive_blocks.at(rank).bytes();
}

} // namespace

bool goes_straight(const Call& call, const Communicator& communicator) {
  if (!has_form(call.collective) || !is_one_block(call.send) || !is_one_block(call.receive)) return false;
  if (call.collective == Collective::allgatherv) return has_blocks(call, communicator.rank);
  // A program that is wrong may send less than it receives.
  const bool exchanges = call.collective == Collective::allgather || call.collective == Collective::alltoall;
  return !exchanges || call.send.bytes() == call.receive.bytes();
}

namespace {

/// Facts::bytes of a call that goes straight.
MPI_Count bytes_of(const Call& call, int size) {
  switch (call.collective) {
    using enum Collective;
  case barrier: return 0;
  case gather:
  case reduce:
  case allreduce:
  case scan:
  case exscan: return call.send.bytes();
  case allgatherv:
  case reduce_scatter:
  case reduce_scatter_block: return facts_of(call, size).bytes;
  default: return call.receive.bytes();
  }
}

[[gnu::noinline]] bool choose_short(const Call& call, const Area& area, bool recorded) {
  Facts facts = facts_of(call, area.size());
  facts.recorded = recorded;
  add_area(facts, area);
  return find_short(facts) != nullptr;
}

} // namespace

bool is_short(const Call& call, Area& area, bool recorded, MPI_Count& bytes) {
  bytes = bytes_of(call, area.size());
  const auto operation = call.operation != nullptr ? call.operation->builtin : datatype::Builtin::user;
  const Area::LastChoice::Kind kind{operation, call.in_place, recorded, area.reading()};
  const MPI_Count longest =
      call.collective == Collective::reduce_scatter ? facts_of(call, area.size()).longest : 0;
  Area::LastChoice& last = area.last_choice(call.collective);
  if (last.bytes != bytes || last.longest != longest || last.kind != kind) [[unlikely]]
    last = {bytes, longest, kind, choose_short(call, area, recorded)};
  return last.has_straight_form;
}

Result publish_straight(const Call& call, AreaCall& area_call, MPI_Count bytes) {
  CallInTurn use(area_call);
  return Straight(call, use, bytes).publish();
}

Result read_straight(const Call& call, AreaCall& area_call, MPI_Count bytes) {
  CallInTurn use(area_call);
  return Straight(call, use, bytes).read();
}

bool is_soon_there(const Call& call, const Area& area, Number number, const Description& description) {
  const RankRange read = ranks_read(call, area.rank(), area.size());
  return area.happens_soon([&, next = read.first]() mutable {
    while (next < read.end && (next == area.rank() || area.is_readable(next, number, description))) ++next;
    return next >= read.end;
  });
}

namespace {

/// The communicator's area if the call may go straight there now.
Area* area_of(const Call& call, const Communicator& communicator) {
  if (communicator.extension == nullptr || communicator.is_inter() || !goes_straight(call, communicator))
    return nullptr;
  Area* const area = static_cast<AreaExtension&>(*communicator.extension).of_all;
  return area != nullptr && area->is_idle() ? area : nullptr;
}

/// While no other call is under way in the area. Where it would have to wait long before it reads, it does not if there is a
/// `left`, which then is the call's number: the rest of the call is left. Otherwise `left` stays as it is.
Result execute(const Call& call, Area& area, MPI_Count bytes, Number* left) {
  const Description description = describe(call, bytes);
  SoleCall use(area, description, publishes(call, area.rank()));
  Straight straight(call, use, bytes);
  Result result = straight.publish();
  if (left != nullptr && result.ok() && !is_soon_there(call, area, use.number(), description)) {
    *left = use.number();
    return result;
  }
  if (result.ok()) result = straight.read();
  if (!result.ok()) [[unlikely]]
    use.abandon();
  return result;
}

/// Whether a call in an idle area need not wait before it has published.
bool publishes_now(const Call& call, Area& area, MPI_Count bytes) {
  if (!publishes(call, area.rank())) return true;
  return area.can_prepare_next(published_by_rank(call, bytes, area.size()));
}

} // namespace

bool start_straight(const Call& call, Communicator& communicator, std::optional<AreaCall>& rest) {
  Area* const area = area_of(call, communicator);
  MPI_Count bytes = 0;
  if (area == nullptr || !is_short(call, *area, true, bytes) || !publishes_now(call, *area, bytes))
    return false;
  (void)TagSpace::next(communicator); // as a rank whose buffer has gaps does
  Number left = 0;
  (void)execute(call, *area, bytes, &left); // cannot fail: it waits for nothing
  if (left != 0) rest.emplace(*area, describe(call, bytes), left, AreaCall::Published{});
  return true;
}

bool begin_straight(const Call& call, Area& area, MPI_Count bytes, Number& left) {
  if (!area.is_idle() || !publishes_now(call, area, bytes)) return false;
  left = 0;
  (void)execute(call, area, bytes, &left);
  return true;
}

bool run_straight(const Call& call, Communicator& communicator, Result& result) {
  Area* const area = area_of(call, communicator);
  MPI_Count bytes = 0;
  if (area == nullptr || !is_short(call, *area, false, bytes)) return false;
  (void)TagSpace::next(communicator); // as a rank whose buffer has gaps does
  result = execute(call, *area, bytes, nullptr);
  return true;
}

} // namespace near::coll
