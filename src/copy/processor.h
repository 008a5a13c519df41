// What is known about processors by their names, if no feature flag tells.
#pragma once

namespace near::copy {

/// AMD's family number of an x86 processor: 25 for Zen 3 and Zen 4, 26 for Zen 5. 0 for all others.
unsigned amd_family();

} // namespace near::copy
