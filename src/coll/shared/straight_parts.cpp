// Blocks of different sizes that go straight (straight.h): as gatherv_shared(), scatterv_shared() and alltoallv_shared(), without
// memory for lists of parts, for a rank that publishes few bytes, or none, and whose buffers have no gaps. The others' parts may
// be messages.
#include "coll/collective_group.h"
#include "coll/shared/kept_error.h"
#include "coll/shared/parts.h"
#include "coll/shared/straight.h"
#include "coll/shared/straight_common.h"
#include "segment/reserve.h"

#include <cstring>

namespace near::coll {
namespace {

/// As in gather/linear.cpp.
constexpr std::size_t root_receives = 8;

bool has_parts(Collective collective) {
  switch (collective) {
    using enum Collective;
  case gatherv:
  case scatterv:
  case alltoallv:
  case alltoallw: return true;
  default: return false;
  }
}

/// One rank's part in such a call.
class StraightParts {
public:
  StraightParts(const Call& call, Area& area)
      : call_(call), area_(area), rank_(area.rank()), size_(area.size()) {
    const bool is_root = rank_ == call.root;
    switch (call.collective) {
    case Collective::gatherv:
      parts_ = is_root ? 0 : 1;
      reads_ = is_root;
      break;
    case Collective::scatterv:
      parts_ = is_root ? size_ : 0;
      reads_ = !is_root;
      break;
    default: parts_ = size_; reads_ = true;
    }
  }

  /// Whether this rank's parts are few bytes, and no buffer of this rank has gaps.
  bool is_possible() {
    bool possible = copy::can_copy(call_.send_blocks.kind) && copy::can_copy(call_.receive_blocks.kind);
    bytes_ = parts_ == 0
                 ? 0
                 : lay_out_parts(
                       parts_,
                       [&](int i) {
                         const Buffer part = part_of(i);
                         possible &= is_one_block(part);
                         return part.bytes();
                       },
                       [&](int, PartRange range) { possible &= range.bytes != PartRange::is_message; });
    if (!possible || bytes_ > short_bytes) return false;
    if (has_own() && (!is_one_block(own_sent()) || !is_one_block(received_from(rank_)) ||
                      own_sent().bytes() != received_from(rank_).bytes()))
      return false;
    for (int step = 1; reads_ && step < size_; ++step)
      if (reads_from(after(step)) && !is_one_block(received_from(after(step)))) return false;
    return true;
  }

  /// Whether the call, in an idle area, need not wait before it has published.
  bool publishes_now() const { return parts_ == 0 || area_.can_prepare_next(bytes_); }
  /// With `left`, after publishes_now(), does not wait: if something that it reads is neither there nor comes soon, or is a message or
  /// too long, `left` becomes the call's number, and all but publishing is left.
  Result run(Number* left) {
    const Description call = describe(call_, facts_of(call_, size_).bytes);
    SoleCall use(area_, call, parts_ != 0);
    const Result result = publish_and_read(use, call, left);
    if (!result.ok()) [[unlikely]] {
      use.abandon();
      return result;
    }
    if (messages_ == 0 && (left == nullptr || *left == 0)) copy_own();
    return {};
  }

  /// Whether run(), which has succeeded, has found that others send this rank messages.
  bool has_messages() const { return messages_ != 0; }
  /// Receives them, in the order in which the others send them.
  Result receive_messages(CollectiveGroup& group) {
    const bool in_rounds = call_.collective != Collective::gatherv;
    if (in_rounds) copy_own();
    for (int step = 1; step < size_; ++step) {
      const int from = after(in_rounds ? size_ - step : step);
      if ((messages_ >> from & 1) == 0) continue;
      NEAR_TRY(group.start_receive(received_from(from), from));
      error_.note(group.finish_until(in_rounds ? 0 : root_receives - 1));
    }
    if (!in_rounds) copy_own();
    error_.note(group.finish_until(0));
    return {};
  }
  /// The first error that did not keep this rank from its part in the rest of the call.
  Result outcome() { return error_.take(); }

private:
  int after(int step) const { return (rank_ + step) % size_; }
  /// What this rank publishes at this place of its table.
  Buffer part_of(int i) const {
    if (call_.collective == Collective::gatherv) return call_.send;
    return i == rank_ ? Buffer{nullptr, 0, &byte_type()} : call_.send_blocks.at(i);
  }
  bool has_own() const { return rank_ == call_.root || parts_ == size_; }
  Buffer own_sent() const {
    return call_.collective == Collective::gatherv ? call_.send : call_.send_blocks.at(rank_);
  }
  Buffer received_from(int rank) const {
    return call_.collective == Collective::scatterv ? call_.receive : call_.receive_blocks.at(rank);
  }
  bool reads_from(int rank) const { return call_.collective != Collective::scatterv || rank == call_.root; }

  void copy_own() const {
    if (!has_own()) return;
    const Buffer from = own_sent(), to = received_from(rank_);
    const MPI_Count bytes = from.bytes();
    if (bytes == 0) return; // the addresses may be null
    std::byte *const there = to.contiguous_start(), *const here = from.contiguous_start();
    if (bytes <= piece_bytes)
      put(there, here, bytes);
    else if (there != here)
      datatype::copy(from, to, bytes);
  }

