// This process's pool of packets: it alone allocates and writes them; receivers read them and give them back.
#pragma once

#include "transport/wire.h"

#include <vector>

namespace near::transport {

class PacketPool {
public:
  /// `at`: page-aligned, populated memory of this process's region.
  void build(std::byte* at, std::uint32_t count, std::uint64_t payload_bytes);
  static std::uint64_t bytes_needed(std::uint32_t count, std::uint64_t payload_bytes);
  static std::uint64_t stride(std::uint64_t payload_bytes) { return sizeof(PacketHeader) + payload_bytes; }

  /// An unused packet's index, or `none`. Eager messages leave `reserve` packets for ring transfers: those
  /// are always consumed by a matched receiver, so they make progress even when kept eager packets hold all
  /// the rest.
  std::uint32_t take(std::uint32_t reserve);
  void put_back(std::uint32_t index) { free_.push_back(index); }
  std::byte* payload(std::uint32_t index) const { return packet(index) + sizeof(PacketHeader); }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint32_t count() const { return count_; }

  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t ring_reserve = 8;

private:
  std::byte* packet(std::uint32_t index) const { return packets_ + index * stride(payload_bytes_); }
  void collect();

  PoolHeader* head_ = nullptr;
  std::byte* packets_ = nullptr;
  std::uint64_t payload_bytes_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> free_;
};

} // namespace near::transport
