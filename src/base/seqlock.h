// A seqlock with one writer: words that are read without a lock, and read again if they have changed meanwhile.
//
//   writer                                reader
//   sequence += 1, odd now                before = sequence
//   put() each word                       get() each word
//   sequence += 1, even again             consistent if `before` is even and the sequence is still the same
//
// The sequence and the words are atomics that the structure itself owns; these functions define the order of the
// accesses. Words that are read between two equal even numbers belong together:
// - A reader that gets a word of a change has acquired what was released with it, the odd number before it among
//   others, so its second read of the sequence does not find the number from before the change.
// - A reader that begins with the even number after a change has acquired all words of the change.
//
// A reader waits for nobody: it may give up or try again. A writer that dies in a change leaves the sequence odd.
// Source: H. Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012.
#pragma once

#include "base/atomic.h"

#include <type_traits>

namespace near::base {

template <class Atomics = Hardware>
struct Seqlock {
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  /// Writer: begins a change. Only one thread may write at a time.
  template <class T>
  static void begin_change(Atomic<T>& sequence) {
    sequence.bump_relaxed(1); // each put() releases it
  }
  /// Writer: changes a word between begin_change() and end_change().
  template <class T>
  static void put(Atomic<T>& word, std::type_identity_t<T> value) {
    // SYNC: seqlock. A reader that sees the word sees the odd number before it.
    word.store_release(value);
  }
  /// Writer: ends a change.
  template <class T>
  static void end_change(Atomic<T>& sequence) {
    // SYNC: seqlock. A reader that sees the even number sees the whole change.
    sequence.bump_release(1);
  }

  /// Reader: begins; returns the sequence for is_consistent().
  template <class T>
  static auto begin_read(const Atomic<T>& sequence) {
    // SYNC: seqlock. No word that is read below is older than this number.
    return sequence.load_acquire();
  }
  /// Reader: reads a word, which may belong to another state than the words before it.
  template <class T>
  static auto get(const Atomic<T>& word) {
    // SYNC: seqlock. A word that is newer than the number brings the odd number with it.
    return word.load_acquire();
  }
  /// Reader: whether all words since begin_read(), which returned `before`, belong together.
  template <class T, class Before>
  static bool is_consistent(const Atomic<T>& sequence, Before before) {
    return before % 2 == 0 && sequence.load_relaxed() == before;
  }
};

} // namespace near::base
