#include "machines/frames.h"

#include <algorithm>

namespace near::machines {
namespace {

constexpr std::size_t head_bytes = 5;

void append(std::string& to, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint64_t read(std::string_view from, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return value;
}

} // namespace

std::string frame(Kind kind, std::string_view body) {
  std::string made;
  append(made, body.size() + 1, 4);
  made += static_cast<char>(kind);
  made += body;
  return made;
}

bool FrameReader::next(Frame& taken) {
  const std::string_view rest = this->rest();
  if (broken_ || rest.size() < head_bytes) return false;
  const std::uint64_t length = read(rest, 4);
  const auto kind = static_cast<std::uint8_t>(rest[4]);
  if (length == 0 || length > longest || kind == 0 || kind > static_cast<std::uint8_t>(last_kind)) {
    broken_ = true;
    return false;
  }
  if (rest.size() < 4 + length) return false;
  taken.kind = static_cast<Kind>(kind);
  taken.body = rest.substr(head_bytes, length - 1);
  at_ += 4 + length;
  // Bytes are moved only when at least as many have been taken.
  if (at_ > received_.size() / 2) {
    received_.erase(0, at_);
    at_ = 0;
  }
  return true;
}

bool FrameReader::skip_past(std::string_view text) {
  const std::size_t found = received_.find(text, at_);
  if (found == std::string::npos) return false;
  received_.erase(0, found + text.size());
  at_ = 0;
  return true;
}

BodyWriter& BodyWriter::number(std::uint64_t value) {
  append(body_, value, 8);
  return *this;
}

BodyWriter& BodyWriter::text(std::string_view value) {
  append(body_, value.size(), 8);
  body_ += value;
  return *this;
}

BodyWriter& BodyWriter::texts(const std::vector<std::string>& values) {
  number(values.size());
  for (const auto& value : values) text(value);
  return *this;
}

BodyWriter& BodyWriter::numbers(const std::vector<unsigned>& values) {
  number(values.size());
  for (unsigned value : values) number(value);
  return *this;
}

std::uint64_t BodyReader::number() {
  ok_ = ok_ && rest_.size() >= 8;
  if (!ok_) return 0;
  const std::uint64_t value = read(rest_, 8);
  rest_.remove_prefix(8);
  return value;
}

std::string BodyReader::text() {
  const std::uint64_t size = number();
  ok_ = ok_ && size <= rest_.size();
  if (!ok_) return {};
  std::string value(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return value;
}

std::vector<std::string> BodyReader::texts() {
  std::vector<std::string> values;
  for (std::uint64_t left = number(); ok_ && left > 0; --left) values.push_back(text());
  return ok_ ? values : std::vector<std::string>();
}

std::vector<unsigned> BodyReader::numbers() {
  std::vector<unsigned> values;
  for (std::uint64_t left = number(); ok_ && left > 0; --left) {
    const std::uint64_t value = number();
    ok_ = ok_ && value <= UINT32_MAX;
    values.push_back(static_cast<unsigned>(value));
  }
  return ok_ ? values : std::vector<unsigned>();
}

bool Processes::read(std::string_view body, Processes& processes) {
  BodyReader reader(body);
  Processes read;
  read.space = reader.text();
  read.numbers = reader.numbers();
  if (!reader.complete()) return false;
  processes = std::move(read);
  return true;
}

} // namespace near::machines
