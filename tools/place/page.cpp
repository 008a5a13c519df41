// The snapshot as one HTML page: the JSON document, and the script of page.html that draws it. The page
// loads nothing, and its policy forbids it to; text from the machine (names of files) appears in the page
// only as text.
#include "place/page_template.h"
#include "place/show.h"

namespace near::place {

static std::string page_with(const std::string& document) {
  constexpr std::string_view placeholder = "@SNAPSHOT@";
  auto at = page_template.find(placeholder);
  std::string page(page_template.substr(0, at));
  // A file name must not end the script element. '<' occurs only in strings, where it may be escaped.
  for (char letter : document)
    if (letter == '<')
      page += "\\u003c";
    else
      page += letter;
  return page.append(page_template.substr(at + placeholder.size()));
}

std::string page_of(const Snapshot& snapshot) { return page_with(json_of(snapshot, false)); }
std::string page_of(const Documents& machines) { return page_with(json_of(machines, false)); }

} // namespace near::place
