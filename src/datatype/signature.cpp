// Building and querying type signatures.
#include "datatype/signature.h"

#include <algorithm>
#include <utility>

namespace near::datatype {
namespace {

using SignatureKind = Signature::Kind;

/// Sequences with at most this many children dissolve into the one that holds them.
constexpr std::size_t longest_dissolved = 8;
/// Sequences may be nested this deep before they are flattened;
/// repeats at least double, so depth stays bounded.
constexpr int deepest_sequence_chain = 64;

SignatureExtent operator*(const SignatureExtent& one, MPI_Count count) {
  return {one.bytes * count, one.elements * count, one.external * count};
}

} // namespace

SignaturePointer leaf_signature(const Datatype& basic, MPI_Count size, MPI_Count external_size) {
  auto leaf = std::make_shared<Signature>();
  leaf->basic = &basic;
  leaf->total = {size, 1, external_size};
  return leaf;
}

SignaturePointer repeat_signature(const SignaturePointer& child, MPI_Count count) {
  if (!child || count == 0) return nullptr;
  if (count == 1) return child;
  auto repeated = std::make_shared<Signature>();
  repeated->kind = child->kind == SignatureKind::leaf ? SignatureKind::leaf : SignatureKind::repeat;
  repeated->basic = child->basic;
  repeated->total = child->total * count;
  if (child->kind == SignatureKind::sequence) {
    repeated->count = count;
    repeated->child = child;
    repeated->depth = static_cast<std::uint16_t>(child->depth + 1);
  } else {
    repeated->count = child->count * count;
    repeated->child = child->child;
    repeated->depth = child->depth;
  }
  return repeated;
}

void SignatureBuilder::add(const SignaturePointer& part) {
  if (!part) return;
  if (part->kind == SignatureKind::sequence && part->children.size() <= longest_dissolved)
    for (const SignaturePointer& child : part->children) add_one(child);
  else
    add_one(part);
}

void SignatureBuilder::add_one(SignaturePointer part) {
  if (!parts_.empty()) {
    const Signature& last = *parts_.back();
    if (last.kind == SignatureKind::leaf && part->kind == SignatureKind::leaf && last.basic == part->basic) {
      auto joined = std::make_shared<Signature>(last);
      joined->count += part->count;
      joined->total.bytes += part->total.bytes;
      joined->total.elements += part->total.elements;
      joined->total.external += part->total.external;
      parts_.back() = std::move(joined);
      return;
    }
  }
  parts_.push_back(std::move(part));
}

void SignatureBuilder::flatten() {
  std::vector<SignaturePointer> work(parts_.rbegin(), parts_.rend());
  parts_.clear();
  while (!work.empty()) {
    SignaturePointer part = std::move(work.back());
    work.pop_back();
    if (part->kind == SignatureKind::sequence)
      work.insert(work.end(), part->children.rbegin(), part->children.rend());
    else
      add_one(std::move(part));
  }
}

SignaturePointer SignatureBuilder::finish() {
  if (parts_.empty()) return nullptr;
  auto deepest = [this] {
    std::uint16_t depth = 0;
    for (const SignaturePointer& part : parts_) depth = std::max(depth, part->depth);
    return depth;
  };
  if (deepest() >= deepest_sequence_chain) flatten();
  if (parts_.size() == 1) return parts_[0];
  auto sequence = std::make_shared<Signature>();
  sequence->kind = SignatureKind::sequence;
  sequence->depth = static_cast<std::uint16_t>(deepest() + 1);
  sequence->entries.reserve(parts_.size());
  for (const SignaturePointer& part : parts_) {
    sequence->entries.push_back(sequence->total);
    sequence->total.bytes += part->total.bytes;
    sequence->total.elements += part->total.elements;
    sequence->total.external += part->total.external;
  }
  sequence->children = std::move(parts_);
  return sequence;
}

MPI_Count elements_before(const Signature& signature, MPI_Count bytes) {
  const Signature* s = &signature;
  MPI_Count elements = 0;
  while (bytes != 0) {
    if (bytes == s->total.bytes) return elements + s->total.elements;
    if (s->kind == SignatureKind::sequence) {
      auto after =
          std::upper_bound(s->entries.begin(), s->entries.end(), bytes,
                           [](MPI_Count byte, const SignatureExtent& entry) { return byte < entry.bytes; });
      auto index = static_cast<std::size_t>(after - s->entries.begin()) - 1;
      bytes -= s->entries[index].bytes;
      elements += s->entries[index].elements;
      s = s->children[index].get();
      continue;
    }
    MPI_Count unit = s->total.bytes / s->count, per_unit = s->total.elements / s->count;
    elements += bytes / unit * per_unit;
    bytes %= unit;
    if (s->kind == SignatureKind::leaf) return bytes == 0 ? elements : MPI_UNDEFINED;
    s = s->child.get();
  }
  return elements;
}

MPI_Count bytes_before(const Signature& signature, MPI_Count elements) {
  const Signature* s = &signature;
  MPI_Count bytes = 0;
  while (elements != 0) {
    if (elements == s->total.elements) return bytes + s->total.bytes;
    if (s->kind == SignatureKind::sequence) {
      auto after = std::upper_bound(
          s->entries.begin(), s->entries.end(), elements,
          [](MPI_Count element, const SignatureExtent& entry) { return element < entry.elements; });
      auto index = static_cast<std::size_t>(after - s->entries.begin()) - 1;
      elements -= s->entries[index].elements;
      bytes += s->entries[index].bytes;
      s = s->children[index].get();
      continue;
    }
    MPI_Count unit = s->total.bytes / s->count, per_unit = s->total.elements / s->count;
    bytes += elements / per_unit * unit;
    elements %= per_unit;
    if (s->kind == SignatureKind::leaf) return bytes;
    s = s->child.get();
  }
  return bytes;
}

} // namespace near::datatype
