// See short_call.h.
#include "coll/shared/short_call.h"

#include "coll/collective_group.h"
#include "coll/shared/straight.h"
#include "coll/spare_memory.h"

namespace near::coll {
namespace {

bool has_predefined_type(const Buffer& buffer) { return buffer.type == nullptr || buffer.type->predefined; }

} // namespace

std::unique_ptr<ShortCall> ShortCall::make(const Call& call, Communicator& communicator, Area& area,
                                           std::unique_ptr<AreaExtension>& own) {
  MPI_Count bytes = 0;
  Function function = nullptr;
  if (goes_straight(call, communicator)) {
    if (!is_short(call, area, true, bytes)) return nullptr;
  } else {
    const Datatype* const of_blocks = call.receive_blocks.type;
    if (!has_predefined_type(call.send) || !has_predefined_type(call.receive) ||
        (of_blocks != nullptr && !of_blocks->predefined))
      return nullptr;
    Facts facts = facts_of(call, communicator.size);
    facts.recorded = true;
    add_area(facts, area);
    bytes = facts.bytes;
    function = find_short(facts);
    if (function == nullptr) return nullptr;
  }
  auto made = std::make_unique<ShortCall>(call, communicator, area, function, bytes);
  made->own_ = std::move(own);
  return made;
}

ShortCall::ShortCall(const Call& call, Communicator& communicator, Area& area, Function function,
                     MPI_Count bytes)
    : call_(call), communicator_(communicator), function_(function), bytes_(bytes),
      area_call_(area, describe(call, bytes), 1),
      read_(ranks_read(call, communicator.rank, communicator.size)) {
  keep_types_and_counts();
  if (!publishes(call, communicator.rank)) area_call_.only_read();
  (void)TagSpace::next(communicator); // a rank with another datatype records the call, which takes a tag
}

ShortCall::ShortCall(const Call& call, Communicator& communicator, AreaCall&& rest)
    : call_(call), communicator_(communicator), function_(nullptr), bytes_(rest.bytes()),
      area_call_(std::move(rest)), read_(ranks_read(call, communicator.rank, communicator.size)),
      has_begun_(true) {
  keep_types_and_counts();
}

/// Programs may free them while the call is under way.
void ShortCall::keep_types_and_counts() {
  const auto keep = [this](Counts& used, std::vector<MPI_Count>& kept) {
    if (used.empty()) return;
    kept = used.widen(communicator_.size);
    used = Counts(kept.data());
  };
  keep(call_.receive_blocks.counts, counts_);
  keep(call_.receive_blocks.displacements, displacements_);
  types_ = {call_.send.type, call_.receive.type, call_.receive_blocks.type};
  for (Datatype*& type : types_)
    if (type != nullptr) type = type->predefined ? nullptr : object::keep(type);
}

ShortCall::~ShortCall() {
  if (has_begun_) [[unlikely]] // there was no memory for a request
    area_call_.leave();
  for (Datatype* type : types_)
    if (type != nullptr) datatype::release(type);
}

void* ShortCall::operator new(std::size_t size) { return SpareMemory<ShortCall>::take(size); }
void ShortCall::operator delete(void* memory, std::size_t) { SpareMemory<ShortCall>::keep(memory); }

Result ShortCall::begin() {
  next_ = read_.first;
  outcome_ = {};
  is_over_ = false;
  if (std::exchange(has_begun_, false)) return {};
  if (Number left = 0; function_ == nullptr && begin_straight(call_, area_call_.area(), bytes_, left)) {
    is_over_ = left == 0;
    if (!is_over_) area_call_.begin(left, AreaCall::Published{});
  } else {
    area_call_.begin();
  }
  return {};
}

/// Whether all that this rank reads is there, or never will be: the area is broken.
bool ShortCall::can_read() const {
  for (int rank = next_; rank < read_.end; ++rank) {
    if (!area_call_.reads_at_once(rank, 0)) return false;
    if (area_call_.is_broken_at(rank)) return true;
    next_ = rank + 1;
  }
  return true;
}

bool ShortCall::may_advance() const {
  if (!outcome_.ok()) return area_call_.is_turn();
  if (area_call_.published() == 0) {
    const auto look = area_call_.look();
    return !area_call_.must_wait_to_publish();
  }
  if (area_call_.may_publish()) return true; // and passes that on to the next call
  return area_call_.is_turn() && can_read();
}

void ShortCall::note(Result result) {
  if (result.ok() || result.code() == AreaCall::not_yet.code()) return;
  outcome_ = result;
  base::keep_failure_text(sentence_);
}

void ShortCall::execute(AreaCall::Part part) {
  area_call_.restrict_to(part);
  if (function_ == nullptr) {
    Result result;
    if (area_call_.published() == 0) result = publish_straight(call_, area_call_, bytes_);
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
  } else if (next_ < read_.end) {
    note(area_call_.broken());
  } else {
    execute(AreaCall::Part::reading);
  }
  return !outcome_.ok() || area_call_.finished() == 1;
}

bool ShortCall::advance(p2p::Completion& completion) {
  if (is_over_) {
    completion = p2p::Completion{};
    return true;
  }
  if (outcome_.ok() && !execute()) return false;
  if (!outcome_.ok() && !(area_call_.is_turn() && area_call_.abandon(false))) [[unlikely]]
    return false;
  area_call_.end();
  completion = p2p::Completion{};
  completion.error = object::error_class(outcome_);
  return true;
}

} // namespace near::coll
