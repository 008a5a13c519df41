// See under_way.h.
#include "rma/under_way.h"

#include "object/window.h"
#include "p2p/p2p.h"

#include <utility>

namespace near::rma {

void PendingOperation::finish(Where where, int error) {
  UnderWay::Counts& counts = counts_.targets_[static_cast<std::size_t>(rank_)];
  if (at_target_) return;
  if (error != MPI_SUCCESS) {
    where = Where::target;
    error_ = error;
    if (counts.error == MPI_SUCCESS && !caller_tells_) counts.error = error;
  }
  if (!at_origin_) {
    at_origin_ = true;
    --counts.at_origin;
  }
  if (where == Where::target) {
    at_target_ = true;
    --counts.at_target;
  }
}

Pending UnderWay::begin(int rank) {
  if (targets_.empty()) targets_.resize(static_cast<std::size_t>(size_));
  auto made = std::make_shared<PendingOperation>(*this, rank);
  Counts& counts = targets_[static_cast<std::size_t>(rank)];
  ++counts.at_origin;
  ++counts.at_target;
  return made;
}

Result UnderWay::wait(int rank, Where where, const object::Window& window) {
  if (targets_.empty()) return {};
  Counts& counts = targets_[static_cast<std::size_t>(rank)];
  if (counts.incomplete(where) != 0) p2p::wait_until([&] { return counts.incomplete(where) == 0; });
  const int error = std::exchange(counts.error, MPI_SUCCESS);
  if (error == MPI_SUCCESS) return {};
  return base::fail(error, "an operation on rank {} of {} failed", rank, object::describe(window));
}

Result UnderWay::wait_all(Where where, const object::Window& window) {
  FirstFailure failure;
  for (int rank = 0; rank < static_cast<int>(targets_.size()); ++rank)
    failure.note(wait(rank, where, window));
  return failure.tell();
}

namespace {

/// The schedule that the progress engine polls until the operation is complete at the origin.
class UntilComplete final : public p2p::Schedule {
public:
  explicit UntilComplete(Pending operation) : operation_(std::move(operation)) {}
  bool advance(p2p::Completion& completion) override {
    if (!operation_->is_complete(Where::origin)) return false;
    completion = p2p::Completion{};
    completion.error = operation_->error();
    return true;
  }

private:
  Pending operation_;
};

} // namespace

Result make_request(const Pending& operation, object::Window& window, p2p::Request*& made) {
  if (operation == nullptr) {
    made = p2p::finished_request();
    return made != nullptr ? Result() : p2p::make_completed(*window.communicator, p2p::Completion{}, made);
  }
  return p2p::make_scheduled(window.communicator, std::make_unique<UntilComplete>(operation), false, made);
}

} // namespace near::rma
