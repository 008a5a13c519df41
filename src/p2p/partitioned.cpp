// Partitioned communication: a send whose parts leave as they become ready. Source: MPI 5.0, chapter 4.
//
//   Psend_init  --- setup: {bytes of a part, number of parts, first tag} --->  Precv_init
//   Pready(i)   --- part i, with the tag first_tag - i -------------------->  one receive per part, since Start
//
// Setups carry the program's tag and match in the order of the init calls, as the standard requires. A setup
// that has not been matched therefore outlives its request. Parts carry tags below all valid ones, and the
// sender does not reuse them. All these messages have a channel of their own. The receiver receives the parts
// as the sender cut them: one of its partitions has arrived when all parts that overlap it have arrived. So
// the two sides may cut the buffer differently.
#include "p2p/engine.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace near::p2p {

namespace {

struct Setup {
  std::uint64_t part_bytes;
  std::int32_t parts;
  std::int32_t first_tag;
};

constexpr std::int32_t highest_part_tag = -16; // below the standard's wildcards
std::int32_t next_part_tag = highest_part_tag;

std::int32_t take_tags(int parts) {
  if (next_part_tag < std::numeric_limits<std::int32_t>::min() + parts) next_part_tag = highest_part_tag;
  std::int32_t first = next_part_tag;
  next_part_tag -= parts;
  return first;
}

Buffer byte_buffer(void* address, MPI_Count bytes) {
  return Buffer{address, bytes, datatype::find_datatype(MPI_BYTE)};
}

std::byte* at(const Buffer& buffer, MPI_Count elements) {
  return static_cast<std::byte*>(buffer.address) + elements * buffer.type->extent;
}

/// What both sides have in common: the buffer, and one request for each part on the wire.
class Partitioned : public Schedule {
public:
  Partitioned(const Buffer& part, int partitions, int rank, int tag, Communicator& communicator)
      : part_(part), partitions_(partitions), rank_(rank), tag_(tag), communicator_(communicator) {
    object::keep(part_.type);
  }
  ~Partitioned() override {
    let_go(setup_request_);
    datatype::release(part_.type);
  }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  int partitions() const { return partitions_; }
  std::string_view sentence() const override { return sentence_; }

protected:
  void aim(EngineRequest& request, RequestKind what, const Buffer& buffer, int tag) const {
    request.what = what;
    request.buffer = buffer;
    request.aim(rank_, tag, communicator_, Channel::partitioned);
  }
  /// Makes the request that carries the setup message.
  Result make_setup(RequestKind what) {
    NEAR_TRY(make_request(what, &communicator_, Buffer{}, setup_request_));
    std::byte* memory = own_memory(*setup_request_, sizeof(Setup));
    if (memory == nullptr) return base::fail(MPI_ERR_NO_MEM, "no memory for a partitioned request");
    setup_ = new (memory) Setup{};
    setup_request_->mode = SendMode::standard;
    aim(*setup_request_, what, byte_buffer(setup_, sizeof(Setup)), tag_);
    return {};
  }
  Result make_parts(int parts) {
    requests_.reset(new (std::nothrow) EngineRequest[static_cast<std::size_t>(parts)]);
    if (requests_ == nullptr)
      return base::fail(MPI_ERR_NO_MEM, "no memory for the requests of {} partitions", parts);
    parts_ = parts;
    return {};
  }
  /// Fills in the completion from those of all parts; the first failure counts.
  void conclude(Completion& completion) {
    for (int i = 0; i < parts_; ++i)
      if (Result failed = outcome(request(i)); !failed.ok() && completion.error == MPI_SUCCESS) {
        completion.error = object::error_class(failed);
        sentence_ = base::format("partition {}: {}", i, std::string(base::failure_text()));
      }
  }
  EngineRequest& request(int i) const { return requests_[static_cast<std::size_t>(i)]; }

  const Buffer part_; ///< the first partition as the program described it
  const int partitions_, rank_, tag_;
  Communicator& communicator_; ///< kept alive by the request
  EngineRequest* setup_request_ = nullptr;
  Setup* setup_ = nullptr; ///< the setup request's own memory
  int parts_ = 0;          ///< on the wire, as the sender cut them
  int complete_ = 0;       ///< at least this many of the first parts are complete
  std::unique_ptr<EngineRequest[]> requests_;
  std::string sentence_;

private:
  /// Frees the setup's request, but never withdraws the setup: the peer's matching init call may come later,
  /// and would then match the setup of our next request instead.
  static void let_go(EngineRequest* setup) {
    if (setup == nullptr) return;
    if (setup->active && !setup->complete)
      retire(*setup);
    else
      destroy(*setup);
  }
};

class PartitionedSend : public Partitioned {
public:
  using Partitioned::Partitioned;

