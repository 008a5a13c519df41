// Buffered sends: the attached buffers, and the messages copied into them.
//
// A buffered message that can leave at once never touches the buffer. Otherwise it is packed into a block of
// the buffer and sent from there by a request that nobody waits for. The list of blocks is kept outside the
// user's memory, so MPI_BSEND_OVERHEAD only has to cover the alignment of one block per message. Source: MPI
// 5.0, section 3.6.
#include "p2p/engine.h"

#include "base/checked.h"
#include "base/free_ranges.h"

#include <cstdlib>
#include <set>
#include <string>
#include <unordered_map>

namespace near::p2p {

/// One attached buffer. With MPI_BUFFER_AUTOMATIC, blocks are allocated from the heap.
class SendBuffer {
public:
  SendBuffer(void* buffer, MPI_Count size) : user_base_(buffer), size_(static_cast<std::uint64_t>(size)) {
    if (automatic()) return;
    std::uint64_t begin = key(static_cast<std::byte*>(buffer)), from = base::round_up(begin, alignment);
    if (from < begin + size_) free_.give(from, begin + size_ - from);
  }

  bool automatic() const { return user_base_ == MPI_BUFFER_AUTOMATIC; }
  void* user_base() const { return user_base_; }
  std::uint64_t size() const { return automatic() ? 0 : size_; }
  bool empty() const { return blocks_.empty(); }
  std::uint64_t used() const { return used_; }
  std::uint64_t last() const { return next_number_; }
  /// Whether every block with a number below `number` has been released.
  bool left(std::uint64_t number) const { return numbers_.empty() || *numbers_.begin() >= number; }

  /// Reserves a block (first fit). Returns nullptr if there is no free space.
  std::byte* reserve(std::uint64_t bytes) {
    std::uint64_t length = base::round_up(bytes + 1, alignment);
    std::byte* start = automatic() ? static_cast<std::byte*>(std::malloc(length)) : find_room(length);
    if (start == nullptr) return nullptr;
    numbers_.insert(next_number_);
    blocks_.emplace(key(start), Block{length, next_number_++});
    used_ += length;
    return start;
  }
  void give_back(std::uint64_t start) {
    auto at = blocks_.find(start);
    auto [length, number] = at->second;
    used_ -= length;
    numbers_.erase(number);
    blocks_.erase(at);
    if (automatic())
      std::free(reinterpret_cast<void*>(start));
    else
      free_.give(start, length);
  }

private:
  static constexpr std::uint64_t alignment = 64;
  struct Block {
    std::uint64_t length;
    std::uint64_t number;
  };

  static std::uint64_t key(const std::byte* start) { return reinterpret_cast<std::uint64_t>(start); }
  std::byte* find_room(std::uint64_t length) {
    std::uint64_t start = 0;
    return free_.take(length, alignment, start) ? reinterpret_cast<std::byte*>(start) : nullptr;
  }

