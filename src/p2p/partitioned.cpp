// Partitioned communication: a send whose parts leave as soon as each is ready. Source: MPI 5.0, chapter 4.
//
//   Psend_init  --- setup: {bytes of a part, number of parts, first tag} --->  Precv_init
//   Pready(i)   --- part i, under the tag first_tag - i ------------------->  one receive a part, since Start
//
// Setups carry the program's tag and match in the order of the init calls, as the standard asks; parts carry
// tags below every valid one, which the sender never uses twice. All travel on a channel of their own. The
// receiver takes parts as the sender cut them: a partition of its own has arrived when every part that it
// overlaps is there, so both sides may cut differently.
#include "p2p/engine.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>

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

View bytes_view(void* address, MPI_Count bytes) {
  return View{address, bytes, datatype::find_datatype(MPI_BYTE)};
}

std::byte* at(const View& view, MPI_Count elements) {
  return static_cast<std::byte*>(view.address) + elements * view.type->extent;
}

/// What both sides share: the whole buffer, and a request for each part on the wire.
class Partitioned : public Schedule {
public:
  Partitioned(const View& part, int partitions, int rank, int tag, Communicator& communicator)
      : part_(part), partitions_(partitions), rank_(rank), tag_(tag), communicator_(communicator) {
    object::keep(part_.type);
  }
  ~Partitioned() override { datatype::release(part_.type); }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  int partitions() const { return partitions_; }
  std::string_view sentence() const override { return sentence_; }

protected:
  void aim(EngineRequest& request, RequestKind what, const View& view, int tag) const {
    request.what = what;
    request.view = view;
    request.aim(rank_, tag, communicator_, Channel::partitioned);
  }
  /// A setup that never met its other side is taken back; one that is on its way is waited for.
  static void retract(EngineRequest& setup) {
    if (!setup.active || setup.complete) return;
    (void)p2p::cancel(setup);
    wait_complete(setup);
  }
  Result make_parts(int parts) {
    requests_.reset(new (std::nothrow) EngineRequest[static_cast<std::size_t>(parts)]);
    if (requests_ == nullptr)
      return base::fail(MPI_ERR_NO_MEM, "no memory for the requests of {} partitions", parts);
    parts_ = parts;
    return {};
  }
  bool all_complete() const {
    for (int i = 0; i < parts_; ++i)
      if (!request(i).complete) return false;
    return true;
  }
  /// Fills the completion of all parts; the first failure counts.
  void conclude(Completion& completion) {
    for (int i = 0; i < parts_; ++i)
      if (Result failed = outcome(request(i)); !failed.ok() && completion.error == MPI_SUCCESS) {
        completion.error = object::error_class(failed);
        sentence_ = base::format("partition {}: {}", i, std::string(base::failure_text()));
      }
  }
  EngineRequest& request(int i) const { return requests_[static_cast<std::size_t>(i)]; }

  const View part_; ///< the first partition as the program described it
  const int partitions_, rank_, tag_;
  Communicator& communicator_; ///< kept alive by the request
  int parts_ = 0;              ///< on the wire: what the sender cut
  std::unique_ptr<EngineRequest[]> requests_;
  std::string sentence_;
};

class PartitionedSend : public Partitioned {
public:
  using Partitioned::Partitioned;
  ~PartitionedSend() override { retract(setup_request_); }

  Result announce() {
    NEAR_TRY(make_parts(partitions_));
    first_tag_ = take_tags(partitions_);
    setup_ = {static_cast<std::uint64_t>(part_.bytes()), partitions_, first_tag_};
    aim(setup_request_, RequestKind::send, bytes_view(&setup_, sizeof setup_), tag_);
    return begin_send(setup_request_);
  }
  Result begin() override {
    for (int i = 0; i < parts_; ++i) request(i).active = request(i).complete = false;
    return {};
  }
  bool advance(Completion& completion) override {
    if (!all_complete()) return false;
    conclude(completion);
    return true;
  }
  Result ready(int partition) {
    EngineRequest& part = request(partition);
    if (part.active) return base::fail(MPI_ERR_ARG, "partition {} has been marked ready already", partition);
    View view{at(part_, partition * part_.count), part_.count, part_.type};
    aim(part, RequestKind::send, view, first_tag_ - partition);
    return begin_send(part);
  }

private:
  Setup setup_{};
  std::int32_t first_tag_ = 0;
  EngineRequest setup_request_;
};

class PartitionedReceive : public Partitioned {
public:
  using Partitioned::Partitioned;
  ~PartitionedReceive() override { retract(setup_request_); }

