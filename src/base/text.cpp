// The only unit that instantiates fmt's formatting engine, so that no other unit pays for compiling it.
#define FMT_HEADER_ONLY 1
// No format asks for a locale. With a fixed separator fmt does not refer to std::locale, so the library contains none.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format.h>

#include "base/result.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace near::base {
namespace {

thread_local std::string current_failure;

/// If there is no memory for the message, uses a short one that needs none: the failure is still reported and handled.
template <class Make>
void replace_text(std::string& text, Make make) noexcept {
  try {
    text = make();
  } catch (const std::bad_alloc&) {
    text.assign("out of memory"); // fits into any string
  } catch (const std::exception&) {
    text.assign("no message"); // a format that does not fit its arguments: the compiler refuses those
  }
}

} // namespace

std::string_view failure_text() { return current_failure; }

void keep_failure_text(std::string& into) noexcept {
  replace_text(into, [] { return current_failure; });
}

void set_failure_text(std::string text) { current_failure = std::move(text); }

std::string format_text(fmt::string_view form, fmt::format_args arguments) {
  return fmt::vformat(form, arguments);
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

Result vfail(int code, fmt::string_view form, fmt::format_args arguments) {
  replace_text(current_failure, [&] { return fmt::vformat(form, arguments); });
  return Result(code);
}

Result fail_system(std::string_view call, int error, std::string_view what_was_tried) {
  char text[128];
  const char* const reason = strerror_r(error, text, sizeof text);
  replace_text(current_failure, [&] {
    return what_was_tried.empty() ? fmt::format("{}: {}", call, reason)
                                  : fmt::format("{}: {} ({})", call, reason, what_was_tried);
  });
  return Result(Code::system);
}

namespace {

/// The length in bytes of the UTF-8 character at the beginning of `text`; 0 if there is none, or if it is a
/// control character.
std::size_t character_of(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(1);
  bool control = first == 0xc2 && second < 0xa0; // C1, of which 0x9b alone starts a command
  bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  bool beyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return control || overlong || beyond ? 0 : length;
}

} // namespace

std::string printable(std::string_view text, bool lines) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = lines && text[0] == '\n' ? 1 : character_of(text);
    if (length == 0) {
      shown += fmt::format("\\{:03o}", static_cast<unsigned char>(text[0]));
      length = 1;
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::optional<std::string_view> find_variable(char** environment, std::string_view name) {
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view row(*entry);
    if (row.size() > name.size() && row.starts_with(name) && row[name.size()] == '=')
      return row.substr(name.size() + 1);
  }
  return std::nullopt;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table, because swapping neighbours looks back two rows.
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

} // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (auto candidate : candidates) {
    std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view before) {
  auto nearest = nearest_word(word, candidates);
  return nearest.empty() ? std::string() : format("; did you mean {}{}?", before, nearest);
}

} // namespace near::base
