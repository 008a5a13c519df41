// See parts.h.
#include "coll/shared/parts.h"

#include "coll/shared/kept_error.h"

#include <cstring>
#include <utility>

namespace near::coll {
namespace {

/// What parts are aligned to, and the table counts in. Bytes.
constexpr MPI_Count unit = 4;

/// Where a part lies among the published ones: an entry of the table before them.
struct PartRange {
  std::uint16_t begin; ///< in units
  std::uint16_t bytes; ///< message: the part is not here
};
constexpr std::uint16_t message = 0xffff;
static_assert(slice_bytes / unit < message);

constexpr MPI_Count table_bytes(int parts) { return static_cast<MPI_Count>(sizeof(PartRange)) * parts; }
constexpr MPI_Count round_up(MPI_Count bytes) { return (bytes + unit - 1) / unit * unit; }

MPI_Count longest_part(int parts) {
  return std::min<MPI_Count>((slice_bytes - table_bytes(parts)) / parts / unit * unit, message - 1);
}

} // namespace

bool is_message(MPI_Count bytes, int parts) { return bytes > longest_part(parts); }

PublishedParts::PublishedParts(std::vector<Buffer> parts)
    : parts_(std::make_shared<const std::vector<Buffer>>(std::move(parts))) {
  const int count = static_cast<int>(parts_->size());
  bytes_ = table_bytes(count);
  for (const Buffer& part : *parts_)
    if (const MPI_Count bytes = part.bytes(); !is_message(bytes, count)) bytes_ += round_up(bytes);
}

void PublishedParts::fill(const Room& room) const {
  const int count = static_cast<int>(parts_->size());
  MPI_Count begin = table_bytes(count);
  std::byte* entry = room;
  for (const Buffer& part : *parts_) {
    const MPI_Count bytes = part.bytes();
    const bool here = !is_message(bytes, count);
    const PartRange range{static_cast<std::uint16_t>(begin / unit),
                          here ? static_cast<std::uint16_t>(bytes) : message};
    std::memcpy(entry, &range, sizeof range);
    entry += sizeof range;
    if (!here || bytes == 0) continue;
    room.pack(begin, part, 0, bytes);
    begin += round_up(bytes);
  }
}

struct ArrivingParts::State {
  explicit State(int ranks) : arrives(std::make_unique<bool[]>(static_cast<std::size_t>(ranks))) {}
  std::unique_ptr<bool[]> arrives; ///< by rank: its part is a message
  KeptError error;

  /// Returns how many bytes it has taken.
  MPI_Count take(const std::byte* published, int part, const Buffer& into, int from) {
    PartRange range;
    std::memcpy(&range, published + table_bytes(part), sizeof range);
    arrives[static_cast<std::size_t>(from)] = range.bytes == message;
    if (range.bytes == message) return 0;
    if (const MPI_Count room = into.bytes(); range.bytes > room) {
      error.note(base::fail(MPI_ERR_TRUNCATE, "rank {} sends {} bytes, but this rank's arguments say {}",
                            from, range.bytes, room));
      return 0;
    }
    if (range.bytes != 0) datatype::unpack_arrived(into, 0, published + range.begin * unit, range.bytes);
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
