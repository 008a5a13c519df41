#include "launch/output.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/futex.h"
#include "os/memory.h"

#include <algorithm>

namespace near::launch {

Result Output::open(os::Poller& poller, std::uint64_t key_base, bool merge, bool stamp) {
  poller_ = &poller;
  key_base_ = key_base;
  stamp_ = stamp;
  buffer_.resize(std::size_t{256} << 10);
  NEAR_TRY(bell_.open());
  // If both descriptors refer to one file (2>&1), a single writer is needed, or lines could still mix.
  os::FileIdentity output, error;
  bool same = os::identify(1, output).ok() && os::identify(2, error).ok() && output == error;
  if (same || merge) sink_of_[standard_error] = standard_output;
  for (int which : {0, 1}) {
    sinks_[which].terminal = os::is_terminal(which + 1);
    sinks_[which].descriptor = which + 1;
    NEAR_TRY(sinks_[which].sink.start(bell_));
  }
  return {};
}

Result Output::add(Which which, std::string prefix, Copy copy, int& write_end) {
  if (copy.descriptor >= 0 && !copying_) {
    NEAR_TRY(copies_.start(bell_));
    copying_ = true;
  }
  Stream stream;
  stream.which = which;
  stream.prefix = std::move(prefix);
  stream.sink = sink_of_[which];
  stream.copy = std::move(copy);
  NEAR_TRY(os::make_pipe(stream.descriptor, write_end));
  streams_.push_back(std::move(stream));
  return poller_->add(streams_.back().descriptor, key_base_ + streams_.size() - 1);
}

bool Output::may_read(const Stream& stream, std::size_t index) const {
  const Target& target = sinks_[stream.sink];
  bool room = target.sink.has_room() && (stream.copy.descriptor < 0 || copies_.has_room());
  return room && (target.owner == nobody || target.owner == index);
}

void Output::readable(std::uint64_t index) {
  Stream& stream = streams_[index];
  if (stream.descriptor < 0 || stream.waiting) return;
  if (!may_read(stream, index)) {
    wait_for_room(index);
    return;
  }
  std::size_t bytes = 0;
  switch (os::read_some(stream.descriptor, buffer_.data(), buffer_.size(), bytes)) {
  case os::Transfer::some:
    stream.heard_ns = os::monotonic_ns();
    take(index, {buffer_.data(), bytes});
    break;
  case os::Transfer::nothing_now: break;
  case os::Transfer::ended:
  case os::Transfer::failed: end(index); break;
  }
}

void Output::take(std::size_t index, std::string_view data) {
  Stream& stream = streams_[index];
  Target& target = sinks_[stream.sink];
  said_ = said_ || stream.which == standard_error;
  if (stream.copy.descriptor >= 0) copies_.put(stream.copy.descriptor, data);
  auto newline = data.rfind('\n');
  if (newline != std::string_view::npos) {
    if (stream.held.empty()) {
      write_lines(index, data.substr(0, newline + 1));
    } else {
      // Only the first line continues the buffered text; the others need no copy.
      auto first = data.find('\n');
      stream.held += data.substr(0, first + 1);
      write_lines(index, stream.held);
      stream.held.clear();
      write_lines(index, data.substr(first + 1, newline - first));
    }
    stream.inside_line = false;
    target.open_line = nobody;
    data.remove_prefix(newline + 1);
    if (target.owner == index) {
      target.owner = nobody;
      resume(stream.sink);
    }
  }
  stream.held += data;
  if (stream.held.size() > longest_held || (target.owner == index && !stream.held.empty())) {
    target.owner = index;
    flush_partial(index);
  }
}

// Writes whole lines; the first may continue a line that has begun.
void Output::write_lines(std::size_t index, std::string_view lines) {
  if (lines.empty()) return;
  Stream& stream = streams_[index];
  Target& target = sinks_[stream.sink];
  // An unfinished line of another stream is on the terminal: leave it and begin a new one.
  if (target.terminal && target.open_line != nobody && target.open_line != index) target.put("\n");
  target.open_line = nobody;
  if (!marks(stream)) {
    target.put(lines);
    stream.inside_line = lines.back() != '\n';
    return;
  }
  std::string tagged, tag = stamp_ ? os::time_text() + " " + stream.prefix : stream.prefix;
  while (!lines.empty()) {
    auto length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    if (!stream.inside_line) tagged += tag;
    tagged += lines.substr(0, length);
    stream.inside_line = lines[length - 1] != '\n';
    lines.remove_prefix(length);
  }
  target.put(tagged);
}

void Output::flush_partial(std::size_t index) {
  Stream& stream = streams_[index];
  if (stream.held.empty()) return;
  write_lines(index, stream.held);
  stream.held.clear();
  sinks_[stream.sink].open_line = index;
}

void Output::end(std::size_t index) {
  Stream& stream = streams_[index];
  Target& target = sinks_[stream.sink];
  bool unfinished = !stream.held.empty() || stream.inside_line;
  flush_partial(index);
  if (unfinished && marks(stream)) target.put("\n"); // the next line must begin with its tag
  if (unfinished && marks(stream)) target.open_line = nobody;
  if (!stream.waiting) poller_->remove(stream.descriptor);
  os::close_descriptor(stream.descriptor);
  stream.descriptor = -1;
  stream.waiting = false;
  if (target.owner == index) {
    target.owner = nobody;
    resume(stream.sink);
  }
}

void Output::wait_for_room(std::size_t index) {
  poller_->remove(streams_[index].descriptor);
  streams_[index].waiting = true;
}

void Output::resume(std::size_t sink) {
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    Stream& stream = streams_[index];
    if (stream.sink != sink || !stream.waiting || !may_read(stream, index)) continue;
    stream.waiting = false;
    (void)poller_->add(stream.descriptor, key_base_ + index);
  }
}

