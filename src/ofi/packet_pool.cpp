#include "ofi/state.h"

#include "os/memory.h"

#include <algorithm>
#include <new>

namespace near::ofi {

namespace {
constexpr std::size_t packets_at_once = 32;
}

void PacketPool::grow() {
  const std::size_t page = os::page_size();
  const std::size_t bytes = (packets_at_once * packet_bytes() + page - 1) / page * page;
  free_.reserve(free_.size() + packets_at_once);
  // Never freed, since they are used until the process ends.
  auto* data = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(page)));
  auto* packets = new (std::nothrow) Packet[packets_at_once];
  fid_mr* memory = nullptr;
  if (packets == nullptr || !state().endpoint.prepare(data, bytes, memory).ok()) {
    delete[] packets;
    ::operator delete(data, std::align_val_t(page));
    throw std::bad_alloc();
  }
  for (std::size_t i = packets_at_once; i-- != 0;) { // the first one is taken first
    packets[i].data = data + i * packet_bytes();
    packets[i].local = Endpoint::local_key(memory);
    free_.push_back(&packets[i]);
  }
}

void PacketPool::reserve(std::size_t count) {
  while (free_.size() < count) grow();
}

void PacketPool::populate(std::size_t count) {
  reserve(count);
  const std::size_t page = os::page_size();
  const std::size_t bytes = std::min(count, packets_at_once) * packet_bytes();
  const std::size_t whole_pages = (bytes + page - 1) / page * page; // as in grow()
  (void)os::populate(free_.back()->data, whole_pages, false).ok();
}

Packet* PacketPool::take() {
  if (free_.empty()) grow();
  Packet* packet = free_.back();
  free_.pop_back();
  return packet;
}

} // namespace near::ofi
