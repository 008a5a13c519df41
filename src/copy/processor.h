// What is known of processors by their names, where no feature tells.
#pragma once

namespace near::copy {

/// The family of an x86 processor by AMD: 25 for Zen 3 and Zen 4, 26 for Zen 5. 0 for all others.
unsigned amd_family();

} // namespace near::copy
