// The only unit that instantiates fmt's formatting engine, so that nothing else pays for compiling it.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

#include "base/result.h"
#include "base/text.h"

#include <cstring>

namespace near::base {
namespace {
thread_local std::string current_failure;
}

std::string_view failure_text() { return current_failure; }

void set_failure_text(std::string text) { current_failure = std::move(text); }

std::string format_text(fmt::string_view form, fmt::format_args arguments) {
  return fmt::vformat(form, arguments);
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

Result vfail(int code, fmt::string_view form, fmt::format_args arguments) {
  current_failure = fmt::vformat(form, arguments);
  return Result(code);
}

Result fail_system(std::string_view call, int error, std::string_view what_was_tried) {
  char text[128];
  current_failure = fmt::format("{}: {}", call, strerror_r(error, text, sizeof text));
  if (!what_was_tried.empty()) current_failure = fmt::format("{} ({})", current_failure, what_was_tried);
  return Result(Code::system);
}

std::optional<std::string_view> find_variable(char** environment, std::string_view name) {
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view row(*entry);
    if (row.size() > name.size() && row.starts_with(name) && row[name.size()] == '=')
      return row.substr(name.size() + 1);
  }
  return std::nullopt;
}

} // namespace near::base
