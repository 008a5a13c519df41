// A team: the ranks of one communicator and the verbs that collective algorithms are written in.
// Messages of a collective travel on the communicator's collective channel under one tag per call, so
// successive collectives never match each other.
#pragma once

#include "datatype/counts.h"
#include "datatype/operation.h"
#include "p2p/p2p.h"

#include <memory>

namespace near::coll {

using datatype::Counts;
using datatype::Datatype;
using datatype::Operation;
using datatype::View;
using object::Communicator;
using object::Result;

class Team {
public:
  /// Takes the communicator's next collective tag. Every member makes its Team in the same order.
  explicit Team(Communicator& communicator);

  int rank() const { return communicator_.rank; }
  int size() const { return communicator_.size; }
  Communicator& communicator() const { return communicator_; }

  Result send(const View& view, int to) const;
  Result receive(const View& view, int from) const;
  Result send_receive(const View& out, int to, const View& in, int from) const;
  /// Started, not waited for; finish with wait_all.
  Result start_send(const View& view, int to, p2p::Request*& made) const;
  Result start_receive(const View& view, int from, p2p::Request*& made) const;
  /// Waits for all (null entries are skipped) and returns the first error.
  Result wait_all(std::span<p2p::Request*> requests) const;

private:
  Communicator& communicator_;
  int tag_;
};

/// Scratch space for `count` elements of a type, addressed like a user's buffer (lb honoured); freed with it.
class Scratch {
public:
  Result allocate(MPI_Count count, Datatype& type);
  void* address() const { return address_; }
  View view(MPI_Count count, Datatype& type) const { return View{address_, count, &type}; }

private:
  std::unique_ptr<std::byte[]> storage_;
  void* address_ = nullptr;
};

/// address + count * extent.
inline void* advance(const void* address, MPI_Count count, const Datatype& type) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(address)) + count * type.extent;
}

} // namespace near::coll
