#include "segment/parts.h"

#include "os/files.h"
#include "os/memory.h"
#include "segment/descriptors.h"

#include <cstring>
#include <string_view>

namespace near::segment {
namespace {

constexpr const char* file_name = "nearmpi-parts";

// Fields end with a zero: machine, launcher, ranks, the number of words, and the words.

void add(std::string& text, std::string_view field) { (text += field) += '\0'; }

std::string text_of(const std::vector<JobPart>& parts) {
  std::string text;
  for (const JobPart& part : parts) {
    add(text, part.machine);
    for (const std::size_t number :
         {static_cast<std::size_t>(part.launcher), static_cast<std::size_t>(part.ranks), part.reach.size()})
      add(text, std::to_string(number));
    for (const std::string& word : part.reach) add(text, word);
  }
  return text;
}

/// Takes fields from the front of a text that another process has written.
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

std::vector<JobPart> parts_of(std::int32_t launcher) {
  std::string text;
  const std::string path = path_of_memory_file(launcher, file_name);
  if (path.empty() || os::read_file(path, text) != 0) return {};
  std::vector<JobPart> parts;
  for (Fields fields(text); !fields.is_over();) {
    JobPart& part = parts.emplace_back();
    part.machine = fields.next();
    std::size_t words = 0;
    if (!fields.number(part.launcher) || !fields.number(part.ranks) || !fields.number(words) || words == 0 ||
        words > fields.left())
      return {};
    while (words-- != 0) part.reach.emplace_back(fields.next());
  }
  return parts;
}

} // namespace near::segment
