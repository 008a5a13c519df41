// Rings of entries under sequence flags: a reader gets the entry of the number that it waited for, however
// fast or slow the others are.
#include "model.h"

#include "queue/sequence_flag.h"

#include <array>
#include <string>

namespace {

using namespace near::model;
using Flag = near::queue::SequenceFlag<Weak>;

/// The ring of one writer and the flags of its readers, as coll/shared/area.h lays them out.
template <std::uint32_t depth>
struct Ring {
  Ring(Stage& stage, const std::string& name) {
    for (std::uint32_t i = 0; i < depth; ++i)
      stage.name(raised[i].word(), name + ", entry " + std::to_string(i));
  }
  void write(std::uint32_t number) {
    put(&contents[number % depth], number * 3);
    raised[number % depth].raise(number);
  }
  void read(std::uint32_t number) {
    until([&] { return raised[number % depth].has(number); });
    require(get<std::uint32_t>(&contents[number % depth]) == number * 3,
            "an entry holds what its number announces");
  }
  std::array<Flag, depth> raised;
  std::array<std::uint32_t, depth> contents{};
};

/// One writer; each reader raises its own flag when it has read an entry.
void readers_follow(Stage& stage, std::uint32_t readers, std::uint32_t entries) {
  Ring<2> ring(stage, "ring");
  std::array<Flag, 2> finished;
  for (std::uint32_t i = 0; i < readers; ++i) stage.name(finished[i].word(), "finished " + std::to_string(i));
  stage.thread("writer", [&, readers, entries] {
    for (std::uint32_t number = 1; number <= entries; ++number) {
      for (std::uint32_t i = 0; i < readers; ++i)
        until([&] { return number <= 2 || finished[i].has(number - 2); });
      ring.write(number);
    }
  });
  for (std::uint32_t i = 0; i < readers; ++i)
    stage.thread("reader " + std::to_string(i), [&, i, entries] {
      for (std::uint32_t number = 1; number <= entries; ++number) {
        ring.read(number);
        finished[i].raise(number);
      }
    });
  stage.go();
}

MODEL_SCENARIO(sequence_flag, a_slow_reader_delays_the_writer, {{4, 4, 1, 0}}) {
  readers_follow(stage, 1, 4);
}

MODEL_SCENARIO(sequence_flag, every_reader_delays_the_writer, {{2, 3, 1, 0}}) { readers_follow(stage, 2, 3); }

/// Both processes write and read. An entry tells, in plain memory, up to which number its writer has finished
/// reading, so no process reads another's flag: the entry with `number` announces all earlier ones.
MODEL_SCENARIO(sequence_flag, entries_say_what_their_writer_has_read, {{4, 4, 1, 0}}) {
  Ring<2> left(stage, "left"), right(stage, "right");
  auto side = [](Ring<2>& mine, Ring<2>& theirs) {
    for (std::uint32_t number = 1; number <= 3; ++number) {
      // The other side read our entry `number - 2` before it wrote its `number - 1`, which we have read.
      mine.write(number);
      theirs.read(number);
    }
  };
  stage.thread("left", [&] { side(left, right); });
  stage.thread("right", [&] { side(right, left); });
  stage.go();
}

} // namespace
