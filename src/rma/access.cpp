// Put, get and accumulate: the origin moves the bytes. Source: MPI 5.0, section 12.3.
#include "base/checked.h"
#include "base/kill_point.h"
#include "coll/collective_group.h"
#include "os/clock.h"
#include "rma/state.h"

#include <algorithm>
#include <cstring>

namespace near::rma {

namespace {

/// Bytes from a buffer's address: where the data begins, and where it ends. False when that does not fit.
bool hull(MPI_Count count, const Datatype& type, MPI_Count& low, MPI_Count& high) {
  MPI_Count steps = 0;
  if (!base::checked_multiply(count - 1, type.extent, steps)) return false;
  MPI_Count end = 0;
  if (!base::checked_add(type.true_lb, type.true_extent, end)) return false;
  return base::checked_add(type.true_lb, std::min<MPI_Count>(steps, 0), low) &&
         base::checked_add(end, std::max<MPI_Count>(steps, 0), high);
}

Result out_of_range(const Window& window, const Target& target) {
  return base::fail(MPI_ERR_RMA_RANGE,
                    "{} elements of {} bytes at displacement {} are not within the part of rank {} of {}",
                    target.count, target.type->extent, target.displacement, target.rank,
                    object::describe(window));
}

/// Where in the segment attached memory is.
struct Attached {
  bool shared = false;          ///< all of it is there,
  std::uint64_t to_segment = 0; ///< at its address plus this
};

/// Whether all that the target's data take, from `address` on, is attached. Data with gaps may lie in pieces
/// of memory that have nothing to do with each other.
bool find_all_attached(const Member& member, std::uint64_t address, const Target& target, MPI_Count low,
                       MPI_Count high, Attached& found) {
  const Attachments& attached = shared_part(member).attached;
  const std::uint64_t begin = address + static_cast<std::uint64_t>(low),
                      end = address + static_cast<std::uint64_t>(high);
  AttachedRange range;
  if (begin < end && find_attached(attached, begin, end, range)) {
    found = {range.shared, range.to_segment};
    return true;
  }
  constexpr std::size_t most = 256;
  const Buffer there{reinterpret_cast<void*>(address), target.count, target.type};
  std::vector<datatype::Piece> pieces;
  found.shared = true;
  range = {};
  const MPI_Count bytes = there.bytes();
  for (MPI_Count at = 0; at < bytes;) {
    pieces.clear();
    at += datatype::pieces(there, at, bytes - at, pieces, most);
    for (const auto& piece : pieces) {
      const auto first = reinterpret_cast<std::uint64_t>(piece.address), behind = first + piece.bytes;
      if (first >= range.begin && behind <= range.end && first < behind) continue;
      if (first >= behind || !find_attached(attached, first, behind, range)) return false;
      found = {found.shared && range.shared, range.to_segment};
    }
  }
  return true;
}

/// Why the kernel did not copy. A target that has died is not our program's error, and its end is the job's:
/// that is waited for, but not for ever.
Result out_of_reach(transport::Peer& peer, std::uint64_t address) {
  std::string why(base::failure_text());
  if (!transport::reaches_memory_of(peer)) {
    constexpr std::uint64_t launcher_acts_ns = 2'000'000'000;
    std::uint64_t until = os::monotonic_ns() + launcher_acts_ns;
    p2p::wait_until([until] { return os::monotonic_ns() >= until; });
    return base::fail(MPI_ERR_PROC_ABORTED,
                      "the target cannot be reached any more, as if its process had ended: {}", why);
  }
  return base::fail(MPI_ERR_RMA_RANGE, "the kernel does not reach the memory at {:#x} of the target: {}",
                    address, why);
}

/// The kernel takes so many pieces on each side of a call (IOV_MAX).
constexpr std::size_t most_pieces = 1024;

/// As many packed bytes of both views, from `at` on, as one call of the kernel moves, in pieces.
struct Batch {
  std::vector<datatype::Piece> here_pieces, there_pieces;
  std::vector<os::Run> here, there;
  MPI_Count bytes = 0;

