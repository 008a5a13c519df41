// One call's use of an area: which numbers it takes, and how its data is cut into chunks.
#pragma once

#include "coll/algorithms.h"
#include "coll/registry.h"
#include "coll/schedule.h"
#include "coll/shared/area_call.h"

#include <algorithm>
#include <optional>

namespace near::coll {

/// Packed bytes in equal chunks, of which the last may be shorter. A pure function of facts that all ranks know.
struct Chunks {
  MPI_Count total = 0, chunk = 0;
  Number count = 0;

  MPI_Count offset(Number index) const { return chunk * index; }
  /// Bytes of a chunk of `whole`, which has at most `total` bytes: of one rank's part if the parts differ.
  MPI_Count bytes(Number index, MPI_Count whole) const {
    return std::clamp<MPI_Count>(whole - offset(index), 0, chunk);
  }
  MPI_Count bytes(Number index) const { return bytes(index, total); }
};

/// Chunks of `total` bytes, `parts` of which, each rounded up to cache lines, fit into a slice together. Each is a
/// multiple of `unit`, which is at most a cache line. Where every rank has its processor, longer data is cut so that
/// ranks read one chunk while the next is being written; where they share processors, each chunk costs them a turn.
Chunks chunks_of(MPI_Count total, MPI_Count unit = 1, int parts = 1);
/// The same for a vector that the root publishes, or that ranks reduce, at the root or in shares: fewer waits are worth more than
/// what shorter chunks would overlap.
Chunks chunks_of_vector(MPI_Count total, MPI_Count unit = 1);
/// How many chunks beyond the one that it reads a rank publishes, if it can do so without a wait.
Number chunks_ahead();
/// The distance of parts of `bytes` bytes in an entry, piece or slice.
inline MPI_Count part_stride(MPI_Count bytes, int parts) {
  return bytes * parts <= inline_bytes ? bytes : (bytes + 63) / 64 * 64;
}

/// What algorithms do with an area. Like the verbs of a group, they are executed, or recorded into the group's schedule:
/// so whatever an algorithm passes to them must stay valid when it has returned. Functions capture by value, and
/// `call()` is what they may point to.
class Exchange {
public:
  /// Takes a number for each chunk.
  Exchange(CollectiveGroup& group, const Call& call, Number chunks);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  int rank() const { return call_->rank(); }
  int size() const { return call_->size(); }
  AreaCall& call() { return *call_; }
  const Area& area() const { return call_->area(); }
  bool is_recorded() const { return schedule_ != nullptr; }

  /// Publishes the next chunk, after fill(room), which writes `bytes` bytes there.
  template <class Fill>
  Result publish(MPI_Count bytes, Fill fill) {
    const Number index = published_++;
    if (!is_recorded()) return call_->publish(index, bytes, fill);
    AreaCall* const call = call_;
    if (index < call->published()) return {}; // before it was recorded (Schedule::go_on)
    schedule_->attempt_early([=] { return call->publishes_at_once(index, bytes); },
                             [=] { return call->publish(index, bytes, fill); });
    return {};
  }
  /// Like publish(), for data that this rank has read in this call: not before the reads that come before it.
  template <class Fill>
  Result relay(MPI_Count bytes, Fill fill) {
    const Number index = published_++;
    if (!is_recorded()) return call_->publish(index, bytes, fill);
    AreaCall* const call = call_;
    schedule_->attempt([=] { return call->publishes_at_once(index, bytes); },
                       [=] { return call->publish(index, bytes, fill); });
    return {};
  }
  /// Publishes chunks by publish_one(index) up to `index`, and further ones where that needs no wait: `bytes_of(index)`
  /// tells their sizes. All numbers before `index` must be finished, unless the next one can be published without a wait:
  /// this rank would wait for its own slices.
  template <class BytesOf, class PublishOne>
  Result publish_until(Number index, BytesOf&& bytes_of, PublishOne&& publish_one) {
    while (published_ < call_->count() &&
           (published_ <= index || (published_ <= index + ahead_ && can_publish(bytes_of(published_)))))
      NEAR_TRY(publish_one(published_));
    return {};
  }
  Number published() const { return published_; }
  /// Whether the next chunk, of `bytes` bytes, can be published without a wait.
  bool can_publish(MPI_Count bytes) { return !is_recorded() && call_->can_publish(published_, bytes); }

