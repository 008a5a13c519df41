#include "base/log.h"

#include <unistd.h>

namespace near::base {
namespace {
// Never destroyed, because a rank may log warnings while the process runs its exit handlers.
std::string& speaker() {
  static std::string& text = *new std::string;
  return text;
}
Level threshold = Level::warning;
} // namespace

void set_speaker(std::string text) { speaker() = std::move(text); }
void set_level(Level at) { threshold = at; }
Level level() { return threshold; }

void write_line(Level at, std::string_view text) {
  std::string line = "near: ";
  if (!speaker().empty()) line += speaker() + ": ";
  if (at == Level::warning) line += "warning: ";
  if (at == Level::error) line += "error: ";
  line += text;
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    ssize_t wrote = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (wrote <= 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

} // namespace near::base
