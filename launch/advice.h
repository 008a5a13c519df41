// What to do about a program that cannot be started.
#pragma once

#include <string>

namespace near::launch {

/// Completes "cannot run 'script.py': Permission denied": "; it is a script: mpiexec -n N python3 script.py".
/// Empty when there is nothing to say. `directory` is where the program would have worked, "" for here.
std::string advice_on(const std::string& program, const std::string& directory);

} // namespace near::launch
