// One call's use of an area: the numbers that it takes, and what it has published and finished of them.
//
// The calls of an area take turns, in the order in which the program made them: a blocking call waits until the
// nonblocking ones before it are over. A call takes its numbers when it is made, so they follow those of the call before
// it at every rank. It may publish before its turn, as soon as the calls before it have published everything; it reads,
// and declares numbers as finished, at its turn only. So slices are taken in the order of numbers (a call never waits for
// slices that later ones hold), and "this rank has finished number n" is true of all calls.
#pragma once

#include "coll/shared/area.h"
#include "coll/shared/room.h"

namespace near::coll {

class AreaCall {
public:
  AreaCall(Area& area, const Description& description, Number count)
      : area_(area), description_(description), count_(count) {}
  /// A call that has taken this number, its only one, while no other one was under way, and has published what it has to.
  struct Published {};
  AreaCall(Area& area, const Description& description, Number number, Published)
      : area_(area), description_(description), count_(1) {
    begin(number, Published{});
  }
  AreaCall(AreaCall&&) = default; // the area knows a call by its turn only
  AreaCall(const AreaCall&) = delete;
  AreaCall& operator=(const AreaCall&) = delete;

  /// Takes the numbers, and queues up behind the calls that this process has made before.
  void begin() {
    turn_ = area_.take_turn(count_, first_);
    published_ = only_reads_ ? count_ : 0;
    finished_ = 0;
  }
  /// The same for a call that has taken this number, and has published what it has to (Published).
  void begin(Number number, Published) {
    Number none;
    turn_ = area_.take_turn(0, none);
    first_ = number;
    published_ = 1;
    finished_ = 0;
  }
  bool is_turn() const { return area_.is_turn(turn_); }
  void wait_for_turn() { area_.wait_for_turn(turn_); }
  /// Every number is a step of its own, in which ranks read different others: an entry of another step, of a rank that has made one
  /// call more or fewer, does not count as one of the same call. For collectives without a root.
  void tell_steps_apart() { has_steps_ = true; }
  /// The other ranks rely on more of this rank than what it publishes: on results, on messages, or on its buffers.
  void owe_more() { owes_more_ = true; }
  /// Lets the next call have its turn.
  void end() { area_.end_turn(); }

  /// Whether it is this call's turn to publish, though perhaps not yet to read.
  bool may_publish() const { return area_.may_publish(turn_); }
  /// While the returned object lives, ..._at_once() and can_publish() allocate nothing.
  Slices::Look look() const { return area_.look(); }
  /// If this call has published everything, lets the next one do so.
  void pass_on() {
    if (published_ == count_) area_.end_publishing(turn_);
  }

  Area& area() const { return area_; }
  int rank() const { return area_.rank(); }
  int size() const { return area_.size(); }
  Number count() const { return count_; }
  /// The bytes of the call, as describe() was told.
  MPI_Count bytes() const { return static_cast<MPI_Count>(description_.bytes); }
  /// Returns what `rank` has published: this rank, or one whose entry was read.
  std::byte* data(int rank, Number index) const { return area_.data(rank, number(index)); }

  /// What an algorithm may do when it is executed in two parts, neither of which waits (short_call.h). For calls of one
  /// chunk.
  enum class Part : std::uint8_t {
    whole,
    publishing, ///< reads fail with not_yet
    reading,    ///< what has been published is not published again; all that is read is there
  };
  void restrict_to(Part part) { part_ = part; }
  /// publish() also returns this if it would have to wait and the call is executed in parts.
  static constexpr Result not_yet{-1};
  /// Whether publish(), which has failed with not_yet, would do so again.
  bool must_wait_to_publish() const { return !may_publish() || !publishes_at_once(published_, wanted_); }

  // What the algorithms do, by the index of a chunk; each may wait. An `..._at_once` says that its verb would not.

