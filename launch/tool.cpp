#include "launch/tool.h"

namespace near::launch {

using base::Code;
using base::fail;

Result split_words(const std::string& line, std::vector<std::string>& words, char comment) {
  std::vector<std::string> made;
  std::string word;
  bool inside = false; // a word has begun; it may be empty
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char letter = line[i];
    if (letter == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
      inside = true;
    } else if (quote != 0) {
      if (letter == quote)
        quote = 0;
      else
        word += letter;
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
      inside = true;
    } else if (letter == ' ' || letter == '\t' || letter == '\r') {
      if (inside) made.push_back(word);
      word.clear();
      inside = false;
    } else if (letter == comment && comment != 0 && !inside) {
      break;
    } else {
      word += letter;
      inside = true;
    }
  }
  if (quote != 0) return fail(Code::invalid, "a quote is not closed: {}", line);
  if (inside) made.push_back(word);
  words = std::move(made);
  return {};
}

Result read_tools(Parsing& at, const std::string& text) {
  auto not_understood = [&](const std::string& entry, const char* why) {
    return fail(Code::invalid, "{}: '{}': {}; expected COMMAND:RANKS, such as \"strace -c:0,2-3\"", at.option,
                entry, why);
  };
  std::string lines = text;
  for (auto& letter : lines)
    if (letter == '\n') letter = ';';
  for (auto entry : split(lines, ';')) {
    if (entry.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto colon = entry.rfind(':');
    if (colon == std::string::npos) return not_understood(entry, "the ranks are missing");
    auto ranks = entry.substr(colon + 1);
    if (auto architecture = ranks.find('@'); architecture != std::string::npos) ranks.resize(architecture);
    std::string mode;
    if (auto equals = ranks.find('='); equals != std::string::npos) {
      mode = ranks.substr(equals + 1);
      ranks.resize(equals);
    }
    while (!ranks.empty() && ranks.back() == ' ') ranks.pop_back();
    Tool tool;
    if (!NamedRanks::parse(ranks, tool.ranks))
      return not_understood(entry, "what follows the ':' is not a list of ranks");
    // "exclusive" means not for several ranks of one machine, which is always true for a single rank.
    if (!mode.empty() && (mode != "exclusive" || tool.ranks.several()))
      return fail(Code::unsupported,
                  "{}: '{}': the mode '{}' is not supported here; name the ranks that the command is for",
                  at.option, entry, mode);
    if (!split_words(entry.substr(0, colon), tool.words).ok())
      return not_understood(entry, "a quote is not closed");
    if (tool.words.empty()) return not_understood(entry, "the command is missing");
    at.command.tools.push_back(std::move(tool));
  }
  return {};
}

std::vector<std::string> arguments_for(const Command& command, const Application& application,
                                       unsigned rank) {
  std::vector<std::string> words;
  for (const auto& tool : command.tools)
    if (tool.ranks.has(rank)) words.insert(words.begin(), tool.words.begin(), tool.words.end());
  words.insert(words.end(), application.arguments.begin(), application.arguments.end());
  return words;
}

} // namespace near::launch
