// Walking a normal form: visits the blocks of any range of packed bytes, in packed order.
//
// A walk to the first byte costs one division per loop and one binary search per list on the way down; after
// that every step is a block. Addresses are integers, since MPI_BOTTOM is a null pointer with offsets.
#pragma once

#include "datatype/normal_form.h"

#include <algorithm>
#include <cstdint>

namespace near::datatype {

/// The entry that holds packed byte `skip`.
inline std::size_t entry_of(const std::vector<FormEntry>& entries, MPI_Count skip) {
  if (skip == 0) return 0;
  auto after = std::upper_bound(entries.begin(), entries.end(), skip,
                                [](MPI_Count byte, const FormEntry& entry) { return byte < entry.start; });
  return static_cast<std::size_t>(after - entries.begin()) - 1;
}

template <class Sink>
bool walk(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink);

/// Packed bytes [skip, skip + take) of copies of `child`, the first at `at`, `stride` bytes apart.
/// Precondition: take > 0. Returns false when the sink wants no more.
template <class Sink>
bool walk_copies(const NormalForm& child, MPI_Count stride, std::intptr_t at, MPI_Count skip, MPI_Count take,
                 Sink& sink) {
  MPI_Count unit = child.size;
  if (skip != 0) {
    MPI_Count first = skip / unit, within = skip - first * unit;
    at += first * stride;
    if (within != 0) {
      MPI_Count part = std::min(unit - within, take);
      if (!walk(child, at, within, part, sink)) return false;
      take -= part;
      if (take == 0) return true;
      at += stride;
    }
  }
  MPI_Count whole = take / unit, rest = take - whole * unit;
  if (child.kind == NormalForm::Kind::block) {
    if (whole != 0 && !sink.strided(at, unit, stride, whole)) return false;
  } else {
    for (MPI_Count i = 0; i < whole; ++i)
      if (!walk(child, at + i * stride, 0, unit, sink)) return false;
  }
  return rest == 0 || walk(child, at + whole * stride, 0, rest, sink);
}

/// Packed bytes [skip, skip + take) of one form whose origin is at `at`. The sink has
///   bool block(std::intptr_t address, MPI_Count bytes)
///   bool strided(std::intptr_t address, MPI_Count bytes, MPI_Count stride, MPI_Count count)
/// and returns false to stop. Precondition: take > 0, skip + take <= form.size.
template <class Sink>
bool walk(const NormalForm& form, std::intptr_t at, MPI_Count skip, MPI_Count take, Sink& sink) {
  using Kind = NormalForm::Kind;
  if (form.kind == Kind::block) return sink.block(at + skip, take);
  if (form.kind == Kind::loop) return walk_copies(*form.child, form.stride, at, skip, take, sink);
  for (std::size_t i = entry_of(form.entries, skip); take != 0; ++i) {
    const FormEntry& entry = form.entries[i];
    MPI_Count within = skip - entry.start;
    MPI_Count part = std::min(form.entries[i + 1].start - skip, take);
    std::intptr_t origin = at + entry.at;
    bool more = form.kind == Kind::blocks ? sink.block(origin + within, part)
                : form.kind == Kind::runs ? walk_copies(*form.child, form.stride, origin, within, part, sink)
                                          : walk(*form.children[i], origin, within, part, sink);
    if (!more) return false;
    skip += part;
    take -= part;
  }
  return true;
}

} // namespace near::datatype
