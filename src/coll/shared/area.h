// The area of a communicator in shared memory: where its ranks exchange data of collectives without messages.
//
// Each rank owns some pages of it, its part, which it allocates and in which others write a counter only
// (doc/collectives.md):
//
//   finished         flag: up to which number this rank has finished reading the others' entries
//   entries[depth]   a flag each, what the collective is, and the data: up to `inline_bytes` in the entry itself,
//                    longer data in a piece or slice that the entry names
//   results          a flag each: this rank has reduced its share of that number's data, in place
//   pieces           data of up to `piece_bytes` (pieces.h); longer data lies in a slice (slices.h)
//
// All ranks number the entries alike: a collective takes as many numbers as it has chunks, which is a function of
// facts that all ranks know, so root and ranks find each other without a message. A rank overwrites an
// entry, piece or slice only when all ranks have finished the number that it last held (queue/sequence_flag.h). Each entry
// repeats up to which number its writer has finished, so ranks that hear from each other anyway need not look at those flags.
//
// No call allocates memory, except for slices, and these are kept. A rank that waits polls first and then sleeps on its
// doorbell; a rank that raises a flag rings the members that sleep.
#pragma once

#include "coll/call.h"
#include "coll/shared/pieces.h"
#include "coll/shared/slices.h"
#include "copy/store_policy.h"
#include "object/communicator.h"
#include "pattern/machines.h"
#include "queue/sequence_flag.h"
#include "segment/segment.h"
#include "transport/transport.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

namespace near::coll {

using object::Communicator;
using pattern::Machines;
using pattern::RankList;
using queue::Number;

/// Where the data of an entry is.
enum class Where : std::uint8_t { here, elsewhere, no_memory };

/// The collective that a rank calls, to check that all ranks call the same one.
struct Description {
  std::uint8_t collective = 0, operation = 0, element = 0;
  Where where = Where::here; ///< not part of what is compared
  std::int32_t root = 0; ///< if there is none: -1, and less for further steps (AreaCall::tell_steps_apart)
  std::uint64_t bytes = 0;
  bool is_same_call(const Description& other) const {
    return bytes == other.bytes && root == other.root && collective == other.collective &&
           operation == other.operation && element == other.element;
  }
};
inline Description describe(const Call& call, MPI_Count bytes) {
  Description made;
  made.collective = static_cast<std::uint8_t>(call.collective);
  made.root = has_root(call.collective) ? call.root : -1;
  made.bytes = static_cast<std::uint64_t>(bytes);
  if (call.operation != nullptr) {
    made.operation = static_cast<std::uint8_t>(call.operation->builtin);
    made.element = static_cast<std::uint8_t>(call.send.type->basic);
  }
  return made;
}
/// Whether a rank publishes an entry in a call of one chunk.
bool publishes(const Call& call, int rank);
/// The ranks that a rank reads in a call of one chunk, possibly including itself: from first to before end.
struct RankRange {
  int first, end;
};
RankRange ranks_read(const Call& call, int rank, int size);

/// Entries of a rank, of which each holds the data of one number. A rank that only publishes may be this many calls ahead of
/// the others; where ranks share processors, each wait costs them a turn (doc/adr/0023).
inline constexpr Number ring_depth = 128;
/// Flags of results. A rank raises them in the order of numbers, so one that a later number has raised tells that the
/// earlier result was there, too. A rank that ends a call without its result has met an error that all who read it meet, or has
/// ended the area.
inline constexpr Number result_flags = 16;
/// Data of up to this many bytes lies in the entry.
inline constexpr MPI_Count inline_bytes = 96;
/// Longer data of up to this many bytes lies in a piece.
inline constexpr MPI_Count piece_bytes = 1024;

/// Slices are filled by streaming stores if cached ones take more than so many times as long (doc/adr/0025).
inline constexpr float stores_factor = 1.3f;

struct alignas(128) Entry {
  queue::SequenceFlag<> flag;
  Number finished; ///< as the part's flag was when this entry was written
  Description description;
  union {
    std::byte payload[inline_bytes];
    segment::Offset data; ///< Where::elsewhere
  };
};
static_assert(sizeof(Entry) == 128 && offsetof(Entry, payload) % 16 == 0);

/// Why an area cannot be used any more: two ranks call different collectives under one number, a rank has failed, or one has met an
/// error between the phases of a call in levels. Ranks are those of the communicator.
struct Defect {
  Description description{}, other{}; ///< `other` names no collective if all that is known is that it differs
  std::int32_t rank = -1;
  std::int32_t other_rank =
      -1; ///< -1: `rank` has failed; gave_up: it has met an error in the call `description`
};
inline constexpr std::int32_t gave_up = -2;

/// What one rank owns of the area. All zero at first: number 1 is the first.
struct AreaPart {
  alignas(128) queue::SequenceFlag<> finished;
  /// How many other members have freed the communicator and will not read this part again.
  alignas(64) base::Atomic<std::uint32_t> left;
  /// 1 once this rank has found a defect, or heard of one: the others stop waiting for it.
  base::Atomic<std::uint32_t> broken;
  Defect defect; ///< written before `broken`
  /// 1 while this rank declares numbers as finished of which it will publish failures.
  base::Atomic<std::uint32_t> failing;
  Entry entries[ring_depth];
  struct alignas(64) {
    queue::SequenceFlag<> flag;
  } results[result_flags];
  alignas(128) std::byte pieces[Pieces::bytes];
};
static_assert(sizeof(AreaPart) <= segment::area_part_bytes);

/// A member as the others see it.
struct AreaMember {
  object::ProcessId process{};
  AreaPart* part = nullptr;
  segment::Doorbell* doorbell = nullptr; ///< null: it never sleeps (tests)
  Number finished = 0;                   ///< it has finished this number at least
  std::uint16_t node = 0;                ///< the NUMA node on which it runs; Location::several: unknown
  int rank = 0;                          ///< in the communicator
};

/// One rank's side of an area. If it has no memory for a slice, its entry says so, and every rank that needs its data
/// fails as well.
class Area {
public:
  /// `base` is where offsets begin. `slices` are the process's own and outlive the area, and so do `counters`, if any.
  Area(std::vector<AreaMember> members, int rank, std::byte* base, Slices& slices,
       segment::Counters* counters = nullptr);
  ~Area();
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  /// The rank that a member has in the communicator; the ranks of an area on one of several machines are numbered by themselves.
  int rank_in_communicator(int rank) const { return members_[static_cast<std::size_t>(rank)].rank; }