  /// consume(data) reads what a rank has published, `bytes` bytes of it.
  template <class Consume>
  Result read(int rank, Number index, MPI_Count bytes, Consume consume) {
    if (!is_recorded()) return call_->read(rank, index, bytes, consume);
    AreaCall* const call = call_;
    schedule_->attempt([=] { return call->reads_at_once(rank, index); },
                       [=] { return call->read(rank, index, bytes, consume); });
    return {};
  }
  /// act(), which reads a chunk of the rank and returns a Result, once it is there.
  template <class Act>
  Result act_on(int rank, Number index, Act act) {
    if (!is_recorded()) return act();
    AreaCall* const call = call_;
    schedule_->attempt([=] { return call->reads_at_once(rank, index); }, act);
    return {};
  }
  /// For a recorded call that waits for messages of the rank, like wait(): also tried while it does, so that it learns that the
  /// rank calls something else.
  Result wait_early(int rank, Number index) {
    AreaCall* const call = call_;
    schedule_->attempt_early([=] { return call->is_turn() && call->reads_at_once(rank, index); },
                             [=] { return call->read(rank, index, 0, [](const std::byte*) {}); });
    return {};
  }
  /// Waits for a chunk like read(), but reads nothing.
  Result wait(int rank, Number index) {
    return read(rank, index, 0, [](const std::byte*) {});
  }
  void publish_result(Number index) {
    if (!is_recorded()) return call_->publish_result(index);
    AreaCall* const call = call_;
    schedule_->attempt([] { return true; }, [=] { return call->publish_result(index), Result{}; });
  }
  template <class Consume>
  Result read_result(int rank, Number index, MPI_Count bytes, Consume consume) {
    if (!is_recorded()) return call_->read_result(rank, index, bytes, consume);
    AreaCall* const call = call_;
    schedule_->attempt([=] { return call->reads_result_at_once(rank, index); },
                       [=] { return call->read_result(rank, index, bytes, consume); });
    return {};
  }
  /// This rank has finished reading this chunk and all earlier ones.
  void finish(Number index) {
    if (!is_recorded()) return call_->finish(index);
    AreaCall* const call = call_;
    schedule_->attempt([] { return true; }, [=] { return call->finish(index), Result{}; });
  }
  /// act(), which waits for nothing and returns a Result, after what comes before it.
  template <class Act>
  Result act(Act act) {
    if (!is_recorded()) return act();
    schedule_->attempt([] { return true; }, act);
    return {};
  }
  /// This rank publishes nothing in this call.
  void only_read() {
    published_ = call_->count();
    call_->only_read();
  }

private:
  std::optional<AreaCall> executed_;
  int exceptions_ = 0; ///< under way when a call that is executed began: in a destructor of the program
  AreaCall* call_;
  Schedule* schedule_;
  Number ahead_, published_ = 0;
};

/// All ranks publish all chunks, and read those of others: take(index) waits for them and reads.
template <class BytesOf, class Fill, class Take>
Result exchange_all(Exchange& exchange, Number chunks, BytesOf&& bytes_of, Fill fill, Take&& take) {
  for (Number index = 0; index < chunks; ++index) {
    NEAR_TRY(exchange.publish_until(index, bytes_of, [&](Number next) {
      return exchange.publish(bytes_of(next), [fill, next](const Room& room) { fill(next, room); });
    }));
    NEAR_TRY(take(index));
    exchange.finish(index);
  }
  return {};
}

} // namespace near::coll