  void* user_base_;
  std::uint64_t size_;
  std::uint64_t used_ = 0;
  std::uint64_t next_number_ = 0;
  std::unordered_map<std::uint64_t, Block> blocks_; ///< by address
  std::set<std::uint64_t> numbers_;                 ///< of all blocks
  base::FreeRanges free_;                           ///< addresses between blocks
};

namespace {

static_assert(MPI_BSEND_OVERHEAD >= 2 * 64, "covers a block's rounding and the buffer's own alignment");

/// Attached buffers, by the context of the communicator. The process's own buffer has a key that is not a context.
constexpr std::uint64_t of_process = ~0ull;
auto& buffers = *new std::unordered_map<std::uint64_t, std::shared_ptr<SendBuffer>>; // never destroyed

std::uint64_t key_of(const Communicator* communicator) {
  return communicator != nullptr ? communicator->context : of_process;
}

std::shared_ptr<SendBuffer> attached(const Communicator* communicator) {
  auto at = buffers.find(key_of(communicator));
  return at != buffers.end() ? at->second : nullptr;
}

/// "the communicator" or "the process", for error messages.
const char* owner_name(const Communicator* communicator) {
  return communicator != nullptr ? "the communicator" : "the process";
}

Result no_buffer(const Communicator* communicator) {
  return base::fail(MPI_ERR_BUFFER, "no buffer is attached to {}", owner_name(communicator));
}

class Flush : public Schedule {
public:
  explicit Flush(std::shared_ptr<SendBuffer> buffer) : buffer_(std::move(buffer)), until_(buffer_->last()) {}
  bool advance(Completion&) override { return buffer_->left(until_); }

private:
  std::shared_ptr<SendBuffer> buffer_;
  std::uint64_t until_;
};

} // namespace

std::byte* own_memory(EngineRequest& request, std::size_t bytes) {
  static auto& heap = *new SendBuffer(MPI_BUFFER_AUTOMATIC, 0); // never destroyed
  std::byte* start = heap.reserve(bytes);
  if (start == nullptr) return nullptr;
  request.owns_more = true;
  request.store = &heap;
  request.block = reinterpret_cast<std::uint64_t>(start);
  return start;
}

void release_block(SendBuffer& buffer, std::size_t block) { buffer.give_back(block); }

Result send_buffered(const Buffer& buffer, Peer& peer, const Envelope& envelope, Communicator& communicator) {
  std::shared_ptr<SendBuffer> store = attached(&communicator);
  if (store == nullptr) store = attached(nullptr);
  if (store == nullptr)
    return base::fail(MPI_ERR_BUFFER,
                      "a buffered send of {} bytes needs an attached buffer, and there is none",
                      envelope.bytes);
  if (!store->automatic() && envelope.bytes > store->size())
    return base::fail(MPI_ERR_BUFFER,
                      "a buffered send of {} bytes does not fit the attached buffer of {} bytes",
                      envelope.bytes, store->size());
  if (envelope.bytes <= transport::longest_eager() && may_overtake_nothing(peer) &&
      transport::try_send_eager(peer, envelope, buffer))
    return {};
  std::byte* start = store->reserve(envelope.bytes);
  if (start == nullptr) {
    (void)progress();
    start = store->reserve(envelope.bytes);
  }
  if (start == nullptr)
    return base::fail(
        MPI_ERR_BUFFER,
        "a buffered send of {} bytes finds no free space in the attached buffer: {} of its {} bytes hold "
        "messages that have not left",
        envelope.bytes, store->used(), store->size());
  if (envelope.bytes != 0) datatype::pack(buffer, 0, start, static_cast<MPI_Count>(envelope.bytes));
  EngineRequest* send = nullptr;
  Buffer packed{start, static_cast<MPI_Count>(envelope.bytes), datatype::find_datatype(MPI_BYTE)};
  if (Result made = make_request(RequestKind::send, &communicator, packed, send); !made.ok()) {
    store->give_back(reinterpret_cast<std::uint64_t>(start));
    return made;
  }
  send->owns_more = true;
  send->store = store.get();
  send->block = reinterpret_cast<std::uint64_t>(start);
  return begin_detached_send(*send, peer, envelope);
}

Result attach_buffer(Communicator* communicator, void* buffer, MPI_Count size) {
  if (attached(communicator) != nullptr)
    return base::fail(MPI_ERR_BUFFER, "a buffer is already attached to {}", owner_name(communicator));
  buffers[key_of(communicator)] = std::make_shared<SendBuffer>(buffer, size);
  return {};
}

Result flush_buffer(Communicator* communicator) {
  std::shared_ptr<SendBuffer> buffer = attached(communicator);
  if (buffer == nullptr) return no_buffer(communicator);
  wait_until([&] { return buffer->empty(); });
  return {};
}

Result detach_buffer(Communicator* communicator, void*& base, MPI_Count& size) {
  std::shared_ptr<SendBuffer> buffer = attached(communicator);
  if (buffer == nullptr) return no_buffer(communicator);
  wait_until([&] { return buffer->empty(); });
  buffers.erase(key_of(communicator));
  base = buffer->user_base();
  size = static_cast<MPI_Count>(buffer->size());
  return {};
}

Result start_flush_buffer(Communicator* communicator, Request*& made) {
  std::shared_ptr<SendBuffer> buffer = attached(communicator);
  if (buffer == nullptr) return no_buffer(communicator);
  return make_scheduled(communicator, std::make_unique<Flush>(std::move(buffer)), false, made);
}

void forget(Communicator& communicator) {
  void* base = nullptr;
  MPI_Count size = 0;
  if (attached(&communicator) != nullptr) (void)detach_buffer(&communicator, base, size);
}

} // namespace near::p2p
