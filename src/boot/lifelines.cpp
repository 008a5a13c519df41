#include "boot/lifelines.h"

#include "os/poller.h"
#include "os/socket.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace near::boot {

namespace {

enum Kind : std::uint8_t { hello, lost, goodbye };

/// The most connections whose process has not yet sent the secret; further ones are rejected.
constexpr std::size_t most_unknown = 64;
constexpr std::uint64_t ns_per_second = 1'000'000'000;

} // namespace

/// Every message is one of these. The first one on a connection that this process has not made is a `hello`.
struct Lifelines::Record {
  std::uint64_t secret = 0;
  std::uint32_t machine = 0; ///< the sender, or the lost machine
  std::uint8_t kind = hello;
  std::uint8_t silent = 0;
  std::array<char, 50> name{}; ///< of that machine; ends with a zero unless it is full
};

struct Lifelines::Line {
  std::uint64_t key = 0;
  int descriptor = -1;
  bool is_known = false; ///< whether `machine` and `name` are known
  std::uint32_t machine = 0;
  std::string name;
  std::array<std::byte, sizeof(Record)> received{};
  std::size_t received_bytes = 0;
};

std::vector<std::uint32_t> next_in_ring(std::uint32_t place, std::uint32_t count) {
  std::vector<std::uint32_t> next;
  for (std::uint32_t step = 1; step <= 2 && step < count; ++step) next.push_back((place + step) % count);
  return next;
}

Lifelines::Lifelines() = default;
Lifelines::~Lifelines() { close_all(); }

Result Lifelines::listen(std::span<const std::byte> address) {
  return os::listen_at(address, listener_, port_);
}

Result Lifelines::begin(os::Poller& poller, std::uint64_t first_key, Settings settings) {
  poller_ = &poller;
  first_key_ = next_key_ = first_key;
  settings_ = std::move(settings);
  return listener_ < 0 ? Result() : poller.add(listener_, next_key_++);
}

Result Lifelines::connect(const Neighbour& to) {
  int descriptor = -1;
  if (!nearest_) nearest_ = to.machine;
  NEAR_TRY(os::connect_to(to.address, to.port, settings_.patience * ns_per_second, descriptor));
  add(descriptor, &to);
  send(lines_.back(), make_record(hello));
  return {};
}

void Lifelines::add(int descriptor, const Neighbour* to) {
  Line& line = lines_.emplace_back();
  line.key = next_key_++;
  line.descriptor = descriptor;
  if (to != nullptr) {
    line.is_known = true;
    line.machine = to->machine;
    line.name = to->name;
  }
  // Dead before the patience is over, to leave time for ending the job: after 4 of 5 seconds.
  const int patience = static_cast<int>(settings_.patience);
  const int unanswered = std::clamp(patience - 2, 1, 3);
  os::probe_when_idle(descriptor, std::max(1, (patience - 1) / (unanswered + 1)), unanswered);
  if (!poller_->add(descriptor, line.key).ok()) end(line);
}

void Lifelines::accept() {
  for (int made = os::accept_from(listener_); made >= 0; made = os::accept_from(listener_)) {
    const auto unknown =
        std::count_if(lines_.begin(), lines_.end(), [](const Line& line) { return !line.is_known; });
    if (static_cast<std::size_t>(unknown) < most_unknown)
      add(made, nullptr);
    else
      ::close(made);
  }
}

bool Lifelines::handle(std::uint64_t key) {
  if (key < first_key_ || key >= next_key_) return false;
  if (listener_ >= 0 && key == first_key_) {
    accept();
    return true;
  }
  const auto found =
      std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.key == key; });
  if (found != lines_.end()) read(*found);
  return true;
}

void Lifelines::read(Line& line) {
  for (;;) {
    std::size_t got = 0;
    const os::Ended ended =
        os::receive_now(line.descriptor, std::span(line.received).subspan(line.received_bytes), got);
    if (ended != os::Ended::no) {
      const Loss loss{line.machine, line.name, ended == os::Ended::silent};
      const bool known = line.is_known;
      end(line);
      if (known) lose(loss);
      return;
    }
    if (got == 0) return;
    line.received_bytes += got;
    if (line.received_bytes < line.received.size()) continue;
    line.received_bytes = 0;
    Record record;
    std::memcpy(&record, line.received.data(), sizeof record);
    if (!take(line, record)) return end(line);
  }
}

/// Returns false if the connection is no longer of use.
bool Lifelines::take(Line& line, const Record& record) {
  if (record.secret != settings_.secret) return false;
  const std::string name(record.name.data(), strnlen(record.name.data(), record.name.size()));
  switch (record.kind) {
  case hello:
    line.is_known = true;
    line.machine = record.machine;
    line.name = name;
    return true;
  case lost:
    if (line.is_known) lose({record.machine, name, record.silent != 0});
    return line.is_known;
  case goodbye: left_.push_back(record.machine); return false;
  default: return false;
  }
}

void Lifelines::lose(Loss loss) {
  auto is_in = [&](const std::vector<std::uint32_t>& machines) {
    return std::find(machines.begin(), machines.end(), loss.machine) != machines.end();
  };
  if (is_in(lost_) || is_in(left_) || loss.machine == settings_.machine) return;
  lost_.push_back(loss.machine);
  Record record = make_record(lost);
  record.machine = loss.machine;
  record.silent = loss.silent;
  record.name = {};
  loss.name.copy(record.name.data(), record.name.size());
  for (const Line& line : lines_)
    if (line.is_known && line.machine != loss.machine) send(line, record);
  loss.first_hand = nearest_ == loss.machine;
  settings_.on_loss(loss);
}

Lifelines::Record Lifelines::make_record(std::uint8_t kind) const {
  static_assert(sizeof(Record) == 64, "without a gap");
  Record record{.secret = settings_.secret, .machine = settings_.machine, .kind = kind};
  settings_.name.copy(record.name.data(), record.name.size());
  return record;
}

void Lifelines::send(const Line& line, const Record& record) const {
  os::send_now(line.descriptor, std::as_bytes(std::span(&record, 1)));
}

void Lifelines::end(Line& line) {
  poller_->remove(line.descriptor);
  ::close(line.descriptor);
  const std::uint64_t key = line.key;
  lines_.remove_if([&](const Line& each) { return each.key == key; });
}

void Lifelines::leave() {
  if (listener_ >= 0) accept(); // connections that the kernel has accepted must receive it, too
  for (const Line& line : lines_) send(line, make_record(goodbye));
  close_all();
}

void Lifelines::close_all() {
  for (const Line& line : lines_) ::close(line.descriptor);
  lines_.clear();
  if (listener_ >= 0) ::close(listener_);
  listener_ = -1;
}

} // namespace near::boot