  /// What this rank reads there of another's parts.
  int place() const { return call_.collective == Collective::gatherv ? 0 : rank_; }

  Result publish_and_read(SoleCall& use, const Description& call, Number* left) {
    if (parts_ != 0) {
      const auto fill = [this](std::byte* at) { fill_parts(at); };
      NEAR_TRY(reads_ ? use.publish(bytes_, fill) : use.only_publish(bytes_, fill));
    }
    if (left != nullptr &&
        !(is_soon_there(call_, area_, use.number(), call) && has_only_parts(use.number()))) {
      *left = use.number();
      return {};
    }
    for (int step = 1; reads_ && step < size_; ++step)
      if (reads_from(after(step))) NEAR_TRY(read(use, after(step)));
    if (!use.finished()) use.finish();
    return {};
  }

  /// Of what is all there.
  bool has_only_parts(Number number) const {
    for (int step = 1; reads_ && step < size_; ++step) {
      const int from = after(step);
      if (!reads_from(from)) continue;
      const PartRange range = range_of_part(area_.data(from, number), place());
      if (range.bytes == PartRange::is_message || range.bytes > received_from(from).bytes()) return false;
    }
    return true;
  }

  void fill_parts(std::byte* at) const {
    lay_out_parts(
        parts_, [this](int i) { return part_of(i).bytes(); },
        [&](int i, PartRange range) {
          std::memcpy(at + table_bytes(i), &range, sizeof range);
          if (range.bytes != 0) put(at + range.begin * part_unit, part_of(i).contiguous_start(), range.bytes);
        });
  }

  Result read(SoleCall& use, int from) {
    const Result result = use.read_some(from, [&](const std::byte* published) -> MPI_Count {
      const PartRange range = range_of_part(published, place());
      if (range.bytes == PartRange::is_message) {
        messages_ |= std::uint64_t{1} << from;
        return 0;
      }
      const Buffer into = received_from(from);
      if (const Result fits = check_part(from, range, into.bytes()); !fits.ok()) [[unlikely]] {
        error_.note(fits);
        return 0;
      }
      if (range.bytes != 0) put(into.contiguous_start(), published + range.begin * part_unit, range.bytes);
      return range.bytes;
    });
    // As in ArrivingParts::read_alone(): nobody else learns that a rank had no memory to publish.
    if (result.code() != MPI_ERR_NO_MEM || call_.collective != Collective::gatherv) return result;
    error_.note(result);
    return {};
  }

  const Call& call_;
  Area& area_;
  const int rank_, size_;
  int parts_ = 0;      ///< in the table that this rank publishes; 0: it publishes nothing
  bool reads_ = false; ///< it reads others' parts
  MPI_Count bytes_ = 0;
  std::uint64_t messages_ = 0; ///< bit r: rank r sends its part as a message
  static_assert(segment::most_area_ranks <= 64);
  KeptError error_;
};

/// Whether the algorithm that is chosen is one of those. The area keeps the last answer.
bool chooses_parts(const Call& call, Area& area, bool recorded) {
  const Area::LastChoice::Kind kind{datatype::Builtin::user, call.in_place, recorded, area.reading()};
  Area::LastChoice& last = area.last_choice(call.collective);
  if (last.bytes != 0 || last.kind != kind) [[unlikely]] {
    Facts facts = facts_of(call, area.size());
    facts.recorded = recorded;
    add_area(facts, area);
    last = {0, 0, kind, publishes_parts(facts)};
  }
  return last.has_straight_form;
}

/// The communicator's area if the call may go straight there now, as far as is known before its parts are.
Area* area_of(const Call& call, const Communicator& communicator, bool recorded) {
  if (!has_parts(call.collective) || communicator.extension == nullptr || communicator.is_inter())
    return nullptr;
  Area* const area = static_cast<AreaExtension&>(*communicator.extension).of_all;
  return area != nullptr && area->is_idle() && chooses_parts(call, *area, recorded) ? area : nullptr;
}

/// run_parts_straight() or, with `left`, start_parts_straight().
[[gnu::noinline]] bool execute_parts(const Call& call, Communicator& communicator, Result& result,
                                     Number* left) {
  Area* const area = area_of(call, communicator, left != nullptr);
  if (area == nullptr) return false;
  StraightParts straight(call, *area);
  if (!straight.is_possible() || (left != nullptr && !straight.publishes_now())) return false;
  result = straight.run(left);
  if (left != nullptr && *left != 0) return true;
  if (result.ok() && straight.has_messages()) {
    CollectiveGroup group(communicator, nullptr, area);
    result = straight.receive_messages(group);
    if (group.has_dropped_out()) [[unlikely]] // as run() says
      area->give_up(describe(call, facts_of(call, area->size()).bytes));
  } else {
    (void)TagSpace::next(communicator); // as a group takes it
  }
  if (result.ok()) result = straight.outcome();
  return true;
}

} // namespace

bool run_parts_straight(const Call& call, Communicator& communicator, Result& result) {
  return execute_parts(call, communicator, result, nullptr);
}

bool start_parts_straight(const Call& call, Communicator& communicator, Number& left) {
  Result result; // cannot fail: what it reads is there, has the same description, and fits
  left = 0;
  return execute_parts(call, communicator, result, &left);
}

} // namespace near::coll
