// An error of a call that goes on, since other ranks rely on this rank's part in the rest of it.
#pragma once

#include "base/result.h"

#include <string>
#include <utility>

namespace near::coll {

class KeptError {
public:
  /// Keeps the first error, with its text.
  void note(base::Result result) {
    if (result.ok() || !first_.ok()) return;
    first_ = result;
    base::keep_failure_text(text_);
  }
  /// Returns it, and forgets it: a persistent call may be started again.
  base::Result take() {
    const base::Result first = std::exchange(first_, {});
    return first.ok() ? first : base::fail(first.code(), "{}", text_);
  }

private:
  base::Result first_;
  std::string text_;
};

} // namespace near::coll
