// Checks of values on the command line of `near`.
#pragma once

#include "base/knob.h"
#include "base/text.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <string>

namespace near::tools {

/// Replaces CLI11's own checks, whose messages contain the limits of the C++ type.
inline CLI::Validator number(const std::string& what) {
  auto check = [what](std::string& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    bool good = end != text.c_str() && *end == 0 && value > 0 && value < 1e9;
    return good ? std::string() : base::format("'{}' is not {}", text, what);
  };
  return {check, ""};
}

/// Checks the value of --job, whose number may be omitted: 0.
inline CLI::Validator job_number() {
  auto check = [](std::string& text) {
    std::int32_t value = 0;
    const char* last = text.data() + text.size();
    if (text.empty() || text == "true") { // what CLI11 passes without a value
      text = "0";
      return std::string();
    }
    auto [end, error] = std::from_chars(text.data(), last, value);
    bool good = error == std::errc{} && end == last && value > 0;
    return good ? std::string() : base::format("'{}' is not the process number of a job's mpiexec", text);
  };
  return {check, ""};
}

/// Checks a number of ranks or processors.
inline CLI::Validator count(const char* what, unsigned most) {
  auto check = [what, most](std::string& text) {
    unsigned value = 0;
    const char* last = text.data() + text.size();
    auto [end, error] = std::from_chars(text.data(), last, value);
    bool good = error == std::errc{} && end == last && value > 0 && value <= most;
    return good ? std::string() : base::format("'{}' is not a number of {} from 1 to {}", text, what, most);
  };
  return {check, ""};
}

/// Checks a rank.
inline CLI::Validator rank_number() {
  auto check = [](std::string& text) {
    std::uint32_t value = 0;
    const char* last = text.data() + text.size();
    auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc{} && end == last ? std::string() : base::format("'{}' is not a rank", text);
  };
  return {check, ""};
}

/// Checks a number of bytes, and replaces it by plain digits.
inline CLI::Validator bytes() {
  auto check = [](std::string& text) {
    std::uint64_t value = 0;
    if (!base::parse_bytes(text, value).ok() || value == 0)
      return base::format("'{}' is not a number of bytes, written such as 65536, 64k, 1m or 2g", text);
    text = std::to_string(value);
    return std::string();
  };
  return {check, ""};
}

/// Checks a share of pages.
inline CLI::Validator percentage() {
  auto check = [](std::string& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    bool good = end != text.c_str() && *end == 0 && value > 0 && value <= 100;
    return good ? std::string() : base::format("'{}' is not a percentage above 0 and up to 100", text);
  };
  return {check, ""};
}

} // namespace near::tools