  template <class Fill>
  Result publish(Number index, MPI_Count bytes, Fill&& fill) {
    if (part_ != Part::whole) {
      if (index < published_) return {};
      wanted_ = bytes;
      if (must_wait_to_publish()) return not_yet;
    }
    std::byte* at = nullptr;
    NEAR_TRY(area_.prepare(number(index), bytes, at));
    fill_room(at, bytes, fill);
    area_.publish(number(index), description_of(index));
    published_ = index + 1;
    return {};
  }
  /// Like publish(), for a rank that reads nothing in this call, of one chunk: it has then finished, provided it is the
  /// call's turn.
  template <class Fill>
  Result only_publish(MPI_Count bytes, Fill&& fill) {
    if (!is_turn()) return publish(0, bytes, fill);
    if (published_ != 0) return {};
    if (part_ != Part::whole) {
      wanted_ = bytes;
      if (must_wait_to_publish()) return not_yet;
    }
    std::byte* at = nullptr;
    NEAR_TRY(area_.prepare(number(0), bytes, at));
    fill_room(at, bytes, fill);
    area_.finish_and_publish(number(0), description_);
    published_ = finished_ = 1;
    return {};
  }
  bool can_publish(Number index, MPI_Count bytes) const { return area_.can_prepare(number(index), bytes); }
  /// Before its turn it would not fail either: errors are found at a call's turn.
  bool publishes_at_once(Number index, MPI_Count bytes) const {
    return can_publish(index, bytes) || (is_turn() && area_.prepares_at_once(number(index), bytes));
  }
  /// Waits for a chunk of a rank and passes it to consume(data), which reads `bytes` bytes.
  template <class Consume>
  Result read(int rank, Number index, MPI_Count bytes, Consume&& consume) {
    if (part_ == Part::publishing) return not_yet;
    const std::byte* at = nullptr;
    if (rank == this->rank()) {
      at = data(rank, index);
    } else {
      NEAR_TRY(area_.wait(rank, number(index), description_of(index), at));
      area_.count_read(rank, bytes);
    }
    consume(at);
    return {};
  }
  /// For a read() that did not know how many bytes it would read.
  void count_read(int rank, MPI_Count bytes) { area_.count_read(rank, bytes); }
  bool reads_at_once(int rank, Number index) const {
    return rank == this->rank() || area_.waits_at_once(rank, number(index));
  }
  void publish_result(Number index) { area_.publish_result(number(index)); }
  /// Like read(), for data that the rank has changed in place and announced by publish_result().
  template <class Consume>
  Result read_result(int rank, Number index, MPI_Count bytes, Consume&& consume) {
    if (rank != this->rank()) {
      NEAR_TRY(area_.wait_for_result(rank, number(index)));
      area_.count_read(rank, bytes);
    }
    consume(data(rank, index));
    return {};
  }
  bool reads_result_at_once(int rank, Number index) const {
    return rank == this->rank() || area_.has_result(rank, number(index));
  }
  bool wait_for_entry_or_results_before(int rank, Number index) {
    return area_.wait_for_entry_or_results_before(rank, number(index));
  }
  /// The data of read() and read_result() if it is there already, to be fetched ahead; otherwise nullptr.
  const std::byte* find_data(int rank, Number index) const { return area_.find_data(rank, number(index)); }
  const std::byte* find_result(int rank, Number index) const {
    return area_.find_result(rank, number(index));
  }
  void finish(Number index) {
    if (part_ == Part::publishing) return;
    area_.finish(number(index));
    finished_ = index + 1;
  }
  /// This rank publishes nothing in this call.
  void only_read() {
    only_reads_ = true;
    published_ = count_;
  }

  bool is_broken() const { return area_.is_broken(); }
  /// Whether reads_at_once() is true of the rank because the area is broken.
  bool is_broken_at(int rank) const { return area_.is_broken_at(rank); }
  Result broken() { return area_.broken(); }

  Number published() const { return published_; }
  Number finished() const { return finished_; }
  bool is_over() const { return finished_ == count_ && published_ == count_; }

  /// After an error: declares whatever was not read as finished, and what was not published as failed, as far as that
  /// needs no wait unless `waits`. True once nothing remains. At this call's turn only.
  bool abandon(bool waits) {
    if (is_over()) return true;
    part_ = Part::whole;
    area_.begin_failing();
    if (finished_ != count_) finish(count_ - 1);
    for (; published_ < count_; ++published_) {
      if (!waits && !area_.prepares_at_once(number(published_), 0)) return false;
      area_.publish_failure(number(published_), description_of(published_));
    }
    area_.end_failing();
    return true;
  }

  /// Ends the area: this rank takes no part in the rest of the call, of which others learn in no other way.
  void give_up() { area_.give_up(description_); }
  /// The rank leaves the call, which was made last and cannot be recorded to its end, and waits for nobody, since others may wait
  /// for what it does next. They learn that from what it has not published yet. If they rely on more, or if that cannot be
  /// published now (before this call's turn, or while its entry is being read), the area ends. What others still read lies in
  /// slices, which are kept until all have finished, or in this rank's buffers: a rank looks after it has read those whether
  /// the area has ended (single_copy.cpp), and that comes before the caller may change them.
  [[gnu::cold]] void leave() {
    const bool in_turn = is_turn(), told = in_turn && abandon(false);
    if (!told || owes_more_) give_up();
    if (in_turn)
      end();
    else
      area_.take_turn_back();
  }

private:
  template <class Fill>
  void fill_room(std::byte* at, MPI_Count bytes, Fill&& fill) {
    if (bytes <= piece_bytes) return fill(Room(at, copy::Store::cached));
    copy::StorePolicy& stores = area_.stores(static_cast<Collective>(description_.collective));
    const auto use = stores.begin();
    const Room room(at, use.stores);
    fill(room);
    if (2 * room.chosen_bytes() > static_cast<std::uint64_t>(bytes)) stores.end(use, room.chosen_bytes());
  }
  Number number(Number index) const { return first_ + index; }
  Description description_of(Number index) const {
    Description made = description_;
    if (has_steps_) made.root -= static_cast<std::int32_t>(index);
    return made;
  }

  Area& area_;
  Description description_;
  Number count_, first_ = 0, published_ = 0, finished_ = 0;
  std::uint64_t turn_ = 0;
  bool only_reads_ = false, has_steps_ = false, owes_more_ = false;
  Part part_ = Part::whole;
  MPI_Count wanted_ = 0; ///< bytes that publish() was to publish
};

} // namespace near::coll
