#include "place/maps.h"

#include "os/affinity.h"

#include <charconv>

namespace near::place {

using base::Code;
using base::fail;

namespace {

/// Removes and returns the part before `end`, and removes `end`; everything if there is no `end`.
std::string_view take(std::string_view& text, char end) {
  auto length = text.find(end);
  auto part = text.substr(0, length);
  text.remove_prefix(length == std::string_view::npos ? text.size() : length + 1);
  return part;
}

std::string_view take_word(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return take(text, ' ');
}

bool number(std::string_view text, std::uint64_t& value, int base = 10) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Decodes names: the kernel writes characters that would end a word as a backslash and three octal digits.
/// A backslash itself is not escaped.
std::string unescaped(std::string_view text, std::string_view escaped) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint64_t value = 0;
    if (text[i] == '\\' && i + 3 < text.size() && number(text.substr(i + 1, 3), value, 8) && value < 256 &&
        escaped.find(static_cast<char>(value)) != std::string_view::npos) {
      plain += static_cast<char>(value);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

Result not_understood(const char* file, std::size_t line, std::string_view text) {
  return fail(Code::invalid, "line {} of {} cannot be understood: '{}'", line, file, text);
}

bool parse_pair(std::string_view word, NumaLine& line) {
  auto key = take(word, '=');
  if (key == "file") {
    line.file = unescaped(word, "\n\t= ");
    return true;
  }
  std::uint64_t value = 0, node = 0;
  bool is_number = number(word, value);
  auto into = [&](std::uint64_t& field) {
    field = value;
    return is_number;
  };
  if (key.size() > 1 && key[0] == 'N' && number(key.substr(1), node)) {
    line.pages_on[static_cast<int>(node)] += value;
    return is_number && node < 1u << 16;
  }
  if (key == "kernelpagesize_kB") {
    line.page_bytes = value << 10;
    return is_number && value > 0;
  }
  if (key == "anon") return into(line.anonymous);
  if (key == "dirty") return into(line.dirty);
  if (key == "mapped") return into(line.mapped);
  if (key == "mapmax") return into(line.most_mappers);
  if (key == "swapcache") return into(line.swap_cache);
  return true;
}

bool parse_numa_line(std::string_view text, NumaLine& line) {
  if (!number(take_word(text), line.begin, 16)) return false;
  line.policy = take_word(text);
  // The names of two policies have two words.
  if (line.policy == "weighted" || text.starts_with('(')) line.policy += ' ' + std::string(take_word(text));
  if (line.policy.empty()) return false;
  while (!text.empty()) {
    auto word = take_word(text);
    if (word == "heap")
      line.heap = true;
    else if (word == "stack")
      line.stack = true;
    else if (word == "huge")
      line.huge = true;
    else if (word.find('=') != std::string_view::npos && !parse_pair(word, line))
      return false;
  }
  // Counts without a unit would be meaningless.
  return line.pages_on.empty() || line.page_bytes != 0;
}

/// "55d0-55d1 rw-p 00001000 fe:00 123   /path with spaces (deleted)"
bool parse_mapping(std::string_view text, SmapsEntry& entry) {
  auto range = take_word(text);
  auto begin = take(range, '-');
  if (!number(begin, entry.begin, 16) || !number(range, entry.end, 16) || entry.end <= entry.begin)
    return false;
  entry.permissions = take_word(text);
  if (entry.permissions.size() != 4 || !number(take_word(text), entry.offset, 16)) return false;
  entry.device = take_word(text);
  if (!number(take_word(text), entry.inode)) return false;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  entry.name = unescaped(text, "\n");
  return true;
}

/// "Rss:    4 kB". Values of other forms belong to keys that are not known.
bool parse_value(std::string_view key, std::string_view rest, SmapsEntry& entry) {
  if (key == "VmFlags") {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    entry.flags = rest;
    return true;
  }
  std::uint64_t* field = key == "KernelPageSize" ? &entry.page_bytes
                         : key == "Rss"          ? &entry.resident
                         : key == "Anonymous"    ? &entry.anonymous
                         : key == "Swap"         ? &entry.swapped
                                                 : nullptr;
  bool huge = key == "AnonHugePages" || key == "ShmemPmdMapped" || key == "FilePmdMapped";
  if (field == nullptr && !huge) return true;
  std::uint64_t value = 0;
  if (!number(take_word(rest), value) || take_word(rest) != "kB") return false;
  if (huge)
    entry.huge += value << 10;
  else
    *field = value << 10;
  return true;
}

} // namespace

BytesOn NumaLine::bytes_on() const {
  BytesOn bytes;
  for (auto [node, pages] : pages_on) bytes[node] = pages * page_bytes;
  return bytes;
}

Result parse_numa_maps(std::string_view text, std::vector<NumaLine>& lines) {
  std::vector<NumaLine> found;
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto row = take(text, '\n');
    NumaLine line;
    if (!parse_numa_line(row, line)) return not_understood("numa_maps", number, row);
    found.push_back(std::move(line));
  }
  lines = std::move(found);
  return {};
}

std::vector<int> nodes_of_policy(std::string_view policy) {
  auto colon = policy.rfind(':');
  if (colon == std::string_view::npos) return {};
  os::CpuSet listed; // the kernel writes sets of nodes like sets of processors
  if (!os::parse_cpus(policy.substr(colon + 1), listed).ok()) return {};
  auto members = listed.members();
  return {members.begin(), members.end()};
}

Result parse_smaps(std::string_view text, std::vector<SmapsEntry>& entries) {
  std::vector<SmapsEntry> found;
  for (std::size_t line = 1; !text.empty(); ++line) {
    auto row = take(text, '\n');
    auto rest = row;
    auto key = take(rest, ':');
    // Keys begin with a capital letter and have no hyphen; a mapping begins with two addresses.
    bool is_key = !key.empty() && key[0] >= 'A' && key[0] <= 'Z' && key.find(' ') == std::string_view::npos;
    if (!is_key) {
      SmapsEntry entry;
      if (!parse_mapping(row, entry)) return not_understood("smaps", line, row);
      found.push_back(std::move(entry));
    } else if (found.empty() || !parse_value(key, rest, found.back())) {
      return not_understood("smaps", line, row);
    }
  }
  entries = std::move(found);
  return {};
}

} // namespace near::place
