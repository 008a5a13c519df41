#include "memory/blocks.h"

namespace near::memory {

void Blocks::build(segment::Block* list, base::Atomic<std::uint32_t>* count) {
  list_ = list;
  count_ = count;
  next_ = 0;
  free_.clear();
  used_.clear();
}

bool Blocks::add(segment::Offset begin, std::uint64_t bytes, int node, segment::BlockUse use,
                 std::uint64_t promised) {
  if (is_full()) {
    used_.insert_or_assign(begin, Own{most, use});
    return false;
  }
  std::uint32_t index = next_;
  if (free_.empty()) {
    ++next_;
  } else {
    index = free_.back();
    free_.pop_back();
  }
  segment::Block& block = list_[index];
  block.begin.store_relaxed(begin);
  block.node.store_relaxed(node);
  block.use.store_relaxed(static_cast<std::uint32_t>(use));
  block.promised.store_relaxed(promised);
  block.bytes.store_relaxed(bytes);
  // SYNC: block-listed. Release: a tool that sees the count sees the block, in a page that exists. If an
  // entry is being reused, the tool may see old words together with new ones; then it attributes some pages
  // to the wrong node.
  count_->store_release(next_);
  used_.insert_or_assign(begin, Own{index, use});
  return true;
}

segment::Block* Blocks::listed(segment::Offset begin) const {
  auto found = used_.find(begin);
  return found != used_.end() && found->second.index != most ? list_ + found->second.index : nullptr;
}

void Blocks::populated(segment::Offset begin) {
  if (segment::Block* block = listed(begin); block != nullptr) block->promised.store_relaxed(0);
}

void Blocks::remove(segment::Offset begin) {
  auto found = used_.find(begin);
  if (found == used_.end()) return;
  if (segment::Block* block = listed(begin); block != nullptr) {
    block->bytes.store_relaxed(0);
    free_.push_back(found->second.index);
  }
  used_.erase(found);
}

void Blocks::change(segment::Offset begin, int node, segment::BlockUse use) {
  auto found = used_.find(begin);
  if (found == used_.end()) return;
  found->second.use = use;
  if (segment::Block* block = listed(begin); block != nullptr) {
    block->node.store_relaxed(node);
    block->use.store_relaxed(static_cast<std::uint32_t>(use));
  }
}

bool Blocks::is_not(segment::Offset begin, segment::BlockUse use) const {
  auto found = used_.find(begin);
  return found == used_.end() ? use == segment::BlockUse::allocated : found->second.use != use;
}

} // namespace near::memory
