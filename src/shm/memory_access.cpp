// Access to the memory of other processes of the job, for get, put and atomic operations (transport/access.h).
//
// What lies in the job's segment is mapped here as well, so it is loaded and stored, and atomic operations are those of
// the processor. What is private is copied by the kernel (cma.cpp), which has no atomic operations. Registration costs
// nothing: a key says which of the two it is, and for the former where in the segment.
#include "shm/engine.h"

#include "base/atomic.h"
#include "copy/raw.h"

#include <algorithm>
#include <bit>

namespace near::shm {

using transport::Access;
using transport::AtomicKind;
using transport::AtomicOperation;
using transport::MemoryKey;

namespace {

/// The key of memory in the segment. That of private memory is empty.
struct SegmentKey {
  std::uint64_t address = 0; ///< at its owner
  std::uint64_t bytes = 0;   ///< 0: the key is empty
  segment::Offset offset = 0;
  std::uint64_t unused = 0;
};

SegmentKey segment_key(const MemoryKey& key) { return std::bit_cast<SegmentKey>(key); }

/// Returns where this process has mapped memory of the owner's, or nullptr with a failure text if the key does not cover
/// it. `key` comes from another process, so it is checked against the segment too.
std::byte* find(const SegmentKey& key, std::uint64_t address, std::uint64_t bytes) {
  const segment::Segment& job = memory::space().segment;
  const std::uint64_t at = address - key.address;
  if (at <= key.bytes && bytes <= key.bytes - at && key.offset <= job.bytes() &&
      key.bytes <= job.bytes() - key.offset)
    return job.at<std::byte>(key.offset + at);
  (void)base::fail(MPI_ERR_RMA_RANGE, "{} bytes at {:#x} are not within the {} registered bytes at {:#x}",
                   bytes, address, key.bytes, key.address);
  return nullptr;
}

/// Translates the owner's addresses to ours. False if the key does not cover all of them.
bool find_all(const SegmentKey& key, std::span<os::Run> theirs) {
  for (os::Run& run : theirs) {
    run.address = find(key, reinterpret_cast<std::uint64_t>(run.address), run.bytes);
    if (run.address == nullptr) return false;
  }
  return true;
}

/// Copies between two lists of runs with equally many bytes.
void copy_runs(std::span<const os::Run> to, std::span<const os::Run> from) {
  std::size_t to_at = 0, from_at = 0; // in the first run of each
  while (!to.empty() && !from.empty()) {
    const std::size_t bytes = std::min(to.front().bytes - to_at, from.front().bytes - from_at);
    copy::raw_overlapping(static_cast<std::byte*>(to.front().address) + to_at,
                          static_cast<const std::byte*>(from.front().address) + from_at, bytes);
    to_at += bytes;
    from_at += bytes;
    if (to_at == to.front().bytes) to = to.subspan(1), to_at = 0;
    if (from_at == from.front().bytes) from = from.subspan(1), from_at = 0;
  }
}

/// Changes a word and returns its old value. Relaxed: atomic operations order nothing else (transport/access.h).
template <class Word>
Word change(std::byte* at, const AtomicOperation& operation) {
  base::AtomicReference<Word> word(*reinterpret_cast<Word*>(at));
  const auto operand = static_cast<Word>(operation.operand);
  switch (operation.kind) {
  case AtomicKind::read: return word.load_relaxed();
  case AtomicKind::replace: return word.exchange_relaxed(operand);
  case AtomicKind::add: return word.add_relaxed(operand);
  case AtomicKind::bit_and: return word.and_relaxed(operand);
  case AtomicKind::bit_or: return word.or_relaxed(operand);
  case AtomicKind::bit_xor: return word.xor_relaxed(operand);
  case AtomicKind::compare_and_swap: break;
  }
  auto before = static_cast<Word>(operation.compare);
  word.cas_relaxed(before, operand);
  return before;
}

template <class Word>
void change_word(std::byte* at, const AtomicOperation& operation) {
  const Word before = change<Word>(at, operation);
  if (operation.before != nullptr) copy::raw(operation.before, &before, sizeof before);
}

} // namespace

Result register_memory(void* address, std::size_t bytes, copy::MemoryKind kind,
                       transport::Registration& made) {
  if (!copy::can_copy(kind))
    return base::fail(MPI_ERR_UNSUPPORTED_OPERATION, "memory of a device cannot be registered yet");
  const segment::Segment& job = memory::space().segment;
  made = {};
  if (bytes == 0 || !job.contains(address) || !job.contains(static_cast<std::byte*>(address) + bytes - 1))
    return {};
  made.key = std::bit_cast<MemoryKey>(
      SegmentKey{reinterpret_cast<std::uint64_t>(address), bytes, job.offset_of(address)});
  return {};
}

transport::Capabilities capabilities(Peer& peer, const MemoryKey& key) {
  if (segment_key(key).bytes != 0) return {.copies = true, .atomics = true};
  return {.copies = reaches_private_memory(peer)};
}

void get(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  const SegmentKey in_segment = segment_key(key);
  const bool is_private = in_segment.bytes == 0;
  const bool complete = is_private ? read_private_memory(peer, theirs, mine) : find_all(in_segment, theirs);
  if (complete && !is_private) copy_runs(mine, theirs);
  access.done(access, complete ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
}

void put(Peer& peer, const MemoryKey& key, std::span<os::Run> theirs, std::span<os::Run> mine,
         Access& access) {
  const SegmentKey in_segment = segment_key(key);
  const bool is_private = in_segment.bytes == 0;
  const bool complete = is_private ? write_private_memory(peer, theirs, mine) : find_all(in_segment, theirs);
  if (complete && !is_private) copy_runs(theirs, mine);
  access.done(access, complete ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
}

void apply_atomic(const MemoryKey& key, std::uint64_t address, const AtomicOperation& operation,
                  Access& access) {
  const SegmentKey in_segment = segment_key(key);
  int error = MPI_SUCCESS;
  if (in_segment.bytes == 0)
    error =
        base::fail(
            MPI_ERR_UNSUPPORTED_OPERATION,
            "the word at {:#x} is in private memory, where the kernel copies but has no atomic operations",
            address)
            .code();
  else if (std::byte* at = find(in_segment, address, operation.bytes); at == nullptr)
    error = MPI_ERR_RMA_RANGE;
  else if (operation.bytes == 4)
    change_word<std::uint32_t>(at, operation);
  else
    change_word<std::uint64_t>(at, operation);
  access.done(access, error);
}

} // namespace near::shm