  /// Number of NUMA nodes on which the ranks run.
  int nodes() const { return nodes_; }
  std::uint16_t node_of(int rank) const { return members_[static_cast<std::size_t>(rank)].node; }
  /// The rank that reads for those of `node` what `root` publishes: `root` itself if it is there, else the lowest.
  int leader_of(std::uint16_t node, int root) const;

  // Calls take turns in the order of take_turn() (area_call.h).
  /// Takes the next `numbers` numbers, too; `first` is the first of them.
  std::uint64_t take_turn(Number numbers, Number& first) {
    first = next_;
    next_ += numbers;
    return turns_++;
  }
  bool is_turn(std::uint64_t turn) const { return turn == ended_; }
  /// Whether no call is under way. A blocking call then need not take turns, only a number.
  bool is_idle() const { return turns_ == ended_; }
  Number take_number() { return next_++; }
  void wait_for_turn(std::uint64_t turn) {
    if (!is_turn(turn)) [[unlikely]]
      wait_for_earlier(turn);
  }
  void end_turn() {
    end_publishing(ended_);
    ++ended_;
  }
  /// The call that was made last leaves before its turn, in an area that is broken.
  void take_turn_back() {
    --turns_;
    publishing_ = std::min(publishing_, turns_);
  }
  /// Whether all calls before this one have published everything.
  bool may_publish(std::uint64_t turn) const { return turn == publishing_; }
  /// This call has; the next one may begin to.
  void end_publishing(std::uint64_t turn) {
    if (turn == publishing_) ++publishing_;
  }
  /// While the returned object lives, the following questions allocate nothing.
  Slices::Look look() { return Slices::Look(slices_); }
  /// Whether prepare() would succeed without waiting.
  bool can_prepare(Number number, MPI_Count bytes);
  /// The same for the number that take_number() would return.
  bool can_prepare_next(MPI_Count bytes) { return can_prepare(next_, bytes); }
  /// Whether it would return without waiting, perhaps with an error.
  bool prepares_at_once(Number number, MPI_Count bytes);
  /// Where the data of this rank's entry goes, `bytes` at most slice_bytes. Waits until all ranks have finished the
  /// data that it replaces.
  Result prepare(Number number, MPI_Count bytes, std::byte*& at);
  /// Shows the entry to the others, and wakes those that wait for it. `finishes`: this rank reads nothing of the number.
  void publish(Number number, const Description& description, bool finishes = false);
  /// Like publish(), then finish(), for a rank that reads nothing.
  void finish_and_publish(Number number, const Description& description);
  /// Publishes an entry that has no data because there is no memory for it. Does nothing in a broken area.
  void publish_failure(Number number, const Description& description);
  /// Before a rank declares numbers as finished of which it has not published all, and after it has published the failures.
  void begin_failing() { own().failing.store_relaxed(1); }
  void end_failing();

