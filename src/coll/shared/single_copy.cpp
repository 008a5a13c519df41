// See single_copy.h.
#include "coll/shared/single_copy.h"

#include "base/atomic.h"
#include "coll/registry.h"
#include "memory/segments.h"
#include "os/peer_memory.h"

#include <cstring>

namespace near::coll {
namespace {

/// What an entry says.
struct Place {
  std::uint64_t address = 0;  ///< in the owner's process
  segment::Offset shared = 0; ///< the same in the segment; 0: it does not lie there
  MPI_Count block = 0;        ///< bytes of each block
};
static_assert(sizeof(Place) <= inline_bytes);

/// Copies block number `index` of what `from` exposes.
Result read_there(const Communicator& communicator, int from, const Place& place, int index,
                  const Buffer& into) {
  if (place.block != into.bytes())
    return base::fail(MPI_ERR_TRUNCATE, "rank {} sends blocks of {} bytes, but this rank's arguments say {}",
                      from, place.block, into.bytes());
  if (place.block == 0) return {};
  const MPI_Count offset = index * place.block;
  if (place.shared == 0)
    return p2p::read_memory(communicator, from, place.address + static_cast<std::uint64_t>(offset), into);
  const std::byte* const at = memory::space().segment.at<std::byte>(place.shared);
  datatype::unpack(into, 0, at + offset, into.bytes());
  return {};
}

/// Whether other processes can read the data where it lies.
bool is_readable(const Buffer& data) {
  if (data.bytes() == 0) return true;
  return data.is_contiguous() &&
         (memory::space().segment.contains(data.contiguous_start()) ||
          os::is_readable_by_peers(data.contiguous_start(), static_cast<std::size_t>(data.bytes())));
}

} // namespace

SingleCopies::SingleCopies(CollectiveGroup& group, const Call& call)
    : group_(group), exchange_(group, call, 1), error_(std::make_shared<KeptError>()) {
  exchange_.call().owe_more();
}

Result SingleCopies::expose(const Buffer& data, MPI_Count block) {
  std::byte* packed = nullptr;
  if (!is_readable(data)) {
    Buffer memory;
    NEAR_TRY(group_.scratch_bytes(data.bytes(), memory));
    packed = static_cast<std::byte*>(memory.address);
  }
  return exchange_.publish(sizeof(Place), [=](std::byte* entry) {
    const std::byte* const start = packed != nullptr ? packed : data.contiguous_start();
    if (packed != nullptr) datatype::pack(data, 0, packed, data.bytes());
    const segment::Segment& job = memory::space().segment;
    const Place place{.address = reinterpret_cast<std::uint64_t>(start),
                      .shared = job.contains(start) ? job.offset_of(start) : 0,
                      .block = block};
    std::memcpy(entry, &place, sizeof place);
  });
}

Result SingleCopies::expose_nothing() {
  return exchange_.publish(0, [](std::byte*) {});
}

Result SingleCopies::read(int from, int index, const Buffer& into) {
  const auto take = [=, communicator = &group_.communicator(), error = error_,
                     call = &exchange_.call()](const std::byte* entry) {
    Place place;
    std::memcpy(&place, entry, sizeof place);
    Result result = read_there(*communicator, from, place, index, into);
    // SYNC: area-broken. An owner that has met an error does not wait for its readers. It has broken the area before it
    // returned and its program changed what was read.
    base::Hardware::fence_store_load();
    if (call->is_broken_at(from)) [[unlikely]]
      result = call->broken();
    error->note(result);
  };
  return exchange_.read(from, 0, into.bytes(), take);
}

void SingleCopies::end_reading() { exchange_.publish_result(0); }

Result SingleCopies::wait_for(int reader) {
  NEAR_TRY(exchange_.wait(reader, 0)); // it makes the same call
  return exchange_.read_result(reader, 0, 0, [](const std::byte*) {});
}

Result SingleCopies::finish() {
  exchange_.finish(0);
  return exchange_.act([error = error_] { return error->take(); });
}

Result SingleCopies::finish_together() {
  end_reading();
  for (int step = 1; step < size(); ++step)
    NEAR_TRY(exchange_.read_result((rank() + step) % size(), 0, 0, [](const std::byte*) {}));
  return finish();
}

Result agree_on_reading(const Call& call, MPI_Count bytes, Communicator& communicator, Area& area) {
  bool all = true;
  for (int rank = 0; rank < communicator.size && all; ++rank)
    all = rank == communicator.rank || p2p::reads_memory_of(communicator, rank);
  CollectiveGroup group(communicator, nullptr, &area);
  group.set_bytes(bytes);
  Exchange exchange(group, call, 1);
  NEAR_TRY(exchange.publish(1, [all](std::byte* entry) { *entry = std::byte{all}; }));
  for (int step = 1; step < exchange.size(); ++step)
    NEAR_TRY(exchange.read((exchange.rank() + step) % exchange.size(), 0, 0, // no payload, so not counted
                           [&](const std::byte* entry) { all = all && *entry != std::byte{0}; }));
  exchange.finish(0);
  area.set_reading(all ? Area::Reading::yes : Area::Reading::no);
  return {};
}

} // namespace near::coll
