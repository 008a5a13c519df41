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
#include "tools/output.h"
#include "tools/rounds.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace near::tools {

namespace {

constexpr int most_silence_ms = 30'000;

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
    launch.own_group = false; // an interrupt from the terminal is meant for both
    launch.input = launch.output = launch.error = -1;
    const bool started = os::open_null(launch.input).ok() && os::make_pipe(from_[0], launch.output).ok() &&
                         os::make_pipe(from_[1], launch.error).ok() && os::start_process(launch, pid_).ok();
    for (const int of_child : {launch.input, launch.output, launch.error})
      if (of_child >= 0) os::close_descriptor(of_child);
    if (started && os::watch_process(pid_, watch_).ok()) return;
    answer.errors = std::string(base::failure_text()) + "\n";
    end();
  }
  ~Question() {
    end();
    for (int* each : {&from_[0], &from_[1], &watch_}) close(*each);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  /// A process that it has left behind may still hold its pipes open when it has ended.
  bool runs() const { return pid_ != 0; }
  static constexpr std::size_t descriptors = 3;
  void watch(os::Poller& poller, std::uint64_t key) {
    if (!runs()) return;
    (void)poller.add(from_[0], key);
    (void)poller.add(from_[1], key + 1);
    (void)poller.add(watch_, key + 2);
  }
  /// Handles a ready descriptor.
  void advance(os::Poller& poller, std::size_t which) {
    if (!runs()) return;
    if (which < 2) return read(poller, which);
    // If our parent ignores ended children, the kernel does not keep their statuses.
    os::Ending ending;
    if (os::reap_child(pid_, ending)) answer.status = ending.status();
    pid_ = 0;
    poller.remove(watch_);
    close(watch_);
    read_rest(poller);
  }

  Answer answer;

private:
  static void close(int& descriptor) {
    if (descriptor >= 0) os::close_descriptor(descriptor);
    descriptor = -1;
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
  void read_rest(os::Poller& poller) {
    for (std::size_t which : {0u, 1u}) {
      for (std::size_t before = ~std::size_t{0}; from_[which] >= 0 && before != size();) {
        before = size();
        read(poller, which);
      }
      if (from_[which] >= 0) poller.remove(from_[which]);
      close(from_[which]);
    }
  }
  void end() {
    if (!runs()) return;
    os::send_signal(pid_, SIGKILL);
    constexpr std::uint64_t patience_ns = 1'000'000'000;
    if (watch_ >= 0) (void)os::wait_until_readable({&watch_, 1}, patience_ns);
    os::Ending ending;
    (void)os::reap_child(pid_, ending);
    pid_ = 0;
  }
  std::size_t size() const { return answer.output.size() + answer.errors.size(); }
  os::Pid pid_ = 0;
  int from_[2] = {-1, -1}, watch_ = -1;
};

} // namespace

std::vector<Answer> ask(const std::vector<segment::JobPart>& parts, const std::vector<std::string>& arguments,
                        const Meanwhile& meanwhile) {
  std::vector<std::unique_ptr<Question>> questions;
  os::Poller poller;
  std::vector<Answer> answers(parts.size());
  if (!poller.open().ok()) return answers;
  for (const auto& part : parts) {
    questions.push_back(std::make_unique<Question>(part, arguments));
    questions.back()->watch(poller, Question::descriptors * (questions.size() - 1));
  }
  auto any_runs = [&] {
    return std::any_of(questions.begin(), questions.end(), [](const auto& each) { return each->runs(); });
  };
  std::vector<std::uint64_t> keys;
  constexpr std::uint64_t key_meanwhile = ~0ull;
  if (meanwhile.descriptor >= 0) (void)poller.add(meanwhile.descriptor, key_meanwhile);
  std::uint64_t heard_ns = os::monotonic_ns();
  int silence_ms = 0;
  for (bool waits = true; waits && any_runs() && silence_ms < most_silence_ms;) {
    poller.wait(most_silence_ms - silence_ms, keys); // a signal ends it early
    for (const std::uint64_t key : keys)
      if (key == key_meanwhile) {
        waits = meanwhile.look();
      } else {
        questions[key / Question::descriptors]->advance(poller, key % Question::descriptors);
        heard_ns = os::monotonic_ns();
      }
    silence_ms = static_cast<int>((os::monotonic_ns() - heard_ns) / 1'000'000);
  }
  for (std::size_t at = 0; at < parts.size(); ++at) {
    if (questions[at]->runs() && silence_ms >= most_silence_ms)
      questions[at]->answer.errors += "no answer within 30 s\n";
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
    all.complete = all.complete && !answer.output.empty();
  }
  return all;
}

std::optional<int> repeat(const Repetition& how) {
  Rounds rounds;
  if (!rounds.open(how.launcher).ok()) return complain();
  for (bool was_complete = true;;) {
    const Combined all = how.ask();
    const bool may_end = was_complete && !all.complete && all.status != how.last_status;
    was_complete = all.complete;
    if (!how.once && rounds.ends_within(may_end ? grace_s : 0)) break; // while they were queried
    if (!how.show(all).ok()) return complain();
    std::fputs(all.complaints.c_str(), stderr);
    if (how.once || all.status == how.last_status) return all.status;
    if (rounds.ends_within(how.interval_s)) break;
  }
  return std::nullopt;
}

int show_parts(std::int32_t launcher, const std::vector<segment::JobPart>& parts,
               const std::vector<std::string>& arguments, bool once, double interval_s) {
  Output output;
  const bool clears = output.is_terminal() && !once;
  Repetition how;
  how.launcher = launcher;
  how.once = once;
  how.interval_s = interval_s;
  how.ask = [&] { return combine(parts, ask(parts, arguments)); };
  how.show = [&](const Combined& all) {
    return output.write((clears ? clear_screen : "") + all.text + (once || clears ? "" : "\n"));
  };
  const std::optional<int> status = repeat(how);
  if (!status) std::puts("the job has ended");
  return status.value_or(0);
}

} // namespace near::tools