void Output::bell_rang() {
  bell_.quiet();
  // For output that nobody will read: the ranks learn of it by SIGPIPE, as they would without a launcher.
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    const Stream& stream = streams_[index];
    bool lost = sinks_[stream.sink].sink.broken() || (stream.copy.descriptor >= 0 && copies_.broken());
    if (lost && stream.descriptor >= 0) end(index);
  }
  for (std::size_t sink : {standard_output, standard_error}) resume(sink);
}

int Output::tick(std::uint64_t now_ns) {
  int next_ms = -1;
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    Stream& stream = streams_[index];
    Target& target = sinks_[stream.sink];
    bool show = target.terminal && !stream.held.empty() && target.owner == nobody;
    bool release = target.owner == index && !stream.waiting;
    if (stream.descriptor < 0 || (!show && !release)) continue;
    std::uint64_t due = stream.heard_ns + patience_ns;
    if (due > now_ns) {
      int wait = static_cast<int>((due - now_ns) / 1'000'000) + 1;
      next_ms = next_ms < 0 ? wait : std::min(next_ms, wait);
      continue;
    }
    if (show) flush_partial(index);
    if (release) {
      target.owner = nobody;
      resume(stream.sink);
    }
  }
  return next_ms;
}

bool Output::drain() {
  bool all = true;
  for (std::size_t index = 0; index < streams_.size(); ++index) {
    Stream& stream = streams_[index];
    // The owner of a sink has no rank to wait for any more.
    if (stream.descriptor >= 0 && sinks_[stream.sink].owner != nobody && sinks_[stream.sink].owner != index) {
      all = false;
      continue;
    }
    while (stream.descriptor >= 0 && may_read(stream, index)) {
      std::size_t bytes = 0;
      auto got = os::read_some(stream.descriptor, buffer_.data(), buffer_.size(), bytes);
      if (got == os::Transfer::some)
        take(index, {buffer_.data(), bytes});
      else
        end(index);
    }
    all = all && stream.descriptor < 0;
  }
  return all;
}

bool Output::idle() const { return sinks_[0].sink.idle() && sinks_[1].sink.idle() && copies_.idle(); }

std::string Output::failure() const {
  for (std::size_t which : {standard_output, standard_error})
    if (auto reason = sinks_[which].sink.failure(); !reason.empty())
      return base::format("cannot write to standard {}: {}", which == standard_output ? "output" : "error",
                          reason);
  if (auto reason = copies_.failure(); !reason.empty())
    for (const auto& stream : streams_)
      if (stream.copy.descriptor == copies_.failed_descriptor())
        return base::format("cannot write to '{}', a file for the ranks' output: {}", stream.copy.name,
                            reason);
  return {};
}

void Output::say(std::string_view line) {
  if (line.empty()) return;
  Target& target = sinks_[sink_of_[standard_error]];
  if (target.open_line != nobody) target.put("\n");
  target.open_line = nobody;
  target.put(base::printable(line, true));
}

} // namespace near::launch
