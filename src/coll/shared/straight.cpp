// See straight.h.
#include "coll/shared/straight.h"

#include "coll/registry.h"
#include "coll/shared/area.h"
#include "coll/shared/exchange.h"
#include "copy/raw.h"

namespace near::coll {
namespace {

void put(std::byte* to, const std::byte* from, MPI_Count bytes) {
  if (to != from) copy::raw(to, from, static_cast<std::size_t>(bytes));
}

bool is_one_block(const Buffer& buffer) {
  return buffer.type == nullptr || (buffer.type->contiguous && copy::can_copy(buffer.kind));
}

/// The call at one rank. Its number is taken when this is made.
class Straight {
public:
  Straight(const Call& call, Area& area, MPI_Count bytes)
      : call_(call), area_(area), bytes_(bytes), description_(describe(call, bytes)),
        number_(area.take_number()) {}

  Result run() {
    const Result result = run_collective();
    if (!result.ok()) [[unlikely]]
      abandon();
    return result;
  }

private:
  bool is_root() const { return area_.rank() == call_.root; }
  /// The rank that is `step` behind this one: no two ranks begin with the same one.
  int after(int step) const {
    const int rank = area_.rank() + step;
    return rank < area_.size() ? rank : rank - area_.size();
  }
  std::byte* sent() const { return call_.send.contiguous_start(); }
  std::byte* received() const { return call_.receive.contiguous_start(); }
  /// A rank's block of a buffer.
  static std::byte* block_of(const Buffer& one, int rank) {
    return one.contiguous_start() + rank * one.count * one.type->extent;
  }

  template <class Fill>
  Result publish(MPI_Count bytes, Fill&& fill) {
    std::byte* at = nullptr;
    NEAR_TRY(area_.prepare(number_, bytes, at));
    fill(at);
    area_.publish(number_, description_);
    published_ = true;
    return {};
  }
  /// Of a rank that reads nothing. It has finished before it publishes, so the others are rung once.
  template <class Fill>
  Result only_publish(MPI_Count bytes, Fill&& fill) {
    std::byte* at = nullptr;
    NEAR_TRY(area_.prepare(number_, bytes, at));
    fill(at);
    area_.finish_and_publish(number_, description_);
    return {};
  }
  Result only_publish(const std::byte* data) {
    return only_publish(bytes_, [&](std::byte* at) { put(at, data, bytes_); });
  }
  Result read(int rank, const std::byte*& data) {
    NEAR_TRY(area_.wait(rank, number_, description_, data));
    area_.count_read(rank, bytes_);
    return {};
  }
  Result read_into(int rank, std::byte* to, MPI_Count offset = 0) {
    const std::byte* data = nullptr;
    NEAR_TRY(read(rank, data));
    put(to, data + offset, bytes_);
    return {};
  }
  Result finish() {
    area_.finish(number_);
    return {};
  }
  /// As the destructor of Exchange does: the others must not wait for this rank.
  [[gnu::cold]] void abandon() {
    area_.finish(number_);
    if (!published_ && publishes_) area_.publish_failure(number_, description_);
  }

  void combine(const std::byte* first, const std::byte* second, std::byte* to) const {
    Datatype& type = *call_.send.type;
    datatype::combine(*call_.operation, first, second, to, bytes_ / type.size, type);
  }
  /// A part for each other rank, as in scatter_shared() and alltoall_shared().
  void fill_parts(std::byte* at, MPI_Count stride) const {
    for (int to = 0; to < area_.size(); ++to)
      if (to != area_.rank()) put(at + to * stride, block_of(call_.send, to), bytes_);
  }

  Result run_collective() {
    switch (call_.collective) {
    case Collective::barrier: return barrier();
    case Collective::broadcast: return broadcast();
    case Collective::reduce: return reduce();
    case Collective::allreduce: return allreduce();
    case Collective::gather: return gather();
    case Collective::scatter: return scatter();
    case Collective::allgather: return allgather();
    default: return alltoall();
    }
  }

