#include "launch/pattern.h"

#include "os/process.h"

namespace near::launch {

base::Result check_pattern(const std::string& option, const std::string& pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    std::string_view known = "rhgp%";
    ++i;
    if (i == pattern.size() || known.find(pattern[i]) == std::string_view::npos)
      return base::fail(base::Code::invalid, "{} {}: unknown escape '%{}'; %r is the rank, %h the machine",
                        option, pattern, i < pattern.size() ? pattern.substr(i, 1) : "");
  }
  return {};
}

std::string expand_pattern(const std::string& pattern, unsigned rank) {
  std::string made;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      made += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
    case 'r': made += std::to_string(rank); break;
    case 'h': made += os::machine_name(); break;
    case 'g':
    case 'p': made += '0'; break;
    default: made += pattern[i]; break;
    }
  }
  return made;
}

} // namespace near::launch
