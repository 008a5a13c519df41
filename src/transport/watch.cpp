// Words in shared memory that waiting threads watch.
#include "transport/transport.h"

namespace near::transport {
namespace {

Watch* newest = nullptr;              ///< changed under the engine lock
base::Atomic<std::uint32_t> count{0}; ///< of watches; read without the engine lock

} // namespace

Watch::Watch(bool (*changed)(void*), void* argument)
    : changed_(changed), argument_(argument), previous_(newest) {
  if (previous_ != nullptr) previous_->next_ = this;
  newest = this;
  count.store_relaxed(count.load_relaxed() + 1);
}

Watch::~Watch() {
  (next_ != nullptr ? next_->previous_ : newest) = previous_;
  if (previous_ != nullptr) previous_->next_ = next_;
  count.store_relaxed(count.load_relaxed() - 1);
}

bool Watch::exists() { return count.load_relaxed() != 0; }

bool Watch::any_changed() {
  for (Watch* each = newest; each != nullptr; each = each->previous_)
    if (each->changed_(each->argument_)) return true;
  return false;
}

} // namespace near::transport
