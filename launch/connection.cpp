#include "launch/connection.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "os/signals.h"

#include <csignal>
#include <unistd.h>
#include <utility>

namespace near::launch {
namespace {

using machines::Kind;

/// How long ssh may take to end after the connection has, so that its status and its last words are known.
constexpr std::uint64_t until_last_words_ns = os::second_ns / 3;
/// How long an agent may take to greet.
constexpr std::uint64_t until_greeting_ns = 30 * os::second_ns;
/// How much of ssh's output is kept; the last line is the most informative.
constexpr std::size_t most_printed = 8192;
/// How much a login shell may print before the agent's greeting.
constexpr std::size_t most_before_greeting = 1u << 20;

/// The last non-empty line of a text.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return base::printable(text.substr(text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1));
}

} // namespace

Result Connection::start(const std::vector<std::string>& words, const std::string& directory,
                         os::Poller& poller, const Keys& keys, os::Bell& bell) {
  poller_ = &poller;
  program_ = words[0].substr(words[0].rfind('/') + 1);
  os::Launch launch;
  launch.program = words[0];
  launch.arguments = words;
  launch.directory = directory;
  for (char** row = environ; *row != nullptr; ++row) launch.environment.emplace_back(*row);
  NEAR_TRY(os::make_input_pipe(launch.input, to_));
  NEAR_TRY(os::make_pipe(from_, launch.output));
  NEAR_TRY(os::make_pipe(errors_, launch.error));
  const Result started = os::start_process(launch, starter_);
  for (int of_child : {launch.input, launch.output, launch.error}) os::close_descriptor(of_child);
  if (!started.ok())
    for (int* own : {&to_, &from_, &errors_}) {
      os::close_descriptor(*own);
      *own = -1;
    }
  NEAR_TRY(started);
  NEAR_TRY(poller.add(from_, keys.agent));
  NEAR_TRY(poller.add(errors_, keys.errors));
  return to_agent_.start(bell);
}

void Connection::put(std::string_view frames) {
  if (to_ >= 0) to_agent_.put(to_, frames);
}

bool Connection::read(std::vector<machines::Frame>& frames) {
  frames.clear();
  if (from_ < 0) return false;
  char buffer[1 << 16];
  std::size_t got = 0;
  const os::Transfer what = os::read_some(from_, buffer, sizeof buffer, got);
  if (what == os::Transfer::nothing_now) return true;
  if (what == os::Transfer::some) {
    silence_.heard();
    frames_.feed({buffer, got});
    if (!greeted_) greeted_ = frames_.skip_past(machines::greeting);
    if (greeted_)
      for (machines::Frame frame; frames_.next(frame);) frames.push_back(std::move(frame));
    if (!frames_.broken() && (greeted_ || frames_.rest().size() < most_before_greeting)) return true;
  }
  poller_->remove(from_);
  os::close_descriptor(from_);
  from_ = -1;
  ended_ns_ = os::monotonic_ns();
  return false;
}

void Connection::read_errors() {
  char buffer[4096];
  std::size_t got = 0;
  const os::Transfer what = os::read_some(errors_, buffer, sizeof buffer, got);
  if (what == os::Transfer::nothing_now) return;
  if (what != os::Transfer::some) {
    poller_->remove(errors_);
    os::close_descriptor(errors_);
    errors_ = -1;
    return;
  }
  // The agent's own error messages arrive this way as well.
  printed_.append(buffer, got);
  if (printed_.size() > most_printed) printed_.erase(0, printed_.size() - most_printed);
}

void Connection::hang_up() {
  if (to_ < 0 || !(to_agent_.idle() || to_agent_.broken())) return;
  os::close_descriptor(to_);
  to_ = -1;
}

void Connection::kill() {
  if (starter_ > 0) os::send_signal(starter_, SIGKILL);
}

bool Connection::reaped(const os::Ending& ending) {
  if (starter_ == 0 || starter_ != ending.pid) return false;
  starter_ = 0;
  starter_ending_ = ending;
  return true;
}

void Connection::keep_alive() {
  if (is_connected() && greeted_ && silence_.must_speak()) put(machines::frame(Kind::alive));
}

std::string Connection::failure(std::uint64_t now_ns) {
  if (from_ < 0) return starter_ == 0 || now_ns > ended_ns_ + until_last_words_ns ? complaint() : "";
  if (greeted_)
    return silence_.is_too_long()
               ? base::format("nothing has been heard from it for {} s (NEAR_LOST_AFTER)", silence_.limit_s())
               : "";
  return silence_.since(now_ns) > until_greeting_ns
             ? base::format("no agent answered through {} within 30 s", program_)
             : "";
}

int Connection::wait_ms() const {
  constexpr int often_ms = 20, at_most_ms = 1000;
  if (!is_connected())
    return starter_ != 0 && os::monotonic_ns() <= ended_ns_ + until_last_words_ns ? often_ms : at_most_ms;
  return greeted_ ? silence_.wait_ms() : at_most_ms;
}

std::string Connection::complaint() const {
  const std::string last = last_line(printed_);
  const std::string said = last.empty() ? "" : base::format(": {}", last);
  if (frames_.broken()) return "what it sends is damaged";
  if (greeted_) return base::format("the connection to it has ended{}", said);
  constexpr int not_found = 127;
  if (starter_ == 0 && starter_ending_.status() == not_found)
    return base::format(
        "its shell did not find mpiexec{}; NearMPI must be installed in the same folder on every machine",
        said);
  if (starter_ == 0)
    return base::format("{} ended with status {}{}", program_, starter_ending_.status(), said);
  return base::format("{} does not answer{}", program_, said);
}

} // namespace near::launch
