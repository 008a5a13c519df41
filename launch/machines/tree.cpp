#include "machines/tree.h"

#include <utility>

namespace near::machines {
namespace {

/// Returns false if `number` is not the number of a machine.
bool narrow(std::uint64_t number, unsigned& machine) {
  if (number > UINT32_MAX) return false;
  machine = static_cast<unsigned>(number);
  return true;
}

} // namespace

std::optional<unsigned> reached_from(unsigned machine, unsigned fan_out) {
  if (fan_out == 0 || machine < fan_out) return std::nullopt;
  return machine / fan_out - 1;
}

std::string Reach::body() const {
  return BodyWriter().number(machine).texts(words).text(directory).number(lost_after).body();
}

bool Reach::read(std::string_view body, Reach& reach) {
  BodyReader reader(body);
  Reach read;
  bool in_range = narrow(reader.number(), read.machine);
  read.words = reader.texts();
  read.directory = reader.text();
  in_range = narrow(reader.number(), read.lost_after) && in_range;
  if (!reader.complete() || !in_range || read.words.empty() || read.words[0].empty()) return false;
  reach = std::move(read);
  return true;
}

std::string Relayed::body(unsigned machine, std::string_view frame) {
  std::string made = BodyWriter().number(machine).body();
  made += frame;
  return made;
}

bool Relayed::read(std::string_view body, Relayed& relayed) {
  BodyReader number(body);
  Relayed read;
  if (!narrow(number.number(), read.machine) || !number.ok()) return false;
  FrameReader frames;
  frames.feed(body.substr(8));
  if (!frames.next(read.frame) || !frames.rest().empty()) return false;
  relayed = std::move(read);
  return true;
}

std::string Parted::body() const { return BodyWriter().number(machine).text(why).body(); }

bool Parted::read(std::string_view body, Parted& parted) {
  BodyReader reader(body);
  Parted read;
  const bool in_range = narrow(reader.number(), read.machine);
  read.why = reader.text();
  if (!reader.complete() || !in_range) return false;
  parted = std::move(read);
  return true;
}

bool read_machine(std::string_view body, unsigned& machine) {
  BodyReader reader(body);
  const std::uint64_t number = reader.number();
  return reader.complete() && narrow(number, machine);
}

} // namespace near::machines
