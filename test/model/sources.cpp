#include "sources.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace near::model {

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Names before an opening parenthesis, except in comments; `called`: only those after `.`, `->` or `::`.
std::vector<std::string> functions_in(std::string_view line, bool called) {
  line = line.substr(0, line.find("//"));
  std::vector<std::string> names;
  for (std::size_t end = line.find('('); end != std::string_view::npos; end = line.find('(', end + 1)) {
    std::size_t begin = end;
    while (begin > 0 && in_word(line[begin - 1])) --begin;
    std::string_view before = line.substr(0, begin);
    if (begin == end ||
        (called && !before.ends_with('.') && !before.ends_with("->") && !before.ends_with("::")))
      continue;
    names.emplace_back(line.substr(begin, end - begin));
  }
  return names;
}

/// The operations of the facade other than relaxed ones, read from its text so that a new one cannot be
/// forgotten, and those of the doorbell's System.
std::set<std::string> ordering_operations() {
  std::set<std::string> names = {"barrier_all"};
  for (const std::string& line : lines_of(source_root() + "/src/base/atomic.h"))
    for (const std::string& name : functions_in(line, false)) {
      bool ordered = name.ends_with("_acquire") || name.ends_with("_release") || name.ends_with("_acq_rel") ||
                     name.find("fence") != std::string::npos;
      if (ordered && name.find("atomic_") == std::string::npos) names.insert(name);
    }
  return names;
}

std::vector<Ordering> find_orderings() {
  std::vector<Ordering> found;
  auto operations = ordering_operations();
  std::vector<std::filesystem::path> headers;
  for (const auto& entry : std::filesystem::directory_iterator(source_root() + "/src/queue"))
    headers.push_back(entry.path());
  headers.emplace_back(source_root() + "/src/base/seqlock.h");
  std::sort(headers.begin(), headers.end());
  for (const auto& header : headers) {
    std::map<std::string, int> numbers;
    unsigned number = 0;
    for (const std::string& line : lines_of(header)) {
      ++number;
      for (const std::string& operation : functions_in(line, true)) {
        if (operations.count(operation) == 0) continue;
        std::string name =
            header.stem().string() + "." + operation + "." + std::to_string(++numbers[operation]);
        const auto folder = header.parent_path().filename();
        found.push_back({name, (folder / header.filename()).string(), number, operation});
      }
    }
  }
  return found;
}

/// The names after the mark in a line.
std::string label_in(std::string_view line) {
  constexpr std::string_view mark = "SYNC: ";
  std::size_t begin = line.find(mark);
  if (begin == std::string_view::npos) return {};
  line = line.substr(begin + mark.size());
  std::size_t end = 0;
  while (end < line.size() && (in_word(line[end]) || line[end] == '-' || line[end] == ',')) ++end;
  return std::string(line.substr(0, end));
}

/// Whether the line ends a function at file level or in a class.
bool ends_function(std::string_view line) {
  if (line.starts_with("  ")) line = line.substr(2);
  return line == "}" || line == "};";
}

} // namespace

std::string source_root() { return NEAR_SOURCE_ROOT; }

const std::vector<Ordering>& orderings() {
  static const auto& all = *new std::vector<Ordering>(find_orderings());
  return all;
}

std::string label_at(std::string_view file, unsigned line) {
  static auto& files = *new std::map<std::string, std::vector<std::string>, std::less<>>;
  auto known = files.find(file);
  if (known == files.end()) known = files.emplace(file, lines_of(file)).first;
  const auto& lines = known->second;
  if (line == 0 || line > lines.size()) return {};
  // On the operation's line or in the comment above it, as in dev/check_layers.py.
  constexpr unsigned reach = 10;
  for (unsigned at = line; at > 0 && at + reach >= line; --at) {
    std::string label = label_in(lines[at - 1]);
    if (!label.empty()) return label;
    if (at != line && ends_function(lines[at - 1])) break;
  }
  return {};
}

} // namespace near::model
