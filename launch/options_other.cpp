// Other options of NearMPI: time limits, kinds of memory, help.
#include "launch/option_table.h"

#include <charconv>
#include <string>

namespace near::launch {

bool parse_seconds(const std::string& text, double& seconds) {
  double value = 0; // decimal: from_chars takes no 0x
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= -1e9) || value > 1e9)
    return false;
  seconds = value;
  return true;
}

namespace {

Result read_seconds(Parsing& at) {
  double seconds = 0;
  if (!parse_seconds(at.values[0], seconds) || seconds <= 0) return wrong(at, "a number of seconds");
  at.command.timeout_s = seconds;
  return {};
}

// MPI 5.0, section 11.5: a kind that is not supported is omitted from the answer, which is not an error.
Result choose_memory_kinds(Parsing& at) {
  for (const auto& kind : split(at.values[0], ',')) {
    auto name = kind.substr(0, kind.find(':'));
    if (name != "mpi" && name != "system")
      at.command.remarks.push_back(base::format("{} {}: memory is of the kinds mpi and system only, not {}",
                                                at.option, at.values[0], kind));
  }
  return {};
}

const Option other_table[] = {
    {{"timeout"},
     one,
     "S|after S seconds end the job with status 124 and say what each rank did",
     read_seconds},
    {{"memory-alloc-kinds"},
     one,
     "KINDS|kinds of memory that the program wants to use; mpi and system are supported",
     choose_memory_kinds},
    {{"V", "version", "info"}, none, "|print the version", NEAR_ACT(at.command.version = true)},
    {{"h", "help"},
     none,
     "[WHAT]|print this, one group or option of it, or all",
     NEAR_ACT(at.command.help = true)},
};

} // namespace

OptionGroup other_options() { return {"other", "Other", other_table}; }

} // namespace near::launch
