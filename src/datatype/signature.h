// The type signature: the sequence of basic types in the packed bytes, without their displacements in memory. It
// serves to count basic elements and to convert data to external32. Source: MPI 5.0, sections 5.1 and 14.5.2.
//
// An immutable tree of three kinds of nodes, which may be shared:
//
//   leaf      count copies of one basic type
//   repeat    count copies of child
//   sequence  children in order; entries[i] says how much data precedes child i
//
// Only structs and pair types need sequences, so most signatures are one leaf.
#pragma once

#include "abi/types.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace near::datatype {

struct Datatype;

/// An amount of packed data, in three units.
struct SignatureExtent {
  MPI_Count bytes = 0;
  MPI_Count elements = 0; ///< basic types
  MPI_Count external = 0; ///< bytes in external32
};

struct Signature {
  enum class Kind : std::uint8_t { leaf, repeat, sequence };
  Kind kind = Kind::leaf;
  std::uint16_t depth = 1;
  const Datatype* basic = nullptr; ///< leaf: a predefined type other than a pair
  MPI_Count count = 1;             ///< leaf and repeat
  std::shared_ptr<const Signature> child;
  std::vector<SignatureExtent> entries;
  std::vector<std::shared_ptr<const Signature>> children;
  SignatureExtent total;
};

using SignaturePointer = std::shared_ptr<const Signature>;

/// The signature of one element of a predefined type other than a pair.
SignaturePointer leaf_signature(const Datatype& basic, MPI_Count size, MPI_Count external_size);
/// The signature of `count` times `child`; nullptr if there is no data (`child` is nullptr or `count` is 0).
SignaturePointer repeat_signature(const SignaturePointer& child, MPI_Count count);

/// Joins signatures in the order in which they are added.
class SignatureBuilder {
public:
  explicit SignatureBuilder(std::size_t expected) { parts_.reserve(expected); }
  void add(const SignaturePointer& part);
  SignaturePointer finish();

private:
  void add_one(SignaturePointer part);
  void flatten();
  std::vector<SignaturePointer> parts_;
};

/// The number of whole basic types in the first `bytes` packed bytes; MPI_UNDEFINED if the bytes end inside one.
MPI_Count elements_before(const Signature& signature, MPI_Count bytes);
/// The number of packed bytes of the first `elements` basic types. Precondition: elements <= total.elements.
MPI_Count bytes_before(const Signature& signature, MPI_Count elements);

/// Calls visit(basic, count) for each run of basic types, in order, until a call returns false.
template <class F>
bool each_run(const Signature& signature, F& visit) {
  if (signature.kind == Signature::Kind::leaf) return visit(*signature.basic, signature.count);
  if (signature.kind == Signature::Kind::repeat) {
    for (MPI_Count i = 0; i < signature.count; ++i)
      if (!each_run(*signature.child, visit)) return false;
    return true;
  }
  for (const SignaturePointer& child : signature.children)
    if (!each_run(*child, visit)) return false;
  return true;
}

} // namespace near::datatype
