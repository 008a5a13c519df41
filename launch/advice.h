// Advice on a program that could not be started.
#pragma once

#include <string>

namespace near::launch {

/// Returns text to append to the message "cannot run 'script.py': Permission denied", such as "; it is a
/// script: mpiexec -n N python3 script.py". Empty if there is nothing to add. `directory` is the program's
/// working directory; "" for the current one.
std::string advice_on(const std::string& program, const std::string& directory);

} // namespace near::launch
