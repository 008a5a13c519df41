// See area.h.
#include "coll/shared/area.h"

#include "coll/registry.h"
#include "p2p/request.h"
#include "transport/competition.h"
#include "transport/doorbell.h"
#include "transport/registry.h"

#include <algorithm>

namespace near::coll {
namespace {

/// Checks of a flag before a wait is set up: some 50 to 150 us; fewer with a short NEAR_SPIN, none with 0.
constexpr std::uint64_t most_checks = 4096, check_ns = 16, checks_between_polls = 16;
/// Bytes of data in an entry's first line.
constexpr MPI_Count first_line_bytes = base::cache_line - offsetof(Entry, payload);
/// Shorter slices gain nothing from being fetched if other ranks wait for them already (doc/adr/0020). Bytes.
constexpr MPI_Count least_fetched = 2 << 10;
/// A rank that waits for an entry looks after so many fruitless looks whether its owner has gone past it, not earlier: the owner is
/// about to write those lines. Where ranks share processors, there are few looks.
constexpr std::uint64_t looks_between = 64, looks_between_shared = 4;
/// How many numbers ahead an entry is fetched if another rank may wait for the next one.
constexpr Number far_ahead = 4;

int count_nodes(const std::vector<AreaMember>& members) {
  std::vector<std::uint16_t> nodes;
  for (const AreaMember& member : members)
    if (std::find(nodes.begin(), nodes.end(), member.node) == nodes.end()) nodes.push_back(member.node);
  return static_cast<int>(nodes.size());
}

} // namespace

bool publishes(const Call& call, int rank) {
  switch (call.collective) {
  case Collective::broadcast:
  case Collective::scatter:
  case Collective::scatterv: return rank == call.root;
  case Collective::reduce:
  case Collective::gather:
  case Collective::gatherv: return rank != call.root;
  default: return true;
  }
}

RankRange ranks_read(const Call& call, int rank, int size) {
  switch (call.collective) {
  case Collective::broadcast:
  case Collective::scatter:
  case Collective::scatterv: return {call.root, call.root + 1};
  case Collective::reduce:
  case Collective::gather:
  case Collective::gatherv: return {0, rank == call.root ? size : 0};
  case Collective::scan:
  case Collective::exscan: return {0, rank};
  default: return {0, size};
  }
}

Area::Area(std::vector<AreaMember> members, int rank, std::byte* base, Slices& slices,
           segment::Counters* counters)
    : members_(std::move(members)), rank_(rank), base_(base), slices_(slices), counters_(counters),
      nodes_(count_nodes(members_)), looks_seldom_(ranks_share_processors()) {}

int Area::leader_of(std::uint16_t node, int root) const {
  if (node_of(root) == node) return root;
  int rank = 0;
  while (node_of(rank) != node) ++rank;
  return rank;
}

Area::~Area() { slices_.give_back(*this); }

template <class Done>
void Area::wait_until(Done&& done) {
  if (done()) return;
  ++waits_;
  looks_seldom_ = ranks_share_processors() || transport::processor_is_wanted();
  if (!looks_seldom_ && !transport::EngineLock::threads_allowed()) {
    const std::uint64_t checks = std::min(most_checks, transport::wait_settings.spin_ns / check_ns);
    // Where there is other work, the loop of p2p is the better one.
    const std::uint32_t noted = transport::noted_progress;
    for (std::uint64_t check = 1; check <= checks && noted == transport::noted_progress; ++check) {
      if (done()) return;
      if (check % checks_between_polls == 0)
        p2p::progress();
      else
        base::cpu_relax();
    }
  }
  p2p::wait_until_stored(done);
}

void Area::ring_all() {
  for (const AreaMember& member : members_)
    if (member.doorbell != nullptr)
      transport::DoorbellCalls::ring_if_sleeping(member.doorbell->sleeping, member.doorbell->bell,
                                                 transport::wait_settings.fences);
}

bool Area::all_finished(Number number) {
  if (number <= known_finished_) [[likely]]
    return true;
  Number least = ~Number{0};
  for (int i = 0; i < size(); ++i) {
    AreaMember& member = members_[static_cast<std::size_t>(i)];
    if (i == rank_) continue;
    if (member.finished < number) member.finished = std::max(member.finished, member.part->finished.value());
    if (member.finished < number) return false;
    least = std::min(least, member.finished);
  }
  known_finished_ = least;
  return true;
}

bool Area::is_broken() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const AreaMember& member) { return member.part->broken.load_relaxed() != 0; });
}

void Area::wait_for_earlier(std::uint64_t turn) {
  wait_until([this, turn] { return is_turn(turn); });
}

bool Area::is_piece_free(MPI_Count bytes) {
  return bytes <= piece_bytes && is_over(pieces_.next(static_cast<std::size_t>(bytes)).before);
}

