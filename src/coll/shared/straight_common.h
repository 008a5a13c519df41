// What calls that go straight have in common (straight.h).
#pragma once

#include "coll/shared/area.h"
#include "copy/raw.h"

namespace near::coll {

inline void put(std::byte* to, const std::byte* from, MPI_Count bytes) {
  if (to != from) copy::raw(to, from, static_cast<std::size_t>(bytes));
}

inline bool is_one_block(const Buffer& buffer) {
  return buffer.type == nullptr || (buffer.type->contiguous && copy::can_copy(buffer.kind));
}

/// Whether others have published what this rank reads in the call of this number, or do so soon.
bool is_soon_there(const Call& call, const Area& area, Number number, const Description& description);

/// How a call uses the area that is executed at once, while no other is under way: like AreaCall, but without turns and parts.
class SoleCall {
public:
  SoleCall(Area& area, const Description& description, bool publishes)
      : area_(area), description_(description), number_(area.take_number()), published_(!publishes) {}

  Number number() const { return number_; }
  int rank() const { return area_.rank(); }
  int size() const { return area_.size(); }
  bool finished() const { return finished_; }

  template <class Fill>
  Result publish(MPI_Count bytes, Fill&& fill) {
    NEAR_TRY(prepare(bytes, fill));
    area_.publish(number_, description_);
    published_ = true;
    return {};
  }
  template <class Fill>
  Result only_publish(MPI_Count bytes, Fill&& fill) {
    NEAR_TRY(prepare(bytes, fill));
    area_.finish_and_publish(number_, description_);
    published_ = finished_ = true;
    return {};
  }
  template <class Consume>
  Result read(int rank, MPI_Count bytes, Consume&& consume) {
    const std::byte* at = area_.data(this->rank(), number_);
    if (rank != this->rank()) {
      NEAR_TRY(area_.wait(rank, number_, description_, at));
      area_.count_read(rank, bytes);
    }
    consume(at);
    return {};
  }
  /// Like read(), where consume(data) returns how many bytes it has read. From another rank.
  template <class Consume>
  Result read_some(int rank, Consume&& consume) {
    const std::byte* at = nullptr;
    NEAR_TRY(area_.wait(rank, number_, description_, at));
    area_.count_read(rank, consume(at));
    return {};
  }
  void finish() {
    area_.finish(number_);
    finished_ = true;
  }
  /// After an error: the others must not wait for this rank.
  [[gnu::cold]] void abandon() {
    area_.begin_failing();
    if (!finished_) finish();
    if (!published_) area_.publish_failure(number_, description_);
    area_.end_failing();
  }

private:
  template <class Fill>
  Result prepare(MPI_Count bytes, Fill&& fill) {
    std::byte* at = nullptr;
    NEAR_TRY(area_.prepare(number_, bytes, at));
    fill(at);
    return {};
  }

  Area& area_;
  const Description description_;
  const Number number_;
  bool published_, finished_ = false;
};

} // namespace near::coll