  Result announce() {
    NEAR_TRY(make_parts(partitions_));
    NEAR_TRY(make_setup(RequestKind::send));
    *setup_ = {static_cast<std::uint64_t>(part_.bytes()), partitions_, take_tags(partitions_)};
    first_tag_ = setup_->first_tag;
    return begin_send(*setup_request_);
  }
  Result begin() override {
    complete_ = 0;
    for (int i = 0; i < parts_; ++i) request(i).active = request(i).complete = false;
    return {};
  }
  bool advance(Completion& completion) override {
    while (complete_ < parts_ && request(complete_).complete) ++complete_;
    if (complete_ < parts_) return false;
    conclude(completion);
    return true;
  }
  Result ready(int partition) {
    EngineRequest& part = request(partition);
    if (part.active) return base::fail(MPI_ERR_ARG, "partition {} has been marked ready already", partition);
    Buffer buffer{at(part_, partition * part_.count), part_.count, part_.type};
    aim(part, RequestKind::send, buffer, first_tag_ - partition);
    return begin_send(part);
  }

private:
  std::int32_t first_tag_ = 0;
};

class PartitionedReceive : public Partitioned {
public:
  using Partitioned::Partitioned;

  Result expect() {
    NEAR_TRY(make_setup(RequestKind::receive));
    return begin_receive(*setup_request_);
  }
  Result begin() override {
    started_ = false;
    return {};
  }
  bool advance(Completion& completion) override {
    if (!started_ && !start_parts(completion)) return completion.error != MPI_SUCCESS;
    while (complete_ < parts_ && has(complete_)) ++complete_;
    if (complete_ < parts_) return false;
    completion.source = rank_;
    completion.tag = rank_ == MPI_PROC_NULL ? MPI_ANY_TAG : tag_;
    for (int i = 0; i < parts_; ++i) completion.bytes += request(i).completion.bytes;
    conclude(completion);
    return true;
  }
  /// Whether this partition of the receive buffer is complete.
  bool arrived(int partition) {
    if (!started_) return false;
    auto [first, end] = overlapped_by(partition);
    bool all = true;
    for (int i = first; i < end; ++i) all = has(i) && all; // also unpacks each part that has arrived
    return all;
  }

private:
  /// Posts the receives of all parts once the setup has arrived. Returns false if it has not, or if
  /// completion.error is set.
  bool start_parts(Completion& completion) {
    if (!setup_request_->complete) return false;
    if (Result failed = outcome(*setup_request_); !failed.ok()) return give_up(failed, completion);
    if (rank_ != MPI_PROC_NULL && requests_ == nullptr) {
      if (Result made = make_parts(setup_->parts); !made.ok()) return give_up(made, completion);
      if (needs_staging()) {
        auto parts = static_cast<std::size_t>(parts_);
        staging_.reset(new (std::nothrow) std::byte[part_bytes() * parts + 1]);
        unpacked_.reset(new (std::nothrow) bool[parts]);
        if (staging_ == nullptr || unpacked_ == nullptr) {
          requests_.reset(); // the next start tries again
          return give_up(
              base::fail(MPI_ERR_NO_MEM, "no memory to receive partitions that are cut differently"),
              completion);
        }
      }
    }
    started_ = true;
    complete_ = 0;
    if (unpacked_ != nullptr) std::fill_n(unpacked_.get(), parts_, false);
    for (int i = 0; i < parts_; ++i) {
      aim(request(i), RequestKind::receive, part_buffer(i), setup_->first_tag - i);
      if (Result begun = begin_receive(request(i)); !begun.ok()) {
        request(i).completion = Completion{};
        request(i).completion.error = object::error_class(begun);
        request(i).complete = true;
      }
    }
    return true;
  }
  bool give_up(Result why, Completion& completion) {
    completion.error = object::error_class(why);
    sentence_ = base::failure_text();
    return false;
  }