/// Whether data may lie in a slice. Data that would lie in a piece may if no piece is free, but only where slices are filled:
/// a rank with a processor of its own waits, since the others are about to read a piece, and the start of a persistent call
/// makes no slices.
bool Area::may_use_slice(MPI_Count bytes) const { return bytes > piece_bytes || slices_.packs(); }

/// Whether there is room for data of so many bytes, of the next number, without a wait.
bool Area::has_room(MPI_Count bytes) {
  return bytes <= inline_bytes || is_piece_free(bytes) ||
         (may_use_slice(bytes) && slices_.can_take(*this, static_cast<std::size_t>(bytes)));
}

/// Whether take_room() is worth another try.
bool Area::may_have_room(MPI_Count bytes) {
  return is_piece_free(bytes) || (may_use_slice(bytes) && slices_.any_free(static_cast<std::size_t>(bytes)));
}

/// Whether no wait would help.
bool Area::is_out_of_memory(MPI_Count bytes) const {
  return bytes > piece_bytes && slices_.exhausted(static_cast<std::size_t>(bytes));
}

/// A piece or slice for the data of this number; nullptr if none is free.
std::byte* Area::take_room(Number number, MPI_Count bytes) {
  const auto needed = static_cast<std::size_t>(bytes);
  if (is_piece_free(bytes)) {
    std::byte* const piece = own().pieces + pieces_.next(needed).offset;
    pieces_.take(needed, number);
    return piece;
  }
  return may_use_slice(bytes) ? slices_.take(*this, number, needed) : nullptr;
}

bool Area::can_prepare(Number number, MPI_Count bytes) {
  return !broken_ && is_over(replaced(number)) && has_room(bytes);
}

bool Area::prepares_at_once(Number number, MPI_Count bytes) {
  if (broken_ || is_broken()) [[unlikely]]
    return true;
  return is_over(replaced(number)) && (has_room(bytes) || is_out_of_memory(bytes));
}

/// Waits until the entry may be written. False if the area is broken.
bool Area::wait_for_entry(Number number) {
  if (broken_) [[unlikely]]
    return false;
  if (all_finished(replaced(number))) return true;
  wait_until([this, number] { return all_finished(replaced(number)) || is_broken(); });
  return all_finished(replaced(number));
}

Result Area::prepare(Number number, MPI_Count bytes, std::byte*& at) {
  if (!wait_for_entry(number)) [[unlikely]]
    return broken();
  std::byte*& prepared = prepared_[number % ring_depth];
  prepared_bytes_ = bytes;
  if (bytes <= inline_bytes) {
    at = prepared = entry(rank_, number).payload;
    return {};
  }
  at = prepared = take_room(number, bytes);
  while (at == nullptr && !is_out_of_memory(bytes)) {
    wait_until([this, bytes] { return may_have_room(bytes) || is_broken(); });
    at = prepared = take_room(number, bytes);
    if (at == nullptr && is_broken()) return broken();
  }
  if (at == nullptr)
    return base::fail(MPI_ERR_NO_MEM,
                      "no shareable memory for {} bytes in which ranks exchange data of collectives", bytes);
  return {};
}

void Area::publish(Number number, const Description& description, bool finishes) {
  Entry& mine = entry(rank_, number);
  const std::byte* prepared = prepared_[number % ring_depth];
  mine.finished = finishes ? number : finished_;
  mine.description = description;
  if (prepared == nullptr) {
    mine.description.where = Where::no_memory;
  } else if (prepared != mine.payload) {
    mine.description.where = Where::elsewhere;
    mine.data = static_cast<segment::Offset>(prepared - base_);
  }
  NEAR_KILL_POINT("entry-written");
  mine.flag.raise(number);
  NEAR_KILL_POINT("entry-raised");
  if (finishes) raise_finished(number);
  ring_all();
  if (prepared == nullptr) return;
  const auto collective = static_cast<Collective>(description.collective);
  const bool others_wait =
      description.root >= 0 || collective == Collective::scan || collective == Collective::exscan;
  fetch_ahead(number, others_wait, prepared == mine.payload);
}

void Area::raise_finished(Number number) {
  finished_ = number;
  NEAR_KILL_POINT("entry-read");
  own().finished.raise(number);
}

void Area::finish_and_publish(Number number, const Description& description) {
  publish(number, description, true);
  transport::wake_waiting_threads(); // one may wait for a slice
}

