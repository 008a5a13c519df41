// Operations under way: puts, gets and accumulates that have begun but are not yet complete.
//
// On one machine there are none: the origin moves the bytes itself, and handed calls (handed_calls.h) are
// counted separately. Targets reached only by messages or a network stand behind a RemoteAccess, whose
// operations complete later. Flushes and the ends of epochs wait for them, as does the request of a
// request-based call.
//
//   begun -> complete at the origin (its buffers may be used again) -> complete at the target
#pragma once

#include "p2p/request.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace near::object {
struct Window;
}

namespace near::rma {

using object::Result;

/// The first of several failures, with its message, for calls that continue after a failure.
class FirstFailure {
public:
  void note(Result result) {
    if (result.ok() || !first_.ok()) return;
    first_ = result;
    text_ = base::failure_text();
  }
  bool is(int error_class) const { return !first_.ok() && object::error_class(first_) == error_class; }
  Result tell() const {
    if (!first_.ok()) base::set_failure_text(text_);
    return first_;
  }

private:
  Result first_;
  std::string text_;
};

/// Where an operation has to be complete.
enum class Where : std::uint8_t { origin, target };

/// One operation under way. The code that moves its bytes calls finish() from the progress engine.
class PendingOperation {
public:
  PendingOperation(class UnderWay& counts, int rank) : counts_(counts), rank_(rank) {}
  /// Marks the operation as complete at the origin, or at both sides if `where` is the target. `error` is the
  /// class of a failure, after which nothing more will happen on either side. Redundant calls are ignored.
  void finish(Where where, int error = MPI_SUCCESS);
  bool is_complete(Where where) const { return where == Where::origin ? at_origin_ : at_target_; }
  int error() const { return error_; }
  /// The call that began the operation waits for it and returns its failure, so no later call does.
  void let_caller_tell() { caller_tells_ = true; }

private:
  UnderWay& counts_; ///< of the window, which outlives its operations
  int rank_;
  bool at_origin_ = false, at_target_ = false, caller_tells_ = false;
  int error_ = MPI_SUCCESS;
};

using Pending = std::shared_ptr<PendingOperation>;

/// A window's operations under way, counted by target.
class UnderWay {
public:
  /// For a window of `size` processes.
  explicit UnderWay(int size) : size_(size) {}
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  /// Begins a new operation on `rank`.
  Pending begin(int rank);
  /// Makes progress until no operation on `rank` is under way there. Returns the error class of the first
  /// failure since the last such call.
  Result wait(int rank, Where where, const object::Window& window);
  /// wait() for every target. Returns the first failure, after all waits.
  Result wait_all(Where where, const object::Window& window);

private:
  friend PendingOperation;
  struct Counts {
    std::uint32_t at_origin = 0, at_target = 0; ///< operations not complete there
    int error = MPI_SUCCESS;
    std::uint32_t incomplete(Where where) const { return where == Where::origin ? at_origin : at_target; }
  };
  int size_;
  std::vector<Counts> targets_; ///< by rank; empty until the first operation
};

/// Makes the request of a request-based call. It completes when the operation is complete at the origin, or
/// at once if `operation` is null.
Result make_request(const Pending& operation, object::Window& window, p2p::Request*& made);

} // namespace near::rma
