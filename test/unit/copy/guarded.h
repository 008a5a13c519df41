// Memory between two inaccessible pages.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <sys/mman.h>
#include <unistd.h>

/// `bytes`, rounded up to whole pages, between two pages; reading or writing these ends the process.
class Guarded {
public:
  explicit Guarded(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (bytes + page - 1) / page * page;
    mapped_ = bytes_ + 2 * page;
    void* all = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<std::byte*>(all);
    if (mprotect(begin(), bytes_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~Guarded() { munmap(all_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::byte* begin() { return all_ + (mapped_ - bytes_) / 2; }
  std::byte* end() { return begin() + bytes_; }
  std::size_t size() const { return bytes_; }

private:
  std::byte* all_ = nullptr;
  std::size_t bytes_ = 0, mapped_ = 0;
};
