// Unpredictable random bytes.
#pragma once

#include "base/result.h"

#include <cstddef>

namespace near::os {

using base::Result;

/// Fills memory with the kernel's random bytes. Fails with Code::system if the kernel has none.
Result fill_random(void* at, std::size_t bytes);

} // namespace near::os
