#include "launch/sink.h"

#include "launch/thread.h"
#include "os/descriptor.h"

namespace near::launch {

base::Result Sink::start(os::Bell& bell) {
  bell_ = &bell;
  return start_thread("the ranks' output", [this] { run(); });
}

void Sink::put(int descriptor, std::string_view text) {
  if (text.empty()) return;
  std::lock_guard guard(mutex_);
  if (broken_) return;
  bool first = waiting_.empty();
  waiting_[descriptor] += text;
  waiting_bytes_ += text.size();
  if (first) filled_.notify_one();
}

bool Sink::has_room() const {
  std::lock_guard guard(mutex_);
  return waiting_bytes_ < capacity;
}

bool Sink::idle() const {
  std::lock_guard guard(mutex_);
  return broken_ || (waiting_.empty() && !writing_);
}

bool Sink::broken() const {
  std::lock_guard guard(mutex_);
  return broken_;
}

std::string Sink::failure() const {
  std::lock_guard guard(mutex_);
  return failure_;
}

int Sink::failed_descriptor() const {
  std::lock_guard guard(mutex_);
  return failed_descriptor_;
}

void Sink::run() {
  std::map<int, std::string> batch;
  std::unique_lock lock(mutex_);
  for (;;) {
    filled_.wait(lock, [this] { return !waiting_.empty(); });
    batch.clear();
    batch.swap(waiting_);
    waiting_bytes_ = 0;
    writing_ = true;
    lock.unlock();
    bell_->ring();
    base::Result wrote;
    int last = -1;
    for (const auto& [descriptor, text] : batch) {
      last = descriptor;
      wrote = os::write_all(descriptor, text.data(), text.size());
      if (!wrote.ok()) break;
    }
    lock.lock();
    writing_ = false;
    if (!wrote.ok()) {
      broken_ = true;
      waiting_.clear();
      waiting_bytes_ = 0;
      if (!wrote.is(base::Code::gone)) {
        failure_ = base::failure_text();
        failed_descriptor_ = last;
      }
    }
    bell_->ring();
    if (!wrote.ok()) return;
  }
}

} // namespace near::launch
