#include "launch/remote.h"

#include "machines/tree.h"
#include "os/descriptor.h"
#include "os/memory.h"

#include <algorithm>
#include <utility>

namespace near::launch {
namespace {

using machines::Kind;

/// The most input that may be under way to a machine.
constexpr std::uint64_t most_input_under_way = 1u << 20;

} // namespace

Result Remote::start(const std::vector<std::string>& words, os::Poller& poller, const RemoteKeys& keys,
                     os::Bell& bell) {
  NEAR_TRY(connection_.start(words, "", poller, {keys.agent, keys.errors}, bell));
  return start_output(poller, keys, bell);
}

Result Remote::start_behind(Remote& nearer, unsigned number, os::Poller& poller, const RemoteKeys& keys,
                            os::Bell& bell) {
  nearer_ = &nearer;
  number_ = number;
  return start_output(poller, keys, bell);
}

Result Remote::start_output(os::Poller& poller, const RemoteKeys& keys, os::Bell& bell) {
  poller_ = &poller;
  keys_ = keys;
  NEAR_TRY(to_output_[0].start(bell));
  return to_output_[1].start(bell);
}

void Remote::be_reached(const std::vector<std::string>& words, const std::string& directory,
                        unsigned lost_after) {
  linked_ = true;
  nearer_->say(Kind::reach, machines::Reach{number_, words, directory, lost_after}.body());
}

Result Remote::connect_output(Output& output) {
  NEAR_TRY(output.add(Output::standard_output, "", {}, output_[0]));
  return output.add(Output::standard_error, "", {}, output_[1]);
}

void Remote::say(Kind kind, std::string_view body) {
  if (nearer_ == nullptr)
    connection_.put(machines::frame(kind, body));
  else if (linked_ && !hung_up_)
    nearer_->say(Kind::relayed, machines::Relayed::body(number_, machines::frame(kind, body)));
}

void Remote::say(Kind kind, std::uint64_t number) { say(kind, machines::BodyWriter().number(number).body()); }

void Remote::hang_up() {
  if (nearer_ == nullptr) {
    connection_.hang_up();
  } else if (linked_ && !hung_up_) {
    nearer_->say(Kind::hang_up, number_);
    hung_up_ = true;
  }
}

void Remote::kill() {
  if (nearer_ == nullptr)
    connection_.kill();
  else if (std::exchange(linked_, false))
    nearer_->say(Kind::cut, number_);
}

void Remote::part(std::string why) {
  linked_ = false;
  why_ = std::move(why);
}

std::string Remote::failure(std::uint64_t now_ns) {
  return nearer_ == nullptr ? connection_.failure(now_ns) : why_;
}

bool Remote::is_behind(const Remote& other) const {
  return nearer_ != nullptr && (nearer_ == &other || nearer_->is_behind(other));
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

/// Stops reading for the machine, so that others do not wait for it.
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

} // namespace near::launch
