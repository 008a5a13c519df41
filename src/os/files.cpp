#include "os/files.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace near::os {

int read_file(const std::string& path, std::string& text, std::size_t most) {
  text.clear();
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  int error = 0;
  std::size_t size = 0, piece = 4096;
  while (size < most) {
    piece = std::min(piece, most - size);
    text.resize(size + piece);
    const ssize_t got = read(descriptor, text.data() + size, piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
    piece = std::min<std::size_t>(2 * piece, 256u << 10);
  }
  close(descriptor);
  text.resize(size);
  return error;
}

std::string read_file(const std::string& path) {
  std::string text;
  (void)read_file(path, text);
  return text;
}

bool has_entries(const std::string& path) {
  DIR* listing = opendir(path.c_str());
  if (listing == nullptr) return false;
  bool found = false;
  for (const dirent* entry = readdir(listing); entry != nullptr && !found; entry = readdir(listing))
    found = std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..";
  closedir(listing);
  return found;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr const char* space = " \t\n\v\f\r";
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(space); begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(space, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(space, end);
  }
  return words;
}

} // namespace near::os