  /// Waits for another rank's entry; `data` is what it has prepared. Fails with MPI_ERR_NO_MEM if that rank had no
  /// memory, and with MPI_ERR_OTHER if it calls another collective than `description`, or has found one that does. From
  /// then on the area is broken: every call fails.
  Result wait(int rank, Number number, const Description& description, const std::byte*& data);
  /// Whether wait() would succeed without waiting.
  bool is_readable(int rank, Number number, const Description& description) const {
    const Entry& from = entry(rank, number);
    return !broken_ && from.flag.has(number) && from.description.is_same_call(description) &&
           from.description.where != Where::no_memory;
  }
  /// Whether wait() would return without waiting, perhaps with an error.
  bool waits_at_once(int rank, Number number) const;
  /// Whether done() is true, or becomes so in less time than it takes to make a request and find it again. Does not wait where ranks
  /// share processors, nor where several threads may call MPI: they would wait for the lock meanwhile.
  template <class Done>
  bool happens_soon(Done&& done) const {
    if (done()) return true;
    if (looks_seldom_ || transport::EngineLock::threads_allowed()) return false;
    for (int check = 0; check < short_checks; ++check) {
      base::cpu_relax();
      if (done()) return true;
    }
    return false;
  }
  /// The rank's data of a number that wait() has returned, or that this rank has prepared.
  std::byte* data(int rank, Number number) const;
  /// The same for a number that wait() may not have returned, to be fetched ahead; nullptr while it is not there.
  const std::byte* find_data(int rank, Number number) const;
  /// The same once the rank has announced that it has changed the data.
  const std::byte* find_result(int rank, Number number) const;

  /// Counts bytes that this rank reads of what `rank` has published.
  void count_read(int rank, MPI_Count bytes) {
    if (counters_ == nullptr) return;
    counters_->area_bytes.bump_relaxed(static_cast<std::uint64_t>(bytes));
    if (node_of(rank) != node_of(rank_))
      counters_->area_bytes_of_other_nodes.bump_relaxed(static_cast<std::uint64_t>(bytes));
  }

  /// The second flag of a number: this rank has changed the data of its own entry in place.
  void publish_result(Number number);
  Result wait_for_result(int rank, Number number);
  /// Whether that would return without waiting, perhaps with an error.
  bool has_result(int rank, Number number) const;
  /// Waits until the rank has published `number`, or all others their results of the number before. Returns whether the former is
  /// true. An error ends the wait, too.
  bool wait_for_entry_or_results_before(int rank, Number number);

  /// This rank has finished reading this number and all earlier ones.
  void finish(Number number);
  /// Whether all other ranks have finished the number.
  bool all_finished(Number number);
  /// Whether this rank has, too, which reads its own data: then its entry, piece or slice of that number are free.
  bool is_over(Number number) { return finished_ >= number && all_finished(number); }
  /// Whether all ranks have finished all numbers so far.
  bool is_over() { return all_finished(next_ - 1); }

  /// Whether a rank has found a defect; broken() then fails with MPI_ERR_OTHER if ranks call different collectives, and
  /// with MPI_ERR_PROC_ABORTED if one has failed.
  bool is_broken() const;
  /// Whether this rank or `rank` has found a defect.
  bool is_broken_at(int rank) const {
    return broken_ || members_[static_cast<std::size_t>(rank)].part->broken.load_relaxed() != 0;
  }
  [[gnu::cold]] Result broken();
  /// Tells the area that `process` has failed: if it is a member, the area is broken, and nobody waits for it.
  [[gnu::cold]] void process_failed(const object::ProcessId& process);
  /// The same for a rank of the communicator that is not a member: the members would wait for what it sends to one of them.
  [[gnu::cold]] void rank_failed(int rank);
  /// This rank has met an error between the phases of a call, and takes no part in those that are left: nobody waits for it.
  [[gnu::cold]] void give_up(const Description& call);

  /// The stores that fill slices: how long they take depends on who has read the slice, so each collective has its own.
  /// Cached stores are tried first: where the ranks share a cache, they are hardly ever slower.
  copy::StorePolicy& stores(Collective collective) { return stores_[static_cast<std::size_t>(collective)]; }

  /// Whether every rank can read the private memory of all others: unknown until they have agreed on it (single_copy.h).
  enum class Reading : std::uint8_t { unknown, no, yes };
  Reading reading() const { return reading_; }
  void set_reading(Reading reading) { reading_ = reading; }

  /// The last call of a collective whose buffers have no gaps: what its choice depends on, and whether its algorithm has a
  /// straight form (straight.h). With blocks of different sizes (straight_parts.cpp), `bytes` is 0, and gaps do not matter.
  struct LastChoice {
    /// Compared as one word.
    struct Kind {
      datatype::Builtin operation = datatype::Builtin::user; ///< user: any of the program, or none
      bool in_place = false, recorded = false;
      Reading reading = Reading::unknown;
      bool operator==(const Kind& other) const {
        return std::bit_cast<std::uint32_t>(*this) == std::bit_cast<std::uint32_t>(other);
      }
    };
    MPI_Count bytes = -1, longest = 0;
    Kind kind;
    bool has_straight_form = false;
  };
  LastChoice& last_choice(Collective collective) {
    return last_choices_[static_cast<std::size_t>(collective)];
  }

