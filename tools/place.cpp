// `near place`: where the pages of a job or process lie. The folder tools/place samples and describes; this
// file decides when to sample: once or repeatedly.
#include "place/viewer.h"
#include "tools/placing.h"
#include "tools/rounds.h"

#include <cstdio>

namespace near::tools {

base::Result show(const PlaceOptions& options, const place::Snapshot& snapshot, Output& output) {
  if (!options.page.empty()) NEAR_TRY(replace_file(options.page, place::page_of(snapshot)));
  std::string text;
  if (options.watch && output.is_terminal() && !options.json) text = clear_screen;
  if (options.json || options.both) text += place::json_of(snapshot, !options.watch && !options.both) + "\n";
  if (!options.json) text += place::text_of(snapshot, options.all);
  return output.write(text);
}

int check(const PlaceOptions& options, const place::Snapshot& snapshot) {
  if (options.assert_local <= 0) return 0;
  auto text = place::assertion_text(snapshot, options.assert_local);
  if (text.empty()) return 0;
  std::fprintf(stderr, "near: %s", text.c_str());
  return assertion_status;
}

namespace {

int sample_running(const PlaceOptions& options, Output& output) {
  std::int32_t pid = options.job != 0 ? options.job : options.pid;
  Rounds rounds;
  if (options.watch && !rounds.open(pid).ok()) return complain();
  place::Viewer viewer;
  if (!(options.job != 0 ? viewer.open_job(pid) : viewer.open_process(pid)).ok()) return complain();
  for (bool again = false;; again = true) {
    place::Snapshot snapshot;
    auto sampled = viewer.sample(snapshot);
    if (again && sampled.is(base::Code::gone)) break;
    if (!sampled.ok() || !show(options, snapshot, output).ok()) return complain();
    int status = check(options, snapshot);
    if (!options.watch || status != 0) return status;
    if (rounds.ends_within(options.interval_s)) break;
  }
  std::fputs("near: the job has ended\n", stderr);
  return 0;
}

} // namespace

int place(const PlaceOptions& options) {
  Output output;
  if (!options.output.empty() && !output.open(options.output).ok()) return complain();
  if (!options.command.empty()) return sample_program(options, output);
  const auto parts = options.job != 0 ? segment::parts_of(options.job) : std::vector<segment::JobPart>{};
  return parts.empty() ? sample_running(options, output) : sample_parts(options, parts, output);
}

} // namespace near::tools
