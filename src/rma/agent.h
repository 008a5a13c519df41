// Work that a process does for the other processes of a window whenever it makes progress.
#pragma once

#include "p2p/p2p.h"

#include <memory>
#include <utility>

namespace near::rma {

/// Calls advance() of an object from the progress engine, from start() until stop() or until the object ends.
template <class Object>
class Agent {
public:
  explicit Agent(Object& object) : object_(object) {}
  ~Agent() { stop(); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  base::Result start() {
    auto task = std::make_unique<Task>(object_);
    Task* made = task.get();
    NEAR_TRY(p2p::make_scheduled(nullptr, std::move(task), false, request_));
    task_ = made;
    return {};
  }
  /// The progress engine destroys the task the next time it runs.
  void stop() {
    if (task_ == nullptr) return;
    std::exchange(task_, nullptr)->retire();
    MPI_Request handle = p2p::public_handle(*request_);
    p2p::free_request(handle, *request_);
  }

private:
  class Task final : public p2p::Schedule {
  public:
    explicit Task(Object& object) : object_(&object) {}
    bool advance(p2p::Completion& completion) override {
      completion = p2p::Completion{};
      if (object_ != nullptr) object_->advance();
      return object_ == nullptr;
    }
    void retire() { object_ = nullptr; }

  private:
    Object* object_;
  };

  Object& object_;
  Task* task_ = nullptr; ///< null before start()
  p2p::Request* request_ = nullptr;
};

} // namespace near::rma
