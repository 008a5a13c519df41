// See short_call.h.
#include "coll/shared/short_call.h"

#include "coll/collective_group.h"
#include "coll/shared/straight.h"
#include "coll/spare_memory.h"

namespace near::coll {
namespace {

bool has_predefined_type(const Buffer& buffer) { return buffer.type == nullptr || buffer.type->predefined; }

/// The ranks [first, end) that a rank reads, possibly including itself.
void find_read(const Call& call, int rank, int size, int& first, int& end) {
  first = 0;
  switch (call.collective) {
  case Collective::broadcast:
  case Collective::scatter:
    first = call.root;
    end = call.root + 1;
    break;
  case Collective::reduce:
  case Collective::gather: end = rank == call.root ? size : 0; break;
  case Collective::scan:
  case Collective::exscan: end = rank; break;
  default: end = size;
  }
}

} // namespace

std::unique_ptr<ShortCall> ShortCall::make(const Call& call, Communicator& communicator, Area& area,
                                           std::unique_ptr<AreaExtension>& own) {
  // Recorded calls keep the types that they use.
  if (!has_predefined_type(call.send) || !has_predefined_type(call.receive)) return nullptr;
  Facts facts = facts_of(call, communicator.size);
  facts.recorded = facts.area = true;
  facts.nodes = area.nodes();
  const bool straight = goes_straight(call);
  const Function function = straight ? nullptr : find_short(facts);
  if (straight ? !is_short(facts, area) : function == nullptr) return nullptr;
  auto made = std::make_unique<ShortCall>(call, communicator, area, function, facts.bytes);
  made->own_ = std::move(own);
  return made;
}

ShortCall::ShortCall(const Call& call, Communicator& communicator, Area& area, Function function,
                     MPI_Count bytes)
    : call_(call), communicator_(communicator), function_(function), bytes_(bytes),
      area_call_(area, describe(call, bytes), 1) {
  if (call.collective == Collective::reduce_scatter) {
    counts_ = call.receive_blocks.counts.widen(communicator.size);
    call_.receive_blocks.counts = Counts(counts_.data());
  }
  if (!publishes(call, communicator.rank)) area_call_.only_read();
  find_read(call, communicator.rank, communicator.size, first_, end_);
  (void)TagSpace::next(communicator); // a rank with another datatype records the call, which takes a tag
}

void* ShortCall::operator new(std::size_t size) { return SpareMemory<ShortCall>::take(size); }
void ShortCall::operator delete(void* memory, std::size_t) { SpareMemory<ShortCall>::keep(memory); }

Result ShortCall::begin() {
  area_call_.begin();
  next_ = first_;
  outcome_ = {};
  return {};
}

/// Whether all that this rank reads is there, or never will be: the area is broken.
bool ShortCall::can_read() const {
  for (int rank = next_; rank < end_; ++rank) {
    if (!area_call_.reads_at_once(rank, 0)) return false;
    if (area_call_.is_broken_at(rank)) return true;
    next_ = rank + 1;
  }
  return true;
}

bool ShortCall::may_advance() const {
  if (!outcome_.ok()) return area_call_.is_turn();
  if (area_call_.published() == 0) return !area_call_.must_wait_to_publish();
  if (area_call_.may_publish()) return true; // and passes that on to the next call
  return area_call_.is_turn() && can_read();
}

void ShortCall::note(Result result) {
  if (result.ok() || result.code() == AreaCall::not_yet.code()) return;
  outcome_ = result;
  sentence_ = base::failure_text();
}

void ShortCall::execute(AreaCall::Part part) {
  area_call_.restrict_to(part);
  if (function_ == nullptr) {
    Result result = publish_straight(call_, area_call_, bytes_);
    if (part == AreaCall::Part::reading && result.ok()) result = read_straight(call_, area_call_, bytes_);
    return note(result);
  }
  CollectiveGroup group(communicator_, area_call_);
  note(function_(group, call_));
}

/// Does what need not wait. Returns true once the call has succeeded or failed; after a failure, abandon() remains to be
/// done.
bool ShortCall::execute() {
  if (!area_call_.is_turn() || !can_read()) {
    if (area_call_.published() == 0) execute(AreaCall::Part::publishing);
    area_call_.pass_on();
  } else if (next_ < end_) {
    note(area_call_.broken());
  } else {
    execute(AreaCall::Part::reading);
  }
  return !outcome_.ok() || area_call_.finished() == 1;
}

bool ShortCall::advance(p2p::Completion& completion) {
  if (outcome_.ok() && !execute()) return false;
  if (!outcome_.ok() && !(area_call_.is_turn() && area_call_.abandon(false))) [[unlikely]]
    return false;
  area_call_.end();
  completion = p2p::Completion{};
  completion.error = object::error_class(outcome_);
  return true;
}

} // namespace near::coll
