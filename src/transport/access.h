// Access to the memory of a peer without its help: registered memory and its keys, get, put, atomic operations, flush.
//
//   owner of the memory                         origin
//   register_memory(peer, address, bytes)
//   sends key and address  ------------------>  capabilities(peer, key): what can be done there?
//                                               get, put, apply_atomic(peer, key, ...): may be under way on return
//                                               done(): complete here; buffers are free, results have arrived
//                                               flush(peer): complete there as well
//   receives that all have finished  <--------
//   deregister_memory(peer, ...)
//
// Addresses are those of the owner. Accesses are not ordered among themselves, and order nothing else: messages, or a
// lock, tell the owner that they are complete.
#pragma once

#include "copy/raw.h"
#include "os/peer_memory.h"
#include "transport/message.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace near::transport {

/// Names registered memory to other processes: plain data in the transport's form, which the owner of the memory sends to
/// them. The empty key stands for all memory of a process that a transport reaches without registration.
struct MemoryKey {
  std::uint64_t words[4] = {};
};

/// Memory of this process that the processes of one transport may access.
struct Registration {
  MemoryKey key;
  std::uint64_t handle = 0; ///< the transport's own
};

/// What can be done with some memory of a peer.
struct Capabilities {
  bool copies = false;  ///< get() and put()
  bool atomics = false; ///< apply_atomic(), of every kind, on aligned words of 4 and 8 bytes
};

/// What an atomic operation does to a word. All return the old value. Signed and unsigned integers wrap around.
enum class AtomicKind : std::uint8_t { read, replace, add, bit_and, bit_or, bit_xor, compare_and_swap };

/// One atomic operation. It is atomic with respect to others of the same transport, but neither to gets and puts nor to
/// the owner's loads and stores, so all processes must change a word in the same way.
struct AtomicOperation {
  AtomicKind kind = AtomicKind::read;
  std::uint8_t bytes = 8; ///< size of the word: 4 or 8
  std::uint64_t operand =
      0; ///< its lowest `bytes` bytes are used; the new value of replace and compare_and_swap
  std::uint64_t compare = 0; ///< compare_and_swap: the word changes only if it has this value
  void* before = nullptr;    ///< receives the old value, `bytes` bytes; null if it is not wanted
};

/// A get, put or atomic operation. The caller sets `done` and keeps the object until it is called; the rest belongs to
/// the transport.
struct Access {
  /// Called when the access is complete at the origin: from progress, or before the call that began it returns. `error` is
  /// the error class of a failure, after which part of a copy may have been made, but nothing more is moved.
  void (*done)(Access& access, int error) = nullptr;
  Access* next = nullptr;
  std::uint64_t cookie = 0;
};

/// Lets the processes that this peer's transport reaches access `bytes` bytes at `address`, which must stay allocated
/// until deregister_memory(). One registration serves all peers that have the same table of operations. Fails with
/// MPI_ERR_UNSUPPORTED_OPERATION if the transport does not reach that kind of memory.
Result register_memory(Peer& peer, void* address, std::size_t bytes, copy::MemoryKind kind,
                       Registration& made);
/// Ends a registration. No access to the memory may be under way, and none may follow.
void deregister_memory(Peer& peer, const Registration& registration);

/// Returns what can be done with the memory named by this key. If the system may forbid it, this is found out by trying. The
/// answer is the same for all processes that have the same transport to the peer, unless the system treats them differently.
Capabilities capabilities(Peer& peer, const MemoryKey& key = {});

/// Copies between runs of the peer's memory and runs of this process's memory. Both sides have the same number of
/// bytes, in at most 1024 runs each. The contents of `theirs` and `mine` are unspecified afterwards; the memory in `mine`
/// belongs to the transport until access.done(). Fails with MPI_ERR_RMA_RANGE if the key or the mapping does not cover
/// part of the peer's memory, and with MPI_ERR_UNSUPPORTED_OPERATION without the capability.
void get(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access);
void put(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access);
/// Carries out an atomic operation on the word at `address`, a multiple of its size. `operation` is read before the call
/// returns, and its `before` is written before access.done() is called. Fails like get(), and with MPI_ERR_ARG if the
/// word has another size or is not aligned; in that case nothing has changed.
void apply_atomic(Peer& peer, const MemoryKey& key, std::uint64_t address, const AtomicOperation& operation,
                  Access& access);
/// Returns true if no access of this process to the peer's memory is under way at either end. Otherwise call it again
/// after progress. `error` is set to the error class of the first put or atomic operation that failed after its done()
/// since flush() last returned true; MPI_SUCCESS if there is none.
bool flush(Peer& peer, int& error);

/// Carries out an atomic operation of 4 or 8 bytes on a word of this process, and returns the old value. For owners that carry
/// out the operations of others: only this process changes the word, so nothing can intervene.
std::uint64_t change_own_word(void* at, const AtomicOperation& operation);

/// Whether the peer's transport copies from and to the peer's private memory without registration.
bool reaches_memory_of(Peer& peer);
/// Like get() without registration, but waits until the copy is complete at both ends. Returns false if it failed.
bool copy_from_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);
/// Like put() without registration, but waits until the copy is complete at both ends. Returns false if it failed.
bool copy_to_peer(Peer& peer, std::span<os::Run> theirs, std::span<os::Run> mine);

} // namespace near::transport