/// Fetches for writing what this rank will write soon (doc/adr/0020), as much as it has written for `number`. If all
/// ranks wait for each other, they wait for the next entry only after this one. Otherwise, with a root or in a scan, some
/// may wait for it already (`others_wait`), and a line for which another rank waits is better left alone.
void Area::fetch_ahead(Number number, bool others_wait, bool in_entry) {
  base::fetch_for_writing(&entry(rank_, number + (others_wait ? far_ahead : 1)));
  if (in_entry) {
    if (prepared_bytes_ <= first_line_bytes) return;
    const auto* next = reinterpret_cast<const std::byte*>(&entry(rank_, number + 1));
    base::fetch_for_writing(next + base::cache_line);
  } else if (prepared_bytes_ <= piece_bytes) {
    const auto bytes = static_cast<std::size_t>(prepared_bytes_);
    if (!others_wait) base::fetch_for_writing(own().pieces + pieces_.next(bytes).offset, bytes);
  } else if (!others_wait || prepared_bytes_ >= least_fetched) {
    slices_.fetch_next();
  }
}

void Area::end_failing() {
  // SYNC: area-failing. Release: the failures have been published.
  own().failing.store_release(0);
}

void Area::publish_failure(Number number, const Description& description) {
  if (!wait_for_entry(number)) return hear();
  prepared_[number % ring_depth] = nullptr;
  publish(number, description);
}

std::byte* Area::data(int rank, Number number) const {
  if (rank == rank_) return prepared_[number % ring_depth];
  return data_of(entry(rank, number));
}

bool Area::has_gone_past(int rank, Number number) const {
  const AreaPart& part = *members_[static_cast<std::size_t>(rank)].part;
  // A rank publishes a number before it declares it as finished, except when it fails.
  // SYNC: area-failing. Acquire: if it is over, the failures are there.
  const bool finished = part.finished.has(number) && part.failing.load_acquire() == 0;
  return finished &&
         !entry(rank, number).flag.has(number); // after the other looks, which say that it would be there
}

bool Area::waits_at_once(int rank, Number number) const {
  if (entry(rank, number).flag.has(number) || is_broken_at(rank)) return true;
  if (missed_ == number && missed_of_ == rank) return true;
  if (++looks_ % (looks_seldom_ ? looks_between_shared : looks_between) != 0 || !has_gone_past(rank, number))
    return false;
  missed_ = number; // whoever is told that may not find anything else at its next look
  missed_of_ = rank;
  return true;
}

Result Area::wait(int rank, Number number, const Description& description, const std::byte*& at) {
  if (broken_) [[unlikely]]
    return broken();
  Entry& from = entry(rank, number);
  AreaMember& member = members_[static_cast<std::size_t>(rank)];
  if (!from.flag.has(number)) {
    wait_until([&] { return waits_at_once(rank, number); });
    if (!from.flag.has(number)) [[unlikely]]
      return is_broken_at(rank) ? broken() : left_behind(description, rank);
  }
  member.finished = std::max(member.finished, from.finished);
  if (!from.description.is_same_call(description)) [[unlikely]]
    return mismatch(description, rank, from.description);
  if (from.description.where == Where::no_memory) [[unlikely]]
    return base::fail(MPI_ERR_NO_MEM, "rank {} has no memory in which to exchange data of a collective",
                      rank_in_communicator(rank));
  at = data_of(from);
  return {};
}

void Area::publish_result(Number number) {
  own().results[number % result_flags].flag.raise(number);
  ring_all();
  base::fetch_for_writing(&own().results[(number + 1) % result_flags]);
}

bool Area::has_result(int rank, Number number) const {
  const AreaPart& part = *members_[static_cast<std::size_t>(rank)].part;
  return part.results[number % result_flags].flag.has(number) || is_broken_at(rank);
}

const std::byte* Area::find_data(int rank, Number number) const {
  Entry& from = entry(rank, number);
  return from.flag.has(number) && from.description.where != Where::no_memory ? data_of(from) : nullptr;
}

const std::byte* Area::find_result(int rank, Number number) const {
  const AreaPart& part = *members_[static_cast<std::size_t>(rank)].part;
  return part.results[number % result_flags].flag.has(number) ? find_data(rank, number) : nullptr;
}

Result Area::wait_for_result(int rank, Number number) {
  wait_until([&] { return has_result(rank, number); });
  const AreaPart& part = *members_[static_cast<std::size_t>(rank)].part;
  return part.results[number % result_flags].flag.has(number) ? Result{} : broken();
}

bool Area::wait_for_entry_or_results_before(int rank, Number number) {
  auto are_results_there = [&] {
    for (int other = 0; other < size(); ++other)
      if (other != rank_ && !has_result(other, number - 1)) return false;
    return true;
  };
  bool published = false;
  wait_until([&] {
    published = waits_at_once(rank, number);
    return published || are_results_there();
  });
  return published;
}

void Area::finish(Number number) {
  raise_finished(number);
  ring_all();
  transport::wake_waiting_threads(); // one may wait for a slice
}

} // namespace near::coll
