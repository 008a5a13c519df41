// Calls the peers' memory operations, whether or not their transports have them.
#include "transport/transport.h"

#include <cstring>

namespace near::transport {

namespace {

template <class Word>
Word change(void* at, const AtomicOperation& operation) {
  Word before;
  std::memcpy(&before, at, sizeof before);
  Word after = before;
  const auto operand = static_cast<Word>(operation.operand);
  switch (operation.kind) {
  case AtomicKind::read: break;
  case AtomicKind::replace: after = operand; break;
  case AtomicKind::add: after = before + operand; break;
  case AtomicKind::bit_and: after = before & operand; break;
  case AtomicKind::bit_or: after = before | operand; break;
  case AtomicKind::bit_xor: after = before ^ operand; break;
  case AtomicKind::compare_and_swap:
    after = before == static_cast<Word>(operation.compare) ? operand : before;
    break;
  }
  std::memcpy(at, &after, sizeof after);
  return before;
}

} // namespace

std::uint64_t change_own_word(void* at, const AtomicOperation& operation) {
  return operation.bytes == 4 ? change<std::uint32_t>(at, operation) : change<std::uint64_t>(at, operation);
}

namespace {

Result unsupported(const Peer& peer) {
  return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "the transport {} does not reach the memory of its peers",
                    peer.operations->name);
}

/// An access that its caller waits for.
struct AwaitedAccess : Access {
  bool is_done = false;
  int error = MPI_SUCCESS;
  AwaitedAccess() {
    done = [](Access& access, int its_error) {
      auto& self = static_cast<AwaitedAccess&>(access);
      self.is_done = true;
      self.error = its_error;
    };
  }
};

template <class Done>
void wait_for(Done&& is_done) {
  wait_until([](void* at) -> bool { return (*static_cast<std::remove_reference_t<Done>*>(at))(); }, &is_done);
}

bool complete(Peer& peer, const AwaitedAccess& access) {
  if (!access.is_done) wait_for([&] { return access.is_done; });
  int later = MPI_SUCCESS;
  if (!flush(peer, later)) wait_for([&] { return flush(peer, later); });
  return access.error == MPI_SUCCESS && later == MPI_SUCCESS;
}

} // namespace

Result register_memory(Peer& peer, void* address, std::size_t bytes, copy::MemoryKind kind,
                       Registration& made) {
  const Operations& operations = *peer.operations;
  if (operations.register_memory == nullptr) return unsupported(peer);
  return operations.register_memory(address, bytes, kind, made);
}

void deregister_memory(Peer& peer, const Registration& registration) {
  const Operations& operations = *peer.operations;
  if (operations.deregister_memory != nullptr) operations.deregister_memory(registration);
}

Capabilities capabilities(Peer& peer, const MemoryKey& key) {
  const Operations& operations = *peer.operations;
  return operations.capabilities != nullptr ? operations.capabilities(peer, key) : Capabilities{};
}

void get(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  const Operations& operations = *peer.operations;
  if (operations.get == nullptr) return access.done(access, unsupported(peer).code());
  operations.get(peer, key, theirs, mine, access);
}

void put(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  const Operations& operations = *peer.operations;
  if (operations.put == nullptr) return access.done(access, unsupported(peer).code());
  operations.put(peer, key, theirs, mine, access);
}

void apply_atomic(Peer& peer, const MemoryKey& key, std::uint64_t address, const AtomicOperation& operation,
                  Access& access) {
  const Operations& operations = *peer.operations;
  if (operations.atomic == nullptr) return access.done(access, unsupported(peer).code());
  if ((operation.bytes != 4 && operation.bytes != 8) || address % operation.bytes != 0) {
    const Result wrong =
        base::fail(MPI_ERR_ARG, "{:#x} is not the address of an aligned word of 4 or 8 bytes ({})", address,
                   operation.bytes);
    return access.done(access, wrong.code());
  }
  operations.atomic(peer, key, address, operation, access);
}

bool flush(Peer& peer, int& error) {
  error = MPI_SUCCESS;
  return peer.operations->flush == nullptr || peer.operations->flush(peer, error);
}

bool reaches_memory_of(Peer& peer) { return capabilities(peer).copies; }

bool copy_from_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine) {
  AwaitedAccess access;
  get(peer, {}, theirs, mine, access);
  return complete(peer, access);
}

bool copy_to_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine) {
  AwaitedAccess access;
  put(peer, {}, theirs, mine, access);
  return complete(peer, access);
}

} // namespace near::transport
