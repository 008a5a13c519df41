#include "memory/kept.h"

namespace near::memory {

void KeptBlocks::build() {
  bound_ = false;
  most_bytes_ = bytes_ = next_age_ = 0;
  live_.clear();
  kept_.clear();
  by_age_.clear();
  ages_.clear();
}

bool KeptBlocks::returned(std::byte* address, Block& block) {
  auto found = live_.find(address);
  if (found == live_.end()) return false;
  block = found->second;
  live_.erase(found);
  return true;
}

void KeptBlocks::keep(const Block& block) {
  Key key = key_of(block);
  kept_.emplace(key, block);
  ages_.emplace(block.address, next_age_);
  by_age_.emplace(next_age_++, key);
  bytes_ += block.bytes;
}

void KeptBlocks::drop(const Block& block) {
  auto age = ages_.find(block.address);
  by_age_.erase(age->second);
  ages_.erase(age);
  kept_.erase(key_of(block));
  bytes_ -= block.bytes;
}

bool KeptBlocks::take_oldest(Block& block) {
  if (by_age_.empty()) return false;
  block = kept_.find(by_age_.begin()->second)->second;
  drop(block);
  return true;
}

bool KeptBlocks::take(std::uint64_t bytes, std::size_t alignment, const Arena::Placing& placing,
                      bool promised, Block& block) {
  const std::uint64_t largest = bytes + bytes / 4;
  for (auto at = kept_.lower_bound({placing.node, placing.huge, bytes, nullptr}); at != kept_.end(); ++at) {
    const Block& each = at->second;
    if (each.placing.node != placing.node || each.placing.huge != placing.huge || each.bytes > largest)
      return false;
    if (reinterpret_cast<std::uintptr_t>(each.address) % alignment != 0) continue;
    if (each.promised && !promised) continue;
    block = each;
    drop(block);
    handed_out(block);
    return true;
  }
  return false;
}

} // namespace near::memory
