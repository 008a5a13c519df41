#include "tools/parts.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/files.h"
#include "os/memory.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/signals.h"
#include "tools/commands.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace near::tools {

namespace {

constexpr std::uint64_t most_silence_ns = 30'000'000'000;

/// A process that runs `near` on a machine.
class Question {
public:
  Question(const segment::JobPart& part, const std::vector<std::string>& arguments) {
    os::Launch launch;
    launch.program = part.reach[0];
    launch.arguments = part.reach;
    auto add = [&](const std::string& word) {
      if (part.by_shell)
        launch.arguments.back() += " " + word;
      else
        launch.arguments.push_back(word);
    };
    for (const std::string& word : arguments) add(word);
    add("--job");
    add(std::to_string(part.launcher));
    for (char** row = environ; *row != nullptr; ++row) launch.environment.emplace_back(*row);
    launch.own_group = false; // an interrupt from the terminal is for both
    launch.input = launch.output = launch.error = -1;
    const bool started = os::open_null(launch.input).ok() && os::make_pipe(from_[0], launch.output).ok() &&
                         os::make_pipe(from_[1], launch.error).ok() && os::start_process(launch, pid_).ok();
    for (const int of_child : {launch.input, launch.output, launch.error})
      if (of_child >= 0) os::close_descriptor(of_child);
    if (started) return;
    answer.errors = std::string(base::failure_text()) + "\n";
    more_ = false;
  }
  ~Question() {
    for (int& each : from_) close(each);
    if (pid_ != 0) os::send_signal(pid_, SIGKILL);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  /// Its process has ended, and what it has printed is here; something that it has left behind may have its pipes open still.
  bool is_over() const { return pid_ == 0 && !more_; }
  void watch(os::Poller& poller, std::uint64_t key) {
    for (std::size_t which : {0u, 1u})
      if (runs()) (void)poller.add(from_[which], key + which);
  }
  void read(os::Poller& poller, std::size_t which) {
    char buffer[1 << 16];
    std::size_t got = 0;
    const os::Transfer what = os::read_some(from_[which], buffer, sizeof buffer, got);
    if (what == os::Transfer::some) (which == 0 ? answer.output : answer.errors).append(buffer, got);
    if (what == os::Transfer::some || what == os::Transfer::nothing_now) return;
    poller.remove(from_[which]);
    close(from_[which]);
  }
  /// Reads what is there, if its process has ended.
  void read_rest(os::Poller& poller) {
    if (pid_ != 0 || !more_) return;
    for (std::size_t which : {0u, 1u})
      for (std::size_t before = ~std::size_t{0}; from_[which] >= 0 && before != size();) {
        before = size();
        read(poller, which);
      }
    more_ = false;
  }
  bool is(os::Pid pid) const { return pid_ == pid; }
  void ended(int status) {
    answer.status = status;
    pid_ = 0;
  }
  bool runs() const { return pid_ != 0; }

  Answer answer;

private:
  static void close(int& descriptor) {
    if (descriptor >= 0) os::close_descriptor(descriptor);
    descriptor = -1;
  }
  std::size_t size() const { return answer.output.size() + answer.errors.size(); }
  os::Pid pid_ = 0;
  int from_[2] = {-1, -1};
  bool more_ = true; ///< to read
};

} // namespace

std::vector<Answer> ask(const std::vector<segment::JobPart>& parts,
                        const std::vector<std::string>& arguments) {
  std::vector<std::unique_ptr<Question>> questions;
  os::Poller poller;
  std::vector<Answer> answers(parts.size());
  if (!poller.open().ok()) return answers;
  for (const auto& part : parts) {
    questions.push_back(std::make_unique<Question>(part, arguments));
    questions.back()->watch(poller, 2 * (questions.size() - 1));
  }
  std::vector<std::uint64_t> keys;
  std::uint64_t heard_ns = os::monotonic_ns();
  auto all_over = [&] {
    return std::all_of(questions.begin(), questions.end(), [](const auto& each) { return each->is_over(); });
  };
  os::Ending ending;
  while (!all_over() && os::monotonic_ns() - heard_ns < most_silence_ns) {
    constexpr int often_ms = 10; // a process is reaped soon after its pipes have closed
    poller.wait(often_ms, keys);
    for (const std::uint64_t key : keys) questions[key / 2]->read(poller, key % 2);
    for (bool none_left = false; os::reap(ending, none_left);)
      for (const auto& each : questions)
        if (each->is(ending.pid)) each->ended(ending.status());
    for (const auto& each : questions) each->read_rest(poller);
    if (!keys.empty()) heard_ns = os::monotonic_ns();
  }
  for (std::size_t at = 0; at < parts.size(); ++at) {
    if (questions[at]->runs()) questions[at]->answer.errors += "no answer within 30 s\n";
    answers[at] = std::move(questions[at]->answer);
  }
  return answers;
}

Combined combine(const std::vector<segment::JobPart>& parts, const std::vector<Answer>& answers) {
  Combined all;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const Answer& answer = answers[at];
    const std::string name = base::printable(parts[at].machine);
    if (!answer.output.empty())
      all.text += base::format("{}machine {}\n{}", all.text.empty() ? "" : "\n", name, answer.output);
    for (const std::string_view line : os::split(answer.errors, '\n'))
      all.complaints += base::format("near: machine {}: {}\n", name, base::printable(line));
    all.status = std::max(all.status, answer.status);
    all.any = all.any || answer.status == 0;
  }
  return all;
}

bool has_ended(os::Poller& job, const Combined& answers) {
  constexpr int grace_ms = 1000; // parts end before mpiexec, which writes the rest of their output
  std::vector<std::uint64_t> keys;
  job.wait(answers.any ? 0 : grace_ms, keys);
  return !keys.empty();
}

int show_parts(std::int32_t launcher, const std::vector<segment::JobPart>& parts,
               const std::vector<std::string>& arguments, bool once, double interval_s) {
  os::Poller poller;
  int watch = -1;
  if (!poller.open().ok() || !os::watch_process(launcher, watch).ok() || !poller.add(watch, 1).ok())
    return complain();
  const bool terminal = os::is_terminal(1);
  std::vector<std::uint64_t> keys;
  for (;;) {
    const Combined all = combine(parts, ask(parts, arguments));
    if (!once && has_ended(poller, all)) break; // while they were asked
    if (terminal && !once) std::fputs("\033[H\033[J", stdout);
    std::fputs(all.text.c_str(), stdout);
    if (!terminal && !once) std::puts("");
    std::fflush(stdout);
    std::fputs(all.complaints.c_str(), stderr);
    if (once) return all.status;
    poller.wait(static_cast<int>(std::clamp(interval_s * 1000, 1.0, 1e9)), keys);
    if (!keys.empty()) break;
  }
  std::puts("the job has ended");
  return 0;
}

} // namespace near::tools