  void fill_there(const Buffer& buffer, MPI_Count at, MPI_Count most) {
    there_pieces.clear();
    bytes = datatype::pieces(buffer, at, most, there_pieces, most_pieces);
  }
  /// Of those bytes, as many as there are pieces for.
  void fill_here(const Buffer& buffer, MPI_Count at) {
    here_pieces.clear();
    MPI_Count covered = datatype::pieces(buffer, at, bytes, here_pieces, most_pieces);
    for (; bytes > covered; there_pieces.pop_back()) {
      auto last = static_cast<MPI_Count>(there_pieces.back().bytes);
      if (bytes - last >= covered) {
        bytes -= last;
        continue;
      }
      there_pieces.back().bytes = static_cast<std::size_t>(last - (bytes - covered));
      bytes = covered;
      break;
    }
    list(here_pieces, here);
    list(there_pieces, there);
  }
  static void list(const std::vector<datatype::Piece>& pieces, std::vector<os::Run>& runs) {
    runs.clear();
    for (const auto& piece : pieces) runs.push_back({piece.address, piece.bytes});
  }
  std::uint64_t address() const {
    return there_pieces.empty() ? 0 : reinterpret_cast<std::uint64_t>(there_pieces.front().address);
  }
};

/// Small pieces that lie close together are read with what lies between them, in one run: that costs the
/// kernel less than to look for each.
class CoveringRead {
public:
  /// Reads the pieces of a batch. False when they are too far apart, or when what lies between cannot be
  /// read.
  bool read(transport::Peer& peer, const Batch& batch) {
    theirs_.clear();
    mine_.clear();
    places_.clear();
    std::size_t used = 0;
    std::uint64_t end = 0;
    for (const auto& piece : batch.there_pieces) {
      auto begin = reinterpret_cast<std::uint64_t>(piece.address);
      if (theirs_.empty() || begin < end || begin - end > most_between)
        theirs_.push_back({piece.address, 0});
      else
        used += begin - end;
      places_.push_back(used);
      used += piece.bytes;
      end = begin + piece.bytes;
      theirs_.back().bytes = end - reinterpret_cast<std::uint64_t>(theirs_.back().address);
      if (used > most_bytes) return false;
    }
    if (theirs_.size() > batch.there_pieces.size() / 4) return false;
    bytes_.resize(used);
    mine_.push_back({bytes_.data(), used});
    return transport::copy_from_peer(peer, theirs_, mine_);
  }
  void unpack(const Batch& batch, const Buffer& here, MPI_Count at) {
    // Each piece to its place among the packed bytes, which is never behind the one where it is.
    std::size_t packed = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t bytes = batch.there_pieces[i].bytes;
      copy::raw_overlapping(bytes_.data() + packed, bytes_.data() + places_[i], bytes);
      packed += bytes;
    }
    datatype::unpack(here, at, bytes_.data(), batch.bytes);
  }

private:
  static constexpr std::uint64_t most_between = 512;
  static constexpr std::size_t most_bytes = 1u << 20;
  std::vector<os::Run> theirs_, mine_;
  std::vector<std::size_t> places_;
  std::vector<std::byte> bytes_;
};

/// Moves packed bytes from a buffer here into one in another's private memory, as it lies there.
Result store_through_kernel(const Buffer& here, const Buffer& there, transport::Peer& peer) {
  Batch batch;
  for (MPI_Count at = 0, bytes = there.bytes(); at < bytes; at += batch.bytes) {
    batch.fill_there(there, at, bytes - at);
    batch.fill_here(here, at);
    if (!transport::copy_to_peer(peer, batch.there, batch.here)) return out_of_reach(peer, batch.address());
  }
  return {};
}

/// The other way.
Result load_through_kernel(const Buffer& here, const Buffer& there, transport::Peer& peer) {
  Batch batch;
  CoveringRead covering;
  for (MPI_Count at = 0, bytes = there.bytes(); at < bytes; at += batch.bytes) {
    batch.fill_there(there, at, bytes - at);
    if (covering.read(peer, batch)) {
      covering.unpack(batch, here, at);
      continue;
    }
    batch.fill_here(here, at);
    if (!transport::copy_from_peer(peer, batch.there, batch.here)) return out_of_reach(peer, batch.address());
  }
  return {};
}

Buffer buffer_of(const Place& place, const Target& target) {
  void* address = place.peer == nullptr ? place.here : reinterpret_cast<void*>(place.address);
  return {address, target.count, target.type};
}

Result store(const Buffer& from, const Place& place, const Target& target) {
  Buffer there = buffer_of(place, target);
  if (place.peer != nullptr) return store_through_kernel(from, there, *place.peer);
  datatype::copy(from, there, there.bytes());
  return {};
}

Result load(const Buffer& into, const Place& place, const Target& target) {
  Buffer there = buffer_of(place, target);
  if (place.peer != nullptr) return load_through_kernel(into, there, *place.peer);
  datatype::copy(there, into, there.bytes());
  return {};
}

/// Rank, epoch, amounts, range. `place` is set unless there is nothing to do.
Result prepare(const Target& target, MPI_Count bytes, Window& window, bool& nothing, Place& place) {
  nothing = true;
  if (target.rank == MPI_PROC_NULL) return {};
  NEAR_TRY(check_rank(target.rank, window));
  NEAR_TRY(open_access(target.rank, window));
  MPI_Count there = target.count * target.type->size; // a number: the glue has looked
  if (bytes != there)
    return base::fail(MPI_ERR_COUNT, "{} bytes here and {} at the target: a one-sided call moves as many",
                      bytes, there);
  if (there == 0) return {};
  nothing = false;
  return find_place(window, target, place);
}

/// The buffer as elements that lie one behind the other; false when they do not.
bool as_elements(Buffer& buffer, Datatype& element) {
  if (!buffer.type->dense || !element.dense)
    return buffer.type->basic == element.basic && element.basic != datatype::Basic::none;
  buffer = {buffer.dense_start(), buffer.bytes() / element.size, &element, buffer.kind};
  return true;
}

/// Room for `count` elements of a predefined type.
Result room_for(MPI_Count count, Datatype& element, std::vector<std::byte>& memory, Buffer& buffer) {
  std::size_t bytes = 0;
  std::ptrdiff_t origin = 0;
  if (!coll::scratch_layout(count, element, bytes, origin))
    return base::fail(MPI_ERR_NO_MEM, "{} elements of {} bytes are more than memory can hold", count,
                      element.size);
  memory.resize(bytes);
  buffer = {memory.data() + origin, count, &element};
  return {};
}

} // namespace