  std::uint64_t part_bytes() const { return setup_->part_bytes; }
  std::uint64_t capacity() const {
    return static_cast<std::uint64_t>(part_.bytes()) * static_cast<std::uint64_t>(partitions_);
  }
  /// Whether the sender's cuts lie inside elements of a type with gaps: such parts are received packed and then
  /// unpacked.
  bool needs_staging() const {
    return !part_.is_contiguous() && part_.type->size != 0 &&
           part_bytes() % static_cast<std::uint64_t>(part_.type->size) != 0;
  }
  Buffer part_buffer(int i) const {
    std::uint64_t offset = part_bytes() * static_cast<std::uint64_t>(i);
    std::uint64_t bytes = std::min(part_bytes(), capacity() - std::min(capacity(), offset));
    if (needs_staging()) return byte_buffer(staging_.get() + offset, static_cast<MPI_Count>(bytes));
    if (bytes == 0) return byte_buffer(nullptr, 0);
    if (part_.is_contiguous())
      return byte_buffer(part_.contiguous_start() + offset, static_cast<MPI_Count>(bytes));
    auto size = static_cast<std::uint64_t>(part_.type->size);
    return Buffer{at(part_, static_cast<MPI_Count>(offset / size)), static_cast<MPI_Count>(bytes / size),
                  part_.type};
  }
  /// Whether part `i` is in the receive buffer. Unpacks it if it has only reached the staging memory.
  bool has(int i) {
    if (!request(i).complete) return false;
    if (staging_ == nullptr || unpacked_[static_cast<std::size_t>(i)]) return true;
    unpacked_[static_cast<std::size_t>(i)] = true;
    std::uint64_t offset = part_bytes() * static_cast<std::uint64_t>(i);
    MPI_Count bytes = request(i).completion.bytes;
    if (bytes != 0)
      datatype::unpack(Buffer{part_.address, part_.count * partitions_, part_.type},
                       static_cast<MPI_Count>(offset), staging_.get() + offset, bytes);
    return true;
  }
  /// The parts that hold bytes of this partition, as a range; all parts if none does.
  std::pair<int, int> overlapped_by(int partition) const {
    if (parts_ == 0 || part_bytes() == 0) return {0, parts_};
    auto bytes = static_cast<std::uint64_t>(part_.bytes()), from = bytes * static_cast<unsigned>(partition);
    auto sent = static_cast<std::uint64_t>(parts_);
    std::uint64_t first = from / part_bytes();
    std::uint64_t end = std::min(sent, (from + bytes + part_bytes() - 1) / part_bytes());
    if (bytes == 0 || first >= end) return {0, parts_};
    return {static_cast<int>(first), static_cast<int>(end)};
  }

  bool started_ = false;
  std::unique_ptr<std::byte[]> staging_;
  std::unique_ptr<bool[]> unpacked_; ///< which staged parts have been unpacked into the buffer
};

template <class T>
Result side_of(Request& request, const char* side, int partition, T*& found) {
  found = dynamic_cast<T*>(engine(request).schedule.get());
  if (found == nullptr) return base::fail(MPI_ERR_REQUEST, "the request is not a partitioned {}", side);
  if (partition < 0 || partition >= found->partitions())
    return base::fail(MPI_ERR_ARG, "partition {} is outside the request's {} partitions", partition,
                      found->partitions());
  return {};
}

} // namespace

Result make_partitioned_send(const Buffer& partition, int partitions, int destination, int tag,
                             Communicator& communicator, Request*& made) {
  NEAR_TRY(datatype::check_copyable(partition));
  auto schedule = std::make_unique<PartitionedSend>(partition, partitions, destination, tag, communicator);
  PartitionedSend& send = *schedule;
  NEAR_TRY(make_scheduled(&communicator, std::move(schedule), true, made));
  Result announced = send.announce();
  if (!announced.ok()) destroy(engine(*made));
  return announced;
}

Result make_partitioned_receive(const Buffer& partition, int partitions, int source, int tag,
                                Communicator& communicator, Request*& made) {
  NEAR_TRY(datatype::check_copyable(partition));
  auto schedule = std::make_unique<PartitionedReceive>(partition, partitions, source, tag, communicator);
  PartitionedReceive& receive = *schedule;
  NEAR_TRY(make_scheduled(&communicator, std::move(schedule), true, made));
  Result expected = receive.expect();
  if (!expected.ok()) destroy(engine(*made));
  return expected;
}

Result mark_ready(Request& request, int partition) {
  PartitionedSend* send = nullptr;
  NEAR_TRY(side_of(request, "send", partition, send));
  if (!request.active)
    return base::fail(MPI_ERR_REQUEST,
                      "the partitioned send is not active: start it before partition {} is ready", partition);
  Result begun = send->ready(partition);
  transport::wake_waiting_threads(); // a thread in MPI_Wait may be asleep, and must advance the request
  return begun;
}

Result has_arrived(Request& request, int partition, bool& arrived) {
  PartitionedReceive* receive = nullptr;
  NEAR_TRY(side_of(request, "receive", partition, receive));
  arrived = !request.active || request.complete || receive->arrived(partition);
  if (arrived) return {};
  poll(reinterpret_cast<std::uintptr_t>(&request) + static_cast<std::uintptr_t>(partition));
  arrived = request.complete || receive->arrived(partition);
  return {};
}

} // namespace near::p2p
