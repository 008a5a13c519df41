// Where a rank puts the data that it publishes, and with which stores.
#pragma once

#include "copy/raw.h"
#include "copy/store_policy.h"
#include "datatype/datatype.h"

namespace near::coll {

/// In an entry, piece or slice. Positions are in bytes.
class Room {
public:
  Room(std::byte* at, copy::Store stores) : at_(at), stores_(stores) {}
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  operator std::byte*() const { return at_; }

  void put(MPI_Count position, const std::byte* from, MPI_Count bytes) const {
    const auto length = static_cast<std::size_t>(bytes);
    if (length >= least) {
      copy::copy(at_ + position, from, length, stores_);
      chosen_ += length;
    } else if (length != 0) {
      copy::raw(at_ + position, from, length);
    }
  }
  /// `bytes` packed bytes of the buffer from `offset` on.
  void pack(MPI_Count position, const datatype::Buffer& from, MPI_Count offset, MPI_Count bytes) const {
    if (from.is_contiguous())
      put(position, from.contiguous_start() + offset, bytes);
    else
      datatype::pack(from, offset, at_ + position, bytes);
  }
  /// How many bytes these stores have written: shorter parts, and what is packed, take any.
  std::uint64_t chosen_bytes() const { return chosen_; }

private:
  static constexpr std::size_t least = 256;

  std::byte* at_;
  copy::Store stores_;
  mutable std::uint64_t chosen_ = 0;
};

} // namespace near::coll