Result find_place(const Window& window, const Target& target, Place& place) {
  const State& state = state_of(window);
  const Member& member = state.members[static_cast<std::size_t>(target.rank)];
  MPI_Count low = 0, high = 0, offset = 0;
  if (!hull(target.count, *target.type, low, high)) return out_of_range(window, target);
  bool is_shared = false;
  Offset shared = 0;
  std::uint64_t address = 0;
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    address = static_cast<std::uint64_t>(target.displacement);
    Attached attached;
    if (!find_all_attached(member, address, target, low, high, attached))
      return base::fail(
          MPI_ERR_RMA_RANGE,
          "rank {} has not attached all of the memory at {:#x} that {} elements of {} bytes take",
          target.rank, address, target.count, target.type->extent);
    is_shared = attached.shared;
    shared = address + attached.to_segment;
  } else {
    MPI_Count first = 0, behind = 0;
    if (target.displacement < 0)
      return base::fail(MPI_ERR_DISP, "target_disp is {}, but must not be negative", target.displacement);
    if (!base::checked_multiply<MPI_Count>(target.displacement, member.unit, offset) ||
        !base::checked_add(offset, low, first) || !base::checked_add(offset, high, behind) || first < 0 ||
        behind > member.size)
      return out_of_range(window, target);
    address = member.address + static_cast<std::uint64_t>(offset);
    is_shared = member.shared != 0;
    shared = member.shared + static_cast<std::uint64_t>(offset);
  }
  place.address = address;
  if (target.rank == state.rank)
    place.here = reinterpret_cast<std::byte*>(address);
  else if (is_shared)
    // As numbers: for absolute addresses at the target this lies anywhere, and only with what the datatype
    // adds in the segment.
    place.here = reinterpret_cast<std::byte*>(
        reinterpret_cast<std::uintptr_t>(transport::job_segment().base()) + shared);
  else
    place.peer = &peer_of(window, target.rank);
  return {};
}

Result put(const Buffer& origin, const Target& target, Window& window) {
  NEAR_TRY(datatype::check_copyable(origin));
  Place place;
  bool nothing = true;
  NEAR_TRY(prepare(target, origin.bytes(), window, nothing, place));
  if (nothing) return {};
  note_write(window);
  return store(origin, place, target);
}

