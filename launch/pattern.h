// Patterns of file names and of line prefixes, as in MPICH's launcher: %r is the rank, %h the name of the
// machine, %g and %p are the numbers of the process group and the proxy (always 0), and %% is a percent
// sign.
#pragma once

#include "base/result.h"

#include <string>

namespace near::launch {

/// Fails if '%' is followed by an unknown letter. `option` is for the message.
base::Result check_pattern(const std::string& option, const std::string& pattern);

std::string expand_pattern(const std::string& pattern, unsigned rank);

} // namespace near::launch
