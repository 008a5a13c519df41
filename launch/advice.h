// Advice on a program that could not be started.
#pragma once

#include <string>

namespace near::launch {

/// Returns what to add to the message "cannot run 'script.py': Permission denied", such as "; it is a
/// script: mpiexec -n N python3 script.py". Empty when there is nothing to add. `directory` is the working
/// directory of the program; "" for the current one.
std::string advice_on(const std::string& program, const std::string& directory);

} // namespace near::launch
