#include "segment/parts.h"

#include "os/files.h"
#include "os/memory.h"
#include "segment/descriptors.h"

#include <cstring>
#include <string_view>

namespace near::segment {
namespace {

constexpr const char* file_name = "nearmpi-parts";

// Fields end with a zero: machine, space, launcher, ranks, by_shell, the number of words, and the words.

void add(std::string& text, std::string_view field) { (text += field) += '\0'; }

std::string text_of(const std::vector<JobPart>& parts) {
  std::string text;
  for (const JobPart& part : parts) {
    add(text, part.machine);
    add(text, part.space);
    for (const std::size_t number :
         {static_cast<std::size_t>(part.launcher), static_cast<std::size_t>(part.ranks),
          std::size_t{part.by_shell}, part.reach.size()})
      add(text, std::to_string(number));
    for (const std::string& word : part.reach) add(text, word);
  }
  return text;
}

/// Takes fields from the front of text that another process has written.
class Fields {
public:
  explicit Fields(std::string_view text) : left_(os::split(text, '\0')) {}
  bool is_over() const { return at_ == left_.size(); }
  std::string_view next() { return is_over() ? std::string_view() : left_[at_++]; }
  template <class Number>
  bool number(Number& value) {
    return os::read_number(next(), value);
  }
  std::size_t left() const { return left_.size() - at_; }

private:
  std::vector<std::string_view> left_;
  std::size_t at_ = 0;
};

} // namespace

Result publish_parts(const std::vector<JobPart>& parts, int& descriptor) {
  const std::string text = text_of(parts);
  NEAR_TRY(os::make_shared_file(file_name, text.size(), descriptor));
  std::byte* base = nullptr;
  NEAR_TRY(os::map_shared(descriptor, text.size(), true, base));
  std::memcpy(base, text.data(), text.size());
  os::unmap(base, text.size());
  return os::seal_length(descriptor);
}

/// Reads what the process has published. Refuses other users' files, since their words would be executed as this user's, and
/// unsealed files, which may still be empty.
static bool read_published(std::int32_t launcher, std::string& text) {
  int number = -1, descriptor = -1;
  if (path_of_memory_file(launcher, file_name, &number).empty()) return false;
  if (!os::open_descriptor_of(launcher, number, false, descriptor).ok()) return false;
  std::uint64_t bytes = 0;
  const bool read = os::is_own_file(descriptor) && os::is_sealed(descriptor, bytes) &&
                    os::read_file(base::format("/proc/self/fd/{}", descriptor), text) == 0;
  os::close_descriptor(descriptor);
  return read;
}

std::vector<JobPart> parts_of(std::int32_t launcher) {
  std::string text;
  if (!read_published(launcher, text)) return {};
  std::vector<JobPart> parts;
  for (Fields fields(text); !fields.is_over();) {
    JobPart& part = parts.emplace_back();
    part.machine = fields.next();
    part.space = fields.next();
    std::size_t words = 0;
    int by_shell = 0;
    if (!fields.number(part.launcher) || !fields.number(part.ranks) || !fields.number(by_shell) ||
        !fields.number(words) || words == 0 || words > fields.left())
      return {};
    part.by_shell = by_shell != 0;
    while (words-- != 0) part.reach.emplace_back(fields.next());
  }
  return parts;
}

} // namespace near::segment
