// The reference that the normal form is compared with: type maps written out entry by entry, exactly as the
// standard defines them; and random types that are built both ways.
#pragma once

#include "datatype/datatype.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace near::datatype::test {

struct MapEntry {
  const Datatype* basic;
  MPI_Count at;
};

struct TypeMap {
  std::vector<MapEntry> entries;
  bool marked = false;
  MPI_Count lb = 0, ub = 0, alignment = 1;
  bool empty() const { return entries.empty() && !marked; }
  MPI_Count extent() const { return ub - lb; }
  MPI_Count size() const {
    MPI_Count bytes = 0;
    for (const MapEntry& entry : entries) bytes += entry.basic->size;
    return bytes;
  }
  MPI_Count true_lb() const {
    MPI_Count low = entries.empty() ? 0 : entries[0].at;
    for (const MapEntry& entry : entries) low = std::min(low, entry.at);
    return low;
  }
  MPI_Count true_ub() const {
    MPI_Count high = entries.empty() ? 0 : entries[0].at + entries[0].basic->size;
    for (const MapEntry& entry : entries) high = std::max(high, entry.at + entry.basic->size);
    return high;
  }
  /// Displacement of each packed byte.
  std::vector<MPI_Count> bytes() const {
    std::vector<MPI_Count> all;
    for (const MapEntry& entry : entries)
      for (MPI_Count i = 0; i < entry.basic->size; ++i) all.push_back(entry.at + i);
    return all;
  }
};

struct Copy {
  const TypeMap* map;
  MPI_Count at;
};

/// The type map that consists of these copies, in this order.
inline TypeMap assemble(const std::vector<Copy>& copies, bool padded = false) {
  TypeMap made;
  for (const Copy& copy : copies) made.marked |= copy.map->marked;
  bool first = true;
  for (const Copy& copy : copies) {
    if (copy.map->empty()) continue;
    for (MapEntry entry : copy.map->entries) made.entries.push_back({entry.basic, entry.at + copy.at});
    made.alignment = std::max(made.alignment, copy.map->alignment);
    made.lb = first ? copy.at + copy.map->lb : std::min(made.lb, copy.at + copy.map->lb);
    made.ub = first ? copy.at + copy.map->ub : std::max(made.ub, copy.at + copy.map->ub);
    first = false;
  }
  if (padded && !made.empty())
    while (made.extent() % made.alignment != 0) ++made.ub;
  return made;
}

struct Both {
  Datatype* type = nullptr; ///< one reference, owned by the caller
  TypeMap map;
};

class RandomTypes {
public:
  explicit RandomTypes(std::uint64_t seed) : random_(seed) {}

  /// A random type, nested up to `depth` deep, of at most a few thousand entries.
  Both make(int depth);
  MPI_Count pick(MPI_Count low, MPI_Count high) {
    return std::uniform_int_distribution<MPI_Count>(low, high)(random_);
  }

private:
  Both basic();
  Both indexed(const Both& old);
  Both structure(int depth);
  Both subarray(const Both& old);
  Both darray(const Both& old);
  std::mt19937_64 random_;
};

} // namespace near::datatype::test
