// Patterns of file names and of what a line begins with, as MPICH's launcher has them: %r is the rank, %h the
// machine's name, %g and %p the numbers of process group and proxy, of which there is one each (0); %% is a
// percent sign.
#pragma once

#include "base/result.h"

#include <string>

namespace near::launch {

/// Fails on a letter behind '%' that means nothing. `option` is for the message.
base::Result check_pattern(const std::string& option, const std::string& pattern);

std::string expand_pattern(const std::string& pattern, unsigned rank);

} // namespace near::launch
