#include "launch/sink.h"

#include "os/descriptor.h"

namespace near::launch {

void Sink::start(int descriptor, os::Bell& bell) {
  descriptor_ = descriptor;
  bell_ = &bell;
  // Never joined: when mpiexec has to end, a reader that does not read must not hold it.
  std::thread([this] { run(); }).detach();
}

void Sink::put(std::string_view text) {
  if (text.empty()) return;
  std::lock_guard guard(mutex_);
  if (broken_) return;
  bool first = waiting_.empty();
  waiting_ += text;
  if (first) filled_.notify_one();
}

bool Sink::has_room() const {
  std::lock_guard guard(mutex_);
  return waiting_.size() < capacity;
}

bool Sink::idle() const {
  std::lock_guard guard(mutex_);
  return broken_ || (waiting_.empty() && !writing_);
}

bool Sink::broken() const {
  std::lock_guard guard(mutex_);
  return broken_;
}

void Sink::run() {
  std::string batch;
  std::unique_lock lock(mutex_);
  for (;;) {
    filled_.wait(lock, [this] { return !waiting_.empty(); });
    batch.clear();
    batch.swap(waiting_);
    writing_ = true;
    lock.unlock();
    bell_->ring();
    bool wrote = os::write_all(descriptor_, batch.data(), batch.size());
    lock.lock();
    writing_ = false;
    if (!wrote) {
      broken_ = true;
      waiting_.clear();
    }
    bell_->ring();
    if (!wrote) return;
  }
}

} // namespace near::launch
