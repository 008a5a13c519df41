// What a receiver knows of the trains of one peer. packet_train.cpp says what a train is.
#pragma once

#include "transport/transport.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace near::shm {

inline constexpr std::size_t most_train_parts = 32;
/// Bytes, in general and while messages go one way only.
inline constexpr std::uint64_t longest_train = 512u << 10, longest_in_stream = 64u << 10;

/// Memory in which a message lies packed, for datatypes that take longer to move part by part (loses_by_parts).
class Stage {
public:
  /// Returns room for `bytes` bytes, where what it returned before was; nullptr if there is no memory.
  std::byte* take(std::uint64_t bytes) {
    if (bytes > size_) {
      memory_.reset(new (std::nothrow) std::byte[bytes]);
      size_ = memory_ != nullptr ? bytes : 0;
    }
    return memory_.get();
  }

private:
  std::unique_ptr<std::byte[]> memory_;
  std::uint64_t size_ = 0;
};

/// The train that has arrived last from one peer, perhaps not all of it (packet_train.cpp).
struct TrainIn {
  std::uint32_t number = 0;
  const transport::Arrival* head = nullptr; ///< its first part while that is being handled
  bool matched = false;                     ///< by a receive, which takes all of it
  transport::Transfer* bound = nullptr;     ///< that receive, until it has all bytes
  std::byte* staged = nullptr;              ///< where its bytes are collected first; null: they are not
  Stage stage;

  void begin(const transport::Arrival& first) {
    ++number;
    head = &first;
    matched = false;
    bound = nullptr;
    staged = nullptr;
  }
};
/// The parts of an unexpected train that have arrived, in the packets that brought them.
struct KeptTrain {
  struct Part {
    const std::byte* payload;
    std::size_t bytes;
    std::uint64_t packet;
  };
  std::uint32_t number = 0;
  std::array<Part, most_train_parts> parts{};
  std::size_t count = 0;
};

} // namespace near::shm
