#include "launch/remote.h"

#include "base/text.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "os/signals.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace near::launch {
namespace {

using machines::Kind;

/// So much input may be under way to a machine.
constexpr std::uint64_t most_input_under_way = 1u << 20;
/// So much of what ssh prints is kept; the last line says most.
constexpr std::size_t most_printed = 8192;
/// A login shell may print so much before the agent speaks.
constexpr std::size_t most_before_greeting = 1u << 20;

/// The last line of a text that is not empty.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return base::printable(text.substr(text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1));
}

} // namespace

Result Remote::start(const std::vector<std::string>& words, os::Poller& poller, const RemoteKeys& keys,
                     os::Bell& bell) {
  poller_ = &poller;
  keys_ = keys;
  program = words[0].substr(words[0].rfind('/') + 1);
  os::Launch launch;
  launch.program = words[0];
  launch.arguments = words;
  for (char** row = environ; *row != nullptr; ++row) launch.environment.emplace_back(*row);
  NEAR_TRY(os::make_input_pipe(launch.input, to_));
  NEAR_TRY(os::make_pipe(from_, launch.output));
  NEAR_TRY(os::make_pipe(errors_, launch.error));
  const Result started = os::start_process(launch, starter);
  for (int of_child : {launch.input, launch.output, launch.error}) os::close_descriptor(of_child);
  NEAR_TRY(started);
  NEAR_TRY(poller.add(from_, keys.agent));
  NEAR_TRY(poller.add(errors_, keys.errors));
  NEAR_TRY(to_agent_.start(bell));
  NEAR_TRY(to_output_[0].start(bell));
  return to_output_[1].start(bell);
}

Result Remote::connect_output(Output& output) {
  NEAR_TRY(output.add(Output::standard_output, "", {}, output_[0]));
  return output.add(Output::standard_error, "", {}, output_[1]);
}

void Remote::say(Kind kind, std::string_view body) {
  if (to_ >= 0) to_agent_.put(to_, machines::frame(kind, body));
}

void Remote::say(Kind kind, std::uint64_t number) { say(kind, machines::BodyWriter().number(number).body()); }

bool Remote::read(std::vector<machines::Frame>& frames) {
  frames.clear();
  char buffer[1 << 16];
  std::size_t got = 0;
  const os::Transfer what = os::read_some(from_, buffer, sizeof buffer, got);
  if (what == os::Transfer::nothing_now) return true;
  if (what == os::Transfer::some) {
    silence.heard();
    frames_.feed({buffer, got});
    if (!greeted) greeted = frames_.skip_past(machines::greeting);
    if (greeted)
      for (machines::Frame frame; frames_.next(frame);) frames.push_back(std::move(frame));
    if (!frames_.broken() && (greeted || frames_.rest().size() < most_before_greeting)) return true;
  }
  poller_->remove(from_);
  os::close_descriptor(from_);
  from_ = -1;
  return false;
}

void Remote::read_errors() {
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
  // The agent's own complaints come this way as well.
  printed_.append(buffer, got);
  if (printed_.size() > most_printed) printed_.erase(0, printed_.size() - most_printed);
}

void Remote::carry(Kind kind, std::string_view bytes) {
  const int which = kind == Kind::output ? 0 : 1;
  if (output_[which] >= 0) to_output_[which].put(output_[which], bytes);
  to_acknowledge_ += bytes.size();
  acknowledge();
}

void Remote::acknowledge() {
  const bool room = std::all_of(std::begin(to_output_), std::end(to_output_),
                                [](const Sink& sink) { return sink.has_room() || sink.broken(); });
  if (to_acknowledge_ == 0 || !room) return;
  say(Kind::written, to_acknowledge_);
  to_acknowledge_ = 0;
}

void Remote::hang_up() {
  if (to_ < 0 || !(to_agent_.idle() || to_agent_.broken())) return;
  os::close_descriptor(to_);
  to_ = -1;
}

bool Remote::close_output() {
  bool closed = true;
  for (const int which : {0, 1}) {
    if (output_[which] < 0) continue;
    if (!to_output_[which].idle()) {
      closed = false;
      continue;
    }
    os::close_descriptor(output_[which]);
    output_[which] = -1;
  }
  return closed;
}

void Remote::kill() {
  if (starter > 0) os::send_signal(starter, SIGKILL);
}

Result Remote::connect_input(int pipe) {
  input_ = pipe;
  watch_input(true);
  return {};
}

void Remote::watch_input(bool watched) {
  if (input_ < 0 || watched == input_watched_) return;
  input_watched_ = watched;
  if (watched)
    (void)poller_->add(input_, keys_.input);
  else
    poller_->remove(input_);
}

void Remote::carry_input() {
  if (input_ < 0) return;
  char buffer[1 << 16];
  std::size_t got = 0;
  const os::Transfer what = os::read_some(input_, buffer, sizeof buffer, got);
  if (what == os::Transfer::nothing_now) return;
  if (what == os::Transfer::some) {
    say(Kind::input, {buffer, got});
    input_under_way_ += got;
    watch_input(input_under_way_ < most_input_under_way);
    return;
  }
  say(Kind::input_end);
  end_input();
}

/// Nothing more is read for the machine, so that others do not wait for it.
void Remote::end_input() {
  if (input_ < 0) return;
  watch_input(false);
  os::close_descriptor(input_);
  input_ = -1;
}

void Remote::input_taken(std::uint64_t bytes) {
  input_under_way_ -= std::min(input_under_way_, bytes);
  watch_input(input_under_way_ < most_input_under_way);
}

std::string Remote::complaint() const {
  const std::string last = last_line(printed_);
  const std::string said = last.empty() ? "" : base::format(": {}", last);
  if (frames_.broken()) return "what it sends is damaged";
  if (greeted) return base::format("the connection to it has ended{}", said);
  constexpr int not_found = 127;
  if (starter == 0 && starter_ending.status() == not_found)
    return base::format(
        "its shell did not find mpiexec{}; NearMPI must be installed in the same folder on every machine",
        said);
  if (starter == 0) return base::format("{} ended with status {}{}", program, starter_ending.status(), said);
  return base::format("{} does not answer{}", program, said);
}

} // namespace near::launch
