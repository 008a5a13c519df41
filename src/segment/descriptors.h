// Memory files among the descriptors of other processes, which tools recognise by their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace near::segment {

/// The path "/proc/<process>/fd/<number>" of the memory file whose name is `name`, or begins with it and a space; "" if the process
/// has none open, or may not be inspected. `number` receives the number.
std::string path_of_memory_file(std::int32_t process, std::string_view name, int* number = nullptr);

} // namespace near::segment