  /// For tests: how often this process did not find at once what it needed.
  std::uint64_t waits() const { return waits_; }

private:
  static constexpr int short_checks = 16; ///< some 250 ns on an AMD EPYC; longer where a pause is
  Entry& entry(int rank, Number number) const {
    return members_[static_cast<std::size_t>(rank)].part->entries[number % ring_depth];
  }
  std::byte* data_of(Entry& entry) const {
    return entry.description.where == Where::here ? entry.payload : base_ + entry.data;
  }
  AreaPart& own() const { return *members_[static_cast<std::size_t>(rank_)].part; }
  template <class Done>
  void wait_until(Done&& done);
  void ring_all();
  /// What must be finished before the entry of `number` is written again.
  static Number replaced(Number number) { return number > ring_depth ? number - ring_depth : 0; }
  void wait_for_earlier(std::uint64_t turn);
  bool wait_for_entry(Number number);
  bool is_piece_free(MPI_Count bytes);
  bool may_use_slice(MPI_Count bytes) const;
  bool has_room(MPI_Count bytes);
  bool may_have_room(MPI_Count bytes);
  bool is_out_of_memory(MPI_Count bytes) const;
  std::byte* take_room(Number number, MPI_Count bytes);
  void raise_finished(Number number);
  void fetch_ahead(Number number, bool others_wait, bool in_entry);
  [[gnu::cold]] void tell_all(const Defect& defect);
  /// Whether the rank has finished the number without having published it: it makes another call, in which it only reads.
  bool has_gone_past(int rank, Number number) const;
  [[gnu::cold]] Result mismatch(const Description& ours, int rank, const Description& theirs);
  [[gnu::cold]] Result left_behind(const Description& ours, int rank);
  /// Another rank has found a defect; tells the remaining ones.
  [[gnu::cold]] void hear();

  std::vector<AreaMember> members_;
  int rank_;
  std::byte* base_;
  Slices& slices_;
  segment::Counters* counters_;
  int nodes_;
  Pieces pieces_;
  Number next_ = 1, finished_ = 0, known_finished_ = 0; ///< known_finished_: by all others
  std::uint64_t turns_ = 0, publishing_ = 0, ended_ = 0;
  bool broken_ = false;
  Reading reading_ = Reading::unknown;
  std::array<std::byte*, ring_depth> prepared_{}; ///< where the data of own entries is; null: there is none
  MPI_Count prepared_bytes_ = 0;                  ///< of the entry that was prepared last
  std::uint64_t waits_ = 0;
  mutable std::uint64_t looks_ = 0; ///< for entries that were not there
  bool looks_seldom_;               ///< a rank that waits lets others run after each look
  mutable Number missed_ = 0;       ///< an entry of rank `missed_of_` that it has gone past
  mutable int missed_of_ = -1;
  std::array<LastChoice, collective_count> last_choices_{};
  std::vector<copy::StorePolicy> stores_{collective_count,
                                         copy::StorePolicy(copy::Store::cached, stores_factor)};
};

/// The area of a communicator, which its first collective makes, if it need not send messages or `may_wait`; nullptr if
/// it has none, at all of its ranks alike: it has one rank, or more than most_area_ranks, or not all of them share this
/// machine's memory, or one of them had no memory left for it. If the ranks are on several machines, those of each get an
/// area in the same way, which the communicator's extension then has.
Result find_area(Communicator& communicator, bool may_wait, Area*& area);
inline constexpr int most_area_ranks = segment::most_area_ranks;

/// What a communicator, or a persistent call, keeps of its area. Destroying it frees the area without waiting for others.
struct AreaExtension : object::CommunicatorExtension {
  std::unique_ptr<Area> area; ///< of the ranks on this machine; null: there is none, at all of them alike
  Area* of_all = nullptr;     ///< `area`, if all ranks of the communicator are on this machine
  std::unique_ptr<const Machines> machines;        ///< null if all ranks are on one
  std::unique_ptr<const Machines> before_election; ///< recorded calls may still use them
  bool leaders_elected = false;                    ///< of the machines (leaders.h)
  /// Makes a further area, with slices of its own, for a call that does not follow the order of the communicator's: at
  /// all ranks, which may send messages for that. `bytes`: what a rank publishes in a call. The communicator has an area.
  virtual Result make_another(Communicator& communicator, MPI_Count bytes,
                              std::unique_ptr<AreaExtension>& made) = 0;
};

} // namespace near::coll
