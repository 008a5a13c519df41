// `near place` for a job on several machines: it runs itself on each of them.
#include "tools/placing.h"

#include <cstdio>

namespace near::tools {

Whole ask_places(const PlaceOptions& options, const std::vector<segment::JobPart>& parts, bool weighed,
                 const Meanwhile& meanwhile) {
  const bool both = weighed || !options.page.empty();
  std::vector<std::string> arguments = {"place"};
  if (options.all) arguments.emplace_back("--all");
  if (both)
    arguments.emplace_back("--both");
  else if (options.json)
    arguments.emplace_back("--json");
  if (options.assert_local > 0)
    arguments.insert(arguments.end(), {"--assert-local", base::format("{}", options.assert_local)});
  std::vector<Answer> answers = ask(parts, arguments, meanwhile);
  Whole whole;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    std::string& output = answers[at].output;
    std::string document = both ? output.substr(0, output.find('\n')) : options.json ? output : "";
    if (both) output.erase(0, document.size() + 1);
    whole.documents.emplace_back(parts[at].machine, std::move(document));
  }
  whole.all = combine(parts, answers);
  if (options.json) whole.all.text = place::json_of(whole.documents, !options.watch) + '\n';
  return whole;
}

base::Result show(const PlaceOptions& options, const Whole& whole, Output& output) {
  if (!options.page.empty()) NEAR_TRY(replace_file(options.page, place::page_of(whole.documents)));
  const bool clears = options.watch && output.is_terminal() && !options.json;
  return output.write((clears ? clear_screen : "") + whole.all.text);
}

int sample_parts(const PlaceOptions& options, const std::vector<segment::JobPart>& parts, Output& output) {
  Whole whole;
  Repetition how;
  how.launcher = options.job;
  how.once = !options.watch;
  how.interval_s = options.interval_s;
  how.last_status = assertion_status;
  how.ask = [&] {
    whole = ask_places(options, parts, false);
    return whole.all;
  };
  how.show = [&](const Combined&) { return show(options, whole, output); };
  const std::optional<int> status = repeat(how);
  if (!status) std::fputs("near: the job has ended\n", stderr);
  return status.value_or(0);
}

} // namespace near::tools
