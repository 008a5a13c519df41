// Seqlocks: a consistent read returns one state of the writer, which is not older than the sequence number.
#include "model.h"

#include "base/seqlock.h"

namespace {

using namespace near::model;
using Seqlock = near::base::Seqlock<Weak>;
using Word = Weak::Atomic<std::uint32_t>;

/// Two words that are equal except during a change.
struct Pair {
  explicit Pair(Stage& stage) {
    stage.name(sequence, "sequence");
    stage.name(first, "first");
    stage.name(second, "second");
  }
  void write(std::uint32_t value) {
    Seqlock::begin_change(sequence);
    Seqlock::put(first, value);
    Seqlock::put(second, value);
    Seqlock::end_change(sequence);
  }
  /// Returns false if the words do not belong together.
  bool try_read(std::uint32_t& value) {
    std::uint32_t before = Seqlock::begin_read(sequence);
    std::uint32_t one = Seqlock::get(first), two = Seqlock::get(second);
    if (!Seqlock::is_consistent(sequence, before)) return false;
    require(one == two, "the words are of one state");
    require(one >= before / 2, "the words are as new as the number that came before them");
    value = one;
    return true;
  }
  Word sequence{0}, first{0}, second{0};
};

MODEL_SCENARIO(seqlock, words_that_are_read_belong_together, {{4, 4, 1, 0}}) {
  Pair pair(stage);
  stage.thread("writer", [&] {
    for (std::uint32_t value = 1; value <= 2; ++value) pair.write(value);
  });
  stage.thread("reader", [&] {
    std::uint32_t value = 0, last = 0;
    for (int attempt = 0; attempt < 3; ++attempt)
      if (pair.try_read(value)) {
        require(value >= last, "time does not go back");
        last = value;
      }
  });
  stage.go();
}

MODEL_SCENARIO(seqlock, two_readers_do_not_disturb_each_other, {{3, 3, 1, 0}}) {
  Pair pair(stage);
  stage.thread("writer", [&] { pair.write(1); });
  for (const char* name : {"reader 1", "reader 2"})
    stage.thread(name, [&] {
      std::uint32_t value = 0;
      (void)pair.try_read(value);
      (void)pair.try_read(value);
    });
  stage.go();
}

MODEL_SCENARIO(seqlock, a_writer_that_dies_in_a_change_leaves_it_visible, {{3, 3, 1, 1}}) {
  Pair pair(stage);
  auto writer = stage.mortal("writer", [&] { pair.write(1); });
  stage.thread("reader", [&] {
    stage.await_end(writer);
    std::uint32_t value = 7;
    if (!pair.try_read(value)) return;
    require(value == 0 || value == 1, "before the change or after it");
  });
  stage.go();
}

} // namespace
