#include "launch/input.h"

#include "launch/thread.h"
#include "os/descriptor.h"
#include "os/memory.h"

#include <algorithm>
#include <new>

namespace near::launch {
namespace {

constexpr std::uint64_t most_kept = 64u << 20;
constexpr std::uint64_t least_kept = 64u << 10;

} // namespace

base::Result Input::add(unsigned rank, int& read_end) {
  int write_end = -1;
  NEAR_TRY(os::make_input_pipe(read_end, write_end));
  readers_.push_back({write_end, rank, 0});
  return {};
}

base::Result Input::start() {
  if (readers_.empty()) return {};
  // Its pages are allocated on first use, and are few as long as no rank lags behind.
  for (auto bytes = most_kept; kept_ == nullptr; bytes /= 2) {
    if (bytes < least_kept)
      return base::fail(base::Code::limit, "no memory for the ranks' input (ulimit -v)");
    kept_.reset(new (std::nothrow) char[bytes]);
    capacity_ = bytes;
  }
  return start_thread("the ranks' input", [this] { carry(); });
}

Input::Hold Input::hold() const {
  std::lock_guard guard(mutex_);
  return hold_;
}

void Input::tell(const Hold& hold) {
  std::lock_guard guard(mutex_);
  hold_ = hold;
}

void Input::carry() {
  std::vector<os::Outlet> outlets;
  for (bool ended = false; !readers_.empty();) {
    auto slowest =
        std::min_element(readers_.begin(), readers_.end(),
                         [](const Reader& one, const Reader& other) { return one.taken < other.taken; });
    bool full = come_ - slowest->taken == capacity_;
    // Start again at the first pages when nothing is left to write.
    if (come_ == slowest->taken) {
      come_ = 0;
      for (auto& reader : readers_) reader.taken = 0;
    }
    tell({full && !ended, slowest->rank, slowest->taken});
    outlets.clear();
    for (const auto& reader : readers_) outlets.push_back({reader.pipe, reader.taken < come_, false, false});
    bool come = os::wait_for_transfer(ended || full ? -1 : 0, outlets);
    if (come) ended = !read();
    std::vector<Reader> staying;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      auto& reader = readers_[i];
      bool reads = !outlets[i].gone && (!outlets[i].ready || write(reader));
      if (reads && !(ended && reader.taken == come_))
        staying.push_back(reader);
      else
        os::close_descriptor(reader.pipe);
    }
    readers_ = std::move(staying);
  }
  tell({});
}

/// Reads what is available. Returns false at the end of the input.
bool Input::read() {
  std::uint64_t least = come_;
  for (const auto& reader : readers_) least = std::min(least, reader.taken);
  std::uint64_t at = come_ % capacity_, room = std::min(capacity_ - (come_ - least), capacity_ - at);
  std::size_t bytes = 0;
  auto state = os::read_some(0, kept_.get() + at, room, bytes);
  if (state == os::Transfer::some) come_ += bytes;
  return state == os::Transfer::some || state == os::Transfer::nothing_now;
}

/// Writes as much as the rank takes without blocking. Returns false if it has closed its input.
bool Input::write(Reader& reader) const {
  std::uint64_t at = reader.taken % capacity_, waits = std::min(come_ - reader.taken, capacity_ - at);
  std::size_t bytes = 0;
  auto state = os::write_some(reader.pipe, kept_.get() + at, waits, bytes);
  if (state == os::Transfer::some) reader.taken += bytes;
  return state == os::Transfer::some || state == os::Transfer::nothing_now;
}

} // namespace near::launch
