#include "transport/packets.h"

#include <new>

namespace near::transport {

std::uint64_t PacketPool::bytes_needed(std::uint32_t count, std::uint64_t payload_bytes) {
  return sizeof(PoolHeader) + count * stride(payload_bytes);
}

void PacketPool::build(std::byte* at, std::uint32_t count, std::uint64_t payload_bytes) {
  head_ = new (at) PoolHeader;
  packets_ = at + sizeof(PoolHeader);
  payload_bytes_ = payload_bytes;
  count_ = count;
  free_.reserve(count);
  for (std::uint32_t index = count; index-- > 0;) {
    new (packet(index)) PacketHeader;
    free_.push_back(index);
  }
}

void PacketPool::collect() {
  for (std::uint32_t link = head_->returned.take_all(); link != 0;) {
    std::uint32_t index = link - 1;
    link = reinterpret_cast<PacketHeader*>(packet(index))->next.load_relaxed();
    free_.push_back(index);
  }
}

std::uint32_t PacketPool::take(std::uint32_t reserve) {
  if (free_.size() <= reserve) {
    collect();
    if (free_.size() <= reserve) return none;
  }
  std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

} // namespace near::transport
