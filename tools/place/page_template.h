// The text of page.html, which the build embeds into the program.
#pragma once

#include <string_view>

namespace near::place {

/// page.html with "@SNAPSHOT@" where the JSON document belongs.
extern const std::string_view page_template;

} // namespace near::place
