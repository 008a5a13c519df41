#include "boot/pmi.h"

#include "base/text.h"
#include "os/descriptor.h"

#include <algorithm>
#include <charconv>

namespace near::boot {

namespace {

/// The longest line that a launcher may send; values have at most 1 KiB.
constexpr std::size_t longest_line = 1 << 16;

bool to_number(std::string_view text, std::uint32_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool number_in(char** environment, std::string_view name, std::uint32_t& number) {
  return to_number(base::find_variable(environment, name).value_or(""), number);
}

} // namespace

std::string_view field_of(std::string_view line, std::string_view key) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view part = line.substr(at, end - at);
    if (part.size() > key.size() && part.starts_with(key) && part[key.size()] == '=')
      return part.substr(key.size() + 1);
    at = end + 1;
  }
  return {};
}

namespace {

/// Machine `first` and the `count` - 1 machines after it, with `each` ranks on every one of them.
struct Block {
  std::uint32_t first = 0, count = 1, each = 1;
};

/// Reads PMI_process_mapping, character by character.
class MappingReader {
public:
  explicit MappingReader(std::string_view text) : rest_(text) {}
  /// Reads the whole text. Returns false if it is malformed.
  bool read(std::vector<Block>& blocks) {
    if (!skip("(vector")) return false;
    while (skip(",")) {
      if (!(at('[') ? read_repeated(blocks) : read_block(blocks))) return false;
    }
    return skip(")") && rest_.empty() && !blocks.empty();
  }

private:
  bool at(char expected) const { return !rest_.empty() && rest_.front() == expected; }
  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool read_number(std::uint32_t& number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  /// "7": one rank on machine 7; "(0,2,4)": four on machine 0, four on machine 1.
  bool read_block(std::vector<Block>& blocks) {
    Block block;
    if (!skip("(")) {
      if (!read_number(block.first)) return false;
    } else if (!read_number(block.first) || !skip(",") || !read_number(block.count) || !skip(",") ||
               !read_number(block.each) || !skip(")") || block.count == 0 || block.each == 0) {
      return false;
    }
    blocks.push_back(block);
    return blocks.size() <= most_blocks;
  }
  /// "[0,(1,1,2)]x3": these blocks three times.
  bool read_repeated(std::vector<Block>& blocks) {
    std::vector<Block> repeated;
    std::uint32_t times = 0;
    if (!skip("[") || !read_block(repeated)) return false;
    while (skip(","))
      if (!read_block(repeated)) return false;
    if (!skip("]x") || !read_number(times) || times > most_blocks / repeated.size()) return false;
    for (std::uint32_t time = 0; time < times; ++time)
      blocks.insert(blocks.end(), repeated.begin(), repeated.end());
    return blocks.size() <= most_blocks;
  }

  static constexpr std::size_t most_blocks = 1 << 20;
  std::string_view rest_;
};

} // namespace

Result machines_of(std::string_view mapping, std::uint32_t size, std::vector<std::uint32_t>& machines) {
  std::vector<Block> blocks;
  if (!MappingReader(mapping).read(blocks))
    return base::fail(base::Code::invalid,
                      "the launcher describes the machines of the job as \"{}\": expected "
                      "(vector,(first machine,machines,processes on each),...)",
                      base::printable(mapping));
  machines.clear();
  while (machines.size() < size)
    for (const Block& block : blocks)
      for (std::uint32_t machine = 0; machine < block.count && machines.size() < size; ++machine)
        for (std::uint32_t i = 0; i < block.each && machines.size() < size; ++i)
          machines.push_back(block.first + machine);
  return {};
}

bool Pmi::is_offered(char** environment) {
  std::uint32_t descriptor = 0, rank = 0, size = 0;
  return number_in(environment, "PMI_FD", descriptor) && number_in(environment, "PMI_RANK", rank) &&
         number_in(environment, "PMI_SIZE", size) && size > 1;
}

std::uint32_t Pmi::size_in(char** environment) {
  std::uint32_t size = 0;
  return number_in(environment, "PMI_SIZE", size) ? size : 0;
}

Result Pmi::connect(char** environment) {
  std::uint32_t descriptor = 0;
  if (!number_in(environment, "PMI_FD", descriptor) || !number_in(environment, "PMI_RANK", rank_) ||
      !number_in(environment, "PMI_SIZE", size_) || rank_ >= size_)
    return base::fail(base::Code::invalid,
                      "PMI_FD, PMI_RANK and PMI_SIZE are not those of a process of a job (PMI_RANK={}, "
                      "PMI_SIZE={})",
                      base::find_variable(environment, "PMI_RANK").value_or(""),
                      base::find_variable(environment, "PMI_SIZE").value_or(""));
  os::FileIdentity file;
  if (!os::identify(static_cast<int>(descriptor), file).ok())
    return base::fail(base::Code::gone,
                      "PMI_FD={} is not open, so the launcher that set it cannot be asked about the other {} "
                      "processes; if this program is not one of them, unset PMI_FD, PMI_RANK and PMI_SIZE",
                      descriptor, size_ - 1);
  return connect(static_cast<int>(descriptor), rank_, size_);
}

Result Pmi::connect(int descriptor, std::uint32_t rank, std::uint32_t size) {
  descriptor_ = descriptor;
  rank_ = rank;
  size_ = size;
  std::string line;
  NEAR_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", line));
  if (field_of(line, "pmi_version") != "1")
    return base::fail(base::Code::unsupported, "the launcher speaks version {} of PMI, and NearMPI version 1",
                      base::printable(field_of(line, "pmi_version")));
  NEAR_TRY(ask("cmd=get_my_kvsname", "my_kvsname", line));
  table_ = field_of(line, "kvsname");
  NEAR_TRY(ask("cmd=get_appnum", "appnum", line));
  (void)to_number(field_of(line, "appnum"), application_);
  return {};
}

Result Pmi::read_line(std::string& line) {
  for (;;) {
    const std::size_t end = received_.find('\n');
    if (end != std::string::npos) {
      line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return {};
    }
    char buffer[2048];
    std::size_t got = 0;
    const os::Transfer what = os::read_some(descriptor_, buffer, sizeof buffer, got);
    if (what == os::Transfer::some)
      received_.append(buffer, got);
    else if (what == os::Transfer::nothing_now)
      (void)os::wait_until_readable(std::span(&descriptor_, 1), 1'000'000'000);
    else
      return base::fail(base::Code::gone, "the launcher has closed its connection (PMI_FD={})", descriptor_);
    if (received_.size() > longest_line)
      return base::fail(base::Code::invalid, "the launcher sent a line of more than {} bytes", longest_line);
  }
}

Result Pmi::ask(std::string_view request, std::string_view answer, std::string& line) {
  const std::string sent = std::string(request) + "\n";
  NEAR_TRY(os::send_all(descriptor_, sent.data(), sent.size()));
  return take_answer(request, answer, line);
}

Result Pmi::take_answer(std::string_view request, std::string_view answer, std::string& line) {
  NEAR_TRY(read_line(line));
  const std::string_view rc = field_of(line, "rc");
  if (field_of(line, "cmd") == answer && (rc.empty() || rc == "0")) return {};
  return base::fail(base::Code::invalid, "the launcher answers \"{}\" with \"{}\"", base::printable(request),
                    base::printable(line));
}

Result Pmi::find_machines(std::vector<std::uint32_t>& machine_of) {
  std::string mapping;
  if (!get("PMI_process_mapping", mapping).ok())
    return base::fail(base::Code::unsupported,
                      "the launcher does not say which processes share a machine (PMI_process_mapping): {}",
                      std::string(base::failure_text()));
  return machines_of(mapping, size_, machine_of);
}

Result Pmi::put(std::string_view key, std::string_view value) {
  std::string line;
  return ask(base::format("cmd=put kvsname={} key={} value={}", table_, key, value), "put_result", line);
}

Result Pmi::fence() {
  std::string line;
  return ask("cmd=barrier_in", "barrier_out", line);
}

Result Pmi::begin_fence() {
  constexpr std::string_view request = "cmd=barrier_in\n";
  return os::send_all(descriptor_, request.data(), request.size());
}

Result Pmi::look_at_fence(bool& over) {
  over = received_.find('\n') != std::string::npos || os::wait_until_readable(std::span(&descriptor_, 1), 0);
  if (!over) return {};
  std::string line;
  return take_answer("cmd=barrier_in", "barrier_out", line);
}

Result Pmi::get(std::string_view key, std::string& value) {
  std::string line;
  NEAR_TRY(ask(base::format("cmd=get kvsname={} key={}", table_, key), "get_result", line));
  // The last field: its text may contain spaces.
  const std::size_t at = line.find(" value=");
  if (at == std::string::npos)
    return base::fail(base::Code::invalid, "the launcher knows nothing of {}", key);
  value = line.substr(at + 7);
  return {};
}

Result Pmi::finalize() {
  std::string line;
  return ask("cmd=finalize", "finalize_ack", line);
}

void Pmi::abort(int status) {
  const std::string request = base::format("cmd=abort exitcode={}\n", status);
  (void)os::send_all(descriptor_, request.data(), request.size());
}

} // namespace near::boot