  Result barrier() {
    NEAR_TRY(publish(0, [](std::byte*) {}));
    const std::byte* nothing = nullptr;
    for (int step = 1; step < area_.size(); ++step) NEAR_TRY(read(after(step), nothing));
    return finish();
  }
  Result broadcast() {
    if (is_root()) return only_publish(received());
    publishes_ = false;
    NEAR_TRY(read_into(call_.root, received()));
    return finish();
  }
  Result reduce() {
    if (!is_root()) return only_publish(sent());
    publishes_ = false;
    const std::byte* data = nullptr;
    for (int step = 1; step < area_.size(); ++step) {
      NEAR_TRY(read(after(step), data));
      combine(data, step == 1 ? sent() : received(), received());
    }
    return finish();
  }
  /// In the order of ranks, as Vectors::fold().
  Result allreduce() {
    NEAR_TRY(publish(bytes_, [&](std::byte* at) { put(at, sent(), bytes_); }));
    const std::byte *first = nullptr, *data = nullptr;
    for (int rank = 0; rank < area_.size(); ++rank) {
      if (rank == area_.rank())
        data = area_.data(rank, number_);
      else
        NEAR_TRY(read(rank, data));
      if (rank == 0)
        first = data;
      else
        combine(data, rank == 1 ? first : received(), received());
    }
    return finish();
  }
  Result gather() {
    if (!is_root()) return only_publish(sent());
    publishes_ = false;
    put(block_of(call_.receive, call_.root), sent(), bytes_);
    for (int step = 1; step < area_.size(); ++step)
      NEAR_TRY(read_into(after(step), block_of(call_.receive, after(step))));
    return finish();
  }
  Result scatter() {
    const MPI_Count stride = part_stride(bytes_, area_.size());
    if (!is_root()) {
      publishes_ = false;
      NEAR_TRY(read_into(call_.root, received(), area_.rank() * stride));
      return finish();
    }
    NEAR_TRY(only_publish(stride * area_.size(), [&](std::byte* at) { fill_parts(at, stride); }));
    put(received(), block_of(call_.send, call_.root), bytes_);
    return {};
  }
  Result allgather() {
    NEAR_TRY(publish(bytes_, [&](std::byte* at) { put(at, sent(), bytes_); }));
    for (int step = 1; step < area_.size(); ++step)
      NEAR_TRY(read_into(after(step), block_of(call_.receive, after(step))));
    put(block_of(call_.receive, area_.rank()), sent(), bytes_);
    return finish();
  }
  Result alltoall() {
    const MPI_Count stride = part_stride(bytes_, area_.size());
    NEAR_TRY(publish(stride * area_.size(), [&](std::byte* at) { fill_parts(at, stride); }));
    for (int step = 1; step < area_.size(); ++step)
      NEAR_TRY(read_into(after(step), block_of(call_.receive, after(step)), area_.rank() * stride));
    put(block_of(call_.receive, area_.rank()), block_of(call_.send, area_.rank()), bytes_);
    return finish();
  }

  const Call& call_;
  Area& area_;
  const MPI_Count bytes_; ///< of a vector or block
  const Description description_;
  const Number number_;
  bool published_ = false, publishes_ = true;
};

bool is_served(Collective collective) {
  switch (collective) {
    using enum Collective;
  case barrier:
  case broadcast:
  case reduce:
  case allreduce:
  case gather:
  case scatter:
  case allgather:
  case alltoall: return true;
  default: return false;
  }
}

/// Whether the algorithm that is chosen is the one that Straight repeats. Programs make the same call again and again,
/// so the area keeps the last answer for each collective.
bool is_chosen(const Facts& facts, Area& area) {
  Area::LastChoice& last = area.last_choice(facts.collective);
  if (!(last.facts == facts)) [[unlikely]]
    last = {facts, find_short(facts) != nullptr};
  return last.is_short;
}

} // namespace

bool run_straight(const Call& call, Communicator& communicator, Result& result) {
  if (communicator.extension == nullptr || !is_served(call.collective)) return false;
  Area* const area = static_cast<AreaExtension&>(*communicator.extension).area.get();
  if (area == nullptr || !area->is_idle() || !is_one_block(call.send) || !is_one_block(call.receive))
    return false;
  Facts facts = facts_of(call, communicator.size);
  facts.area = true;
  facts.nodes = area->nodes();
  if (!is_chosen(facts, *area)) return false;
  (void)TagSpace::next(communicator); // as a rank whose buffer has gaps does
  result = Straight(call, *area, facts.bytes).run();
  return true;
}

} // namespace near::coll