Result get(const Buffer& origin, const Target& target, Window& window) {
  NEAR_TRY(datatype::check_copyable(origin));
  Place place;
  bool nothing = true;
  NEAR_TRY(prepare(target, origin.bytes(), window, nothing, place));
  if (nothing) return {};
  note_read(window, target, place);
  return load(origin, place, target);
}

Result accumulate(const Buffer& origin, const Buffer* before, const Target& target,
                  const Operation& operation, Window& window) {
  bool changes = operation.builtin != datatype::Builtin::no_op;
  bool replaces = operation.builtin == datatype::Builtin::replace || !changes;
  Datatype* element = target.type->element;
  if (operation.builtin == datatype::Builtin::user)
    NEAR_TRY(datatype::check_accumulate(operation, *target.type));
  if (!changes && before == nullptr)
    return base::fail(MPI_ERR_OP, "MPI_NO_OP changes nothing: it is for calls that return what was there");
  if (changes) NEAR_TRY(datatype::check_copyable(origin));
  if (before != nullptr) NEAR_TRY(datatype::check_copyable(*before));
  Place place;
  bool nothing = true;
  MPI_Count bytes = changes ? origin.bytes() : before != nullptr ? before->bytes() : 0;
  NEAR_TRY(prepare(target, bytes, window, nothing, place));
  if (changes && before != nullptr && before->bytes() != bytes)
    return base::fail(MPI_ERR_COUNT,
                      "{} bytes of results and {} at the target: a one-sided call moves as many",
                      before->bytes(), bytes);
  if (nothing) return {};
  if (before != nullptr)
    note_read(window, target, place);
  else
    note_write(window);
  if (!replaces && element == nullptr)
    return base::fail(MPI_ERR_TYPE, "{} consists of several predefined datatypes, and {} needs one",
                      datatype::describe(*target.type), datatype::describe(operation));
  if (!replaces) NEAR_TRY(datatype::check_accumulate(operation, *element));
  const Datatype* sent = origin.type->element;
  if (!replaces && (sent == nullptr || sent->basic != element->basic || sent->size != element->size))
    return base::fail(MPI_ERR_TYPE,
                      "{} here and {} at the target: both must consist of one predefined datatype",
                      datatype::describe(*origin.type), datatype::describe(*target.type));
  const Member& member = state_of(window).members[static_cast<std::size_t>(target.rank)];

  // What needs memory comes before the lock.
  std::vector<std::byte> mine_memory, theirs_memory;
  Buffer mine = origin, theirs = buffer_of(place, target);
  bool direct = false;
  if (!replaces) {
    MPI_Count count = bytes / element->size;
    if (!as_elements(mine, *element)) {
      NEAR_TRY(room_for(count, *element, mine_memory, mine));
      datatype::copy(origin, mine, bytes);
    }
    direct = place.peer == nullptr && as_elements(theirs, *element);
    if (!direct) NEAR_TRY(room_for(count, *element, theirs_memory, theirs));
  }

  ElementLock alone(member);
  NEAR_KILL_POINT("accumulate-locked");
  if (before != nullptr) NEAR_TRY(load(*before, place, target));
  if (!changes) return {};
  if (replaces) return store(origin, place, target);
  if (!direct) NEAR_TRY(load(theirs, place, target));
  datatype::reduce(operation, mine.address, theirs.address, bytes / element->size, *element);
  return direct ? Result() : store(theirs, place, target);
}

Result compare_and_swap(const void* origin, const void* compare, void* before, const Target& target,
                        Window& window) {
  using datatype::Family;
  Datatype& type = *target.type;
  bool fits = type.family == Family::c_integer || type.family == Family::fortran_integer ||
              type.family == Family::logical || type.family == Family::multi_language ||
              type.family == Family::byte;
  if (!fits)
    return base::fail(MPI_ERR_TYPE, "{} is no integer, logical, multi-language or byte type",
                      datatype::describe(type));
  Place place;
  bool nothing = true;
  NEAR_TRY(prepare(target, type.size, window, nothing, place));
  if (nothing) return {};
  note_read(window, target, place);
  ElementLock alone(state_of(window).members[static_cast<std::size_t>(target.rank)]);
  Buffer result{before, 1, &type};
  NEAR_TRY(load(result, place, target));
  if (std::memcmp(before, compare, static_cast<std::size_t>(type.size)) != 0) return {};
  return store({const_cast<void*>(origin), 1, &type}, place, target);
}

} // namespace near::rma