  Result expect() {
    aim(setup_request_, RequestKind::receive, bytes_view(&setup_, sizeof setup_), tag_);
    return begin_receive(setup_request_);
  }
  Result begin() override {
    started_ = false;
    return {};
  }
  bool advance(Completion& completion) override {
    if (!started_ && !start_parts(completion)) return completion.error != MPI_SUCCESS;
    unpack_arrived();
    if (!all_complete()) return false;
    completion.source = rank_;
    completion.tag = rank_ == MPI_PROC_NULL ? MPI_ANY_TAG : tag_;
    for (int i = 0; i < parts_; ++i) completion.bytes += request(i).completion.bytes;
    conclude(completion);
    return true;
  }
  /// Whether this partition of the receive buffer is filled.
  bool arrived(int partition) {
    if (!started_) return false;
    unpack_arrived();
    auto first = static_cast<std::int64_t>(partition) * parts_ / partitions_;
    auto end = (static_cast<std::int64_t>(partition + 1) * parts_ + partitions_ - 1) / partitions_;
    for (std::int64_t i = first; i < end; ++i)
      if (!request(static_cast<int>(i)).complete) return false;
    return true;
  }

private:
  /// Once the setup is here, posts the receives of all parts. False: not yet, or completion.error is set.
  bool start_parts(Completion& completion) {
    if (!setup_request_.complete) return false;
    if (rank_ != MPI_PROC_NULL && requests_ == nullptr) {
      if (Result made = make_parts(setup_.parts); !made.ok()) return give_up(made, completion);
      if (needs_staging()) {
        staging_.reset(new (std::nothrow) std::byte[part_bytes() * static_cast<std::uint64_t>(parts_) + 1]);
        if (staging_ == nullptr)
          return give_up(
              base::fail(MPI_ERR_NO_MEM, "no memory to receive partitions that are cut differently"),
              completion);
      }
    }
    started_ = true;
    unpacked_ = 0;
    for (int i = 0; i < parts_; ++i) {
      aim(request(i), RequestKind::receive, part_view(i), setup_.first_tag - i);
      if (Result begun = begin_receive(request(i)); !begun.ok()) {
        request(i).completion.error = begun.code();
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

  std::uint64_t part_bytes() const { return setup_.part_bytes; }
  std::uint64_t capacity() const {
    return static_cast<std::uint64_t>(part_.bytes()) * static_cast<std::uint64_t>(partitions_);
  }
  /// The sender's cuts lie inside elements of a type with gaps: such parts are received packed and unpacked.
  bool needs_staging() const {
    return !part_.is_dense() && part_bytes() % static_cast<std::uint64_t>(part_.type->size) != 0;
  }
  View part_view(int i) const {
    std::uint64_t offset = part_bytes() * static_cast<std::uint64_t>(i);
    std::uint64_t room = std::min(part_bytes(), capacity() - std::min(capacity(), offset));
    if (needs_staging()) return bytes_view(staging_.get() + offset, static_cast<MPI_Count>(room));
    if (room == 0) return bytes_view(nullptr, 0);
    if (part_.is_dense()) return bytes_view(part_.dense_start() + offset, static_cast<MPI_Count>(room));
    auto size = static_cast<std::uint64_t>(part_.type->size);
    return View{at(part_, static_cast<MPI_Count>(offset / size)), static_cast<MPI_Count>(room / size),
                part_.type};
  }
  /// Staged parts are unpacked in order, as far as they are here.
  void unpack_arrived() {
    if (staging_ == nullptr) return;
    View whole{part_.address, part_.count * partitions_, part_.type};
    for (; unpacked_ < parts_ && request(unpacked_).complete; ++unpacked_) {
      std::uint64_t offset = part_bytes() * static_cast<std::uint64_t>(unpacked_);
      MPI_Count bytes = request(unpacked_).completion.bytes;
      if (bytes != 0) datatype::unpack(whole, static_cast<MPI_Count>(offset), staging_.get() + offset, bytes);
    }
  }

  Setup setup_{};
  EngineRequest setup_request_;
  bool started_ = false;
  std::unique_ptr<std::byte[]> staging_;
  int unpacked_ = 0;
};

template <class T>
Result side_of(Request& request, const char* side, int partition, T*& found) {
  found = dynamic_cast<T*>(engine(request).schedule.get());
  if (found == nullptr) return base::fail(MPI_ERR_REQUEST, "the request is no partitioned {}", side);
  if (partition < 0 || partition >= found->partitions())
    return base::fail(MPI_ERR_ARG, "partition {} is outside the request's {} partitions", partition,
                      found->partitions());
  return {};
}

} // namespace

Result make_partitioned_send(const View& partition, int partitions, int destination, int tag,
                             Communicator& communicator, Request*& made) {
  auto schedule = std::make_unique<PartitionedSend>(partition, partitions, destination, tag, communicator);
  PartitionedSend& send = *schedule;
  NEAR_TRY(make_scheduled(&communicator, std::move(schedule), true, made));
  Result announced = send.announce();
  if (!announced.ok()) destroy(engine(*made));
  return announced;
}

Result make_partitioned_receive(const View& partition, int partitions, int source, int tag,
                                Communicator& communicator, Request*& made) {
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
  return send->ready(partition);
}

Result has_arrived(Request& request, int partition, bool& arrived) {
  PartitionedReceive* receive = nullptr;
  NEAR_TRY(side_of(request, "receive", partition, receive));
  arrived = !request.active || request.complete || receive->arrived(partition);
  if (arrived) return {};
  progress();
  arrived = request.complete || receive->arrived(partition);
  return {};
}

} // namespace near::p2p
