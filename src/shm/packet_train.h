// What a receiver knows of the trains of one peer. packet_train.cpp says what a train is.
#pragma once

#include "transport/transport.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace near::shm {

inline constexpr std::size_t most_train_packets = 32;
/// Bytes: between ranks with a processor each, in general and while messages go one way only, and between ranks that share them, of one
/// train and of one of each rank together.
inline constexpr std::uint64_t longest_train = 512u << 10, longest_in_stream = 64u << 10,
                               longest_in_turns = 256u << 10, longest_of_all = 2u << 20;

/// Memory in which messages lie packed, for datatypes that take longer to move part by part (datatype::loses_by_parts). A process
/// has a few stages, whatever the number of its peers, and makes each when it is first needed.
class Stages {
public:
  /// Returns room for `bytes` bytes, until give_back(); nullptr if all stages are in use, or there is no memory.
  std::byte* take(std::uint64_t bytes) {
    for (Stage& stage : stages_)
      if (!stage.in_use) {
        if (bytes > stage.bytes) {
          stage.memory.reset(new (std::nothrow) std::byte[bytes]);
          stage.bytes = stage.memory != nullptr ? bytes : 0;
        }
        stage.in_use = stage.memory != nullptr;
        return stage.memory.get();
      }
    return nullptr;
  }
  /// Does nothing for nullptr.
  void give_back(const std::byte* taken) {
    for (Stage& stage : stages_)
      if (taken != nullptr && stage.memory.get() == taken) stage.in_use = false;
  }

private:
  struct Stage {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes = 0;
    bool in_use = false;
  };
  std::array<Stage, 4> stages_;
};

/// The train that has arrived last from one peer, perhaps not all of it (packet_train.cpp).
struct TrainIn {
  std::uint32_t number = 0;
  std::uint16_t whole = 0;   ///< trains that have arrived completely (modulo 2^16)
  std::uint64_t missing = 0; ///< bytes that have not arrived
  bool waited = true;        ///< this process had polled in vain for it
  bool overlaps =
      false; ///< it crossed ours, or one of the two processes did not wait for the last train of the other
  const transport::Arrival* head = nullptr; ///< its first part while that is being handled
  bool matched = false;                     ///< by a receive, which takes all of it
  transport::Transfer* bound = nullptr;     ///< that receive, until it has all bytes
  std::byte* staged = nullptr;              ///< where its bytes are collected first; null: they are not
};
/// What a sender knows of its trains to one peer.
struct TrainsOut {
  std::uint16_t number = 0; ///< trains (modulo 2^16)
  std::uint32_t taken = 0;  ///< TrainIn::number when the last one left
  std::uint64_t began_ns =
      0; ///< when the last one began, if it followed messages that were not answered; otherwise 0
  std::uint64_t bytes = 0; ///< of that one
};
/// The packets of an unexpected train that have arrived.
struct KeptTrain {
  struct Packet {
    const std::byte* payload;
    std::size_t bytes;
    std::uint64_t packet;
  };
  std::uint32_t number = 0;
  std::array<Packet, most_train_packets> packets{};
  std::size_t count = 0;
};

} // namespace near::shm
