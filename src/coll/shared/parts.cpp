// See parts.h.
#include "coll/shared/parts.h"

#include "coll/shared/kept_error.h"

#include <utility>

namespace near::coll {
namespace {

static_assert(slice_bytes / part_unit < PartRange::is_message);

MPI_Count longest_part(int parts) {
  return std::min<MPI_Count>((slice_bytes - table_bytes(parts)) / parts / part_unit * part_unit,
                             PartRange::is_message - 1);
}

} // namespace

bool is_message(MPI_Count bytes, int parts) { return bytes > longest_part(parts); }

Result check_part(int from, PartRange range, MPI_Count room) {
  if (range.bytes <= room) return {};
  return base::fail(MPI_ERR_TRUNCATE, "rank {} sends {} bytes, but this rank's arguments say {}", from,
                    range.bytes, room);
}

PublishedParts::PublishedParts(std::vector<Buffer> parts)
    : parts_(std::make_shared<const std::vector<Buffer>>(std::move(parts))) {
  bytes_ = lay_out([](int, PartRange) {});
}

template <class Visit>
MPI_Count PublishedParts::lay_out(Visit&& visit) const {
  return lay_out_parts(
      static_cast<int>(parts_->size()), [&](int i) { return (*parts_)[static_cast<std::size_t>(i)].bytes(); },
      visit);
}

void PublishedParts::fill(const Room& room) const {
  std::byte* const table = room;
  lay_out([&](int i, PartRange range) {
    std::memcpy(table + table_bytes(i), &range, sizeof range);
    if (range.bytes != 0 && range.bytes != PartRange::is_message)
      room.pack(range.begin * part_unit, (*parts_)[static_cast<std::size_t>(i)], 0, range.bytes);
  });
}

struct ArrivingParts::State {
  explicit State(int ranks) : arrives(std::make_unique<bool[]>(static_cast<std::size_t>(ranks))) {}
  std::unique_ptr<bool[]> arrives; ///< by rank: its part is a message
  KeptError error;

  /// Returns how many bytes it has taken.
  MPI_Count take(const std::byte* published, int part, const Buffer& into, int from) {
    const PartRange range = range_of_part(published, part);
    arrives[static_cast<std::size_t>(from)] = range.bytes == PartRange::is_message;
    if (range.bytes == PartRange::is_message) return 0;
    if (const Result fits = check_part(from, range, into.bytes()); !fits.ok()) {
      error.note(fits);
      return 0;
    }
    if (range.bytes != 0) datatype::unpack_arrived(into, 0, published + range.begin * part_unit, range.bytes);
    return range.bytes;
  }
};

ArrivingParts::ArrivingParts(CollectiveGroup& group, Exchange& exchange)
    : group_(group), exchange_(exchange), state_(std::make_shared<State>(group.size())) {}

Result ArrivingParts::read(int from, int part, const Buffer& into) {
  AreaCall* const call = &exchange_.call();
  return exchange_.read(from, 0, 0, [=, state = state_](const std::byte* published) {
    call->count_read(from, state->take(published, part, into, from));
  });
}

Result ArrivingParts::read_alone(int from, int part, const Buffer& into) {
  AreaCall* const call = &exchange_.call();
  return exchange_.act_on(from, 0, [=, state = state_]() -> Result {
    const auto take = [&](const std::byte* published) {
      call->count_read(from, state->take(published, part, into, from));
    };
    const Result result = call->read(from, 0, 0, take);
    if (result.code() != MPI_ERR_NO_MEM) return result;
    state->error.note(result);
    return {};
  });
}

Result ArrivingParts::start_receive(int from, const Buffer& into) {
  return group_.start_receive_if(state_->arrives[static_cast<std::size_t>(from)], into, from);
}

void ArrivingParts::finish_until(std::size_t remaining) {
  state_->error.note(group_.finish_until(remaining));
}

Result ArrivingParts::finish() {
  finish_until(0);
  return exchange_.act([state = state_] { return state->error.take(); });
}

MPI_Count bytes_of_parts(const Call& call, int rank, int size) {
  std::vector<Buffer> parts;
  switch (call.collective) {
  case Collective::gatherv:
    if (rank != call.root) parts.push_back(call.send);
    break;
  case Collective::scatterv:
    if (rank != call.root) break;
    [[fallthrough]];
  case Collective::alltoallv:
  case Collective::alltoallw:
    for (int to = 0; to < size; ++to) parts.push_back(call.send_blocks.at(to));
    break;
  default: break;
  }
  return parts.empty() ? 0 : PublishedParts(std::move(parts)).bytes();
}

} // namespace near::coll
