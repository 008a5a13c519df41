// What a receiver knows of the trains of one peer. packet_train.cpp says what a train is.
#pragma once

#include "transport/transport.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace near::shm {

inline constexpr std::size_t most_train_parts = 32;
/// Bytes, in general and while messages go one way only.
inline constexpr std::uint64_t longest_train = 512u << 10, longest_in_stream = 64u << 10;

/// The train that has arrived last from one peer, perhaps not all of it (packet_train.cpp).
struct TrainIn {
  std::uint32_t number = 0;
  const transport::Arrival* head = nullptr; ///< its first part while that is being handled
  bool matched = false;                     ///< by a receive, which takes all of it
  transport::Transfer* bound = nullptr;     ///< that receive, until it has all bytes
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
