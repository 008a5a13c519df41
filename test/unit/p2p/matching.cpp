// The matching engine compared with a model that searches plain lists.
#include "p2p/matching.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

namespace near::p2p {
namespace {

struct Receive : Posted {
  int number = 0;
};
struct Arrived : UnexpectedEntry {
  int number = 0;
};

Receive make_receive(std::uint64_t context, int source, int tag, int number = 0) {
  Receive receive;
  receive.context = context;
  receive.rank = source;
  receive.tag = tag;
  receive.number = number;
  return receive;
}

Arrived make_message(std::uint64_t context, int source, int tag, int number = 0) {
  Arrived message;
  message.envelope = {context, source, tag, 0};
  message.number = number;
  return message;
}

TEST(Matching, a_message_goes_to_the_receive_that_was_posted_first) {
  Matching matching;
  Receive exact = make_receive(4, 1, 7), any = make_receive(4, MPI_ANY_SOURCE, MPI_ANY_TAG);
  ASSERT_TRUE(matching.post(any));
  ASSERT_TRUE(matching.post(exact));
  EXPECT_EQ(matching.match({4, 1, 7, 0}), &any);
  EXPECT_EQ(matching.match({4, 1, 7, 0}), &exact);
  EXPECT_EQ(matching.match({4, 1, 7, 0}), nullptr);
}

TEST(Matching, a_receive_takes_the_oldest_message_of_its_source_and_tag) {
  Matching matching;
  Arrived first = make_message(4, 1, 7), second = make_message(4, 1, 8), third = make_message(4, 1, 7);
  for (Arrived* each : {&first, &second, &third}) ASSERT_TRUE(matching.add(*each));
  EXPECT_EQ(matching.find(4, 1, 8), &second);
  EXPECT_EQ(matching.find(4, 1, 7), &first);
  matching.remove(first);
  EXPECT_EQ(matching.find(4, 1, 7), &third);
  EXPECT_EQ(matching.find(4, 1, MPI_ANY_TAG), &second);
}

TEST(Matching, a_receive_from_any_source_takes_the_oldest_of_all_sources) {
  Matching matching;
  Arrived a = make_message(4, 3, 1), b = make_message(4, 0, 1), c = make_message(8, 0, 1);
  for (Arrived* each : {&c, &a, &b}) ASSERT_TRUE(matching.add(*each));
  EXPECT_EQ(matching.find(4, MPI_ANY_SOURCE, 1), &a);
  matching.remove(a);
  EXPECT_EQ(matching.find(4, MPI_ANY_SOURCE, 1), &b);
  matching.remove(b);
  EXPECT_EQ(matching.find(4, MPI_ANY_SOURCE, 1), nullptr);
}

TEST(Matching, a_receive_whose_message_was_withdrawn_keeps_its_place) {
  Matching matching;
  Receive first = make_receive(4, MPI_ANY_SOURCE, 1), second = make_receive(4, 2, 1);
  Receive third = make_receive(4, MPI_ANY_SOURCE, 1);
  for (Receive* each : {&first, &second, &third}) ASSERT_TRUE(matching.post(*each));
  ASSERT_EQ(matching.match({4, 2, 1, 0}), &first);
  ASSERT_TRUE(matching.repost(first));
  EXPECT_EQ(matching.match({4, 2, 1, 0}), &first);
  EXPECT_EQ(matching.match({4, 2, 1, 0}), &second);
  EXPECT_EQ(matching.match({4, 2, 1, 0}), &third);
}

TEST(Matching, channels_of_one_communicator_never_match_each_other) {
  Matching matching;
  Receive receive = make_receive(4, MPI_ANY_SOURCE, MPI_ANY_TAG);
  ASSERT_TRUE(matching.post(receive));
  EXPECT_EQ(matching.match({5, 0, 1, 0}), nullptr);
  EXPECT_EQ(matching.match({6, 0, 1, 0}), nullptr);
  EXPECT_EQ(matching.match({4, 0, 1, 0}), &receive);
}

TEST(Matching, memory_follows_what_is_pending_and_not_how_many_communicators_there_were) {
  Matching matching;
  Arrived kept = make_message(4, 0, 0);
  ASSERT_TRUE(matching.add(kept));
  for (std::uint64_t context = 8; context < 80'000; context += 4) {
    Arrived message = make_message(context, 1, 0);
    ASSERT_TRUE(matching.add(message));
    matching.remove(message);
  }
  EXPECT_LE(matching.buckets(), 64u);
  EXPECT_EQ(matching.find(4, MPI_ANY_SOURCE, 0), &kept);
}

/// The standard's rule with two lists: receives in the order of posting, messages in the order of arrival.
struct Model {
  std::vector<Receive*> posted;
  std::vector<Arrived*> waiting;

  static bool fits(std::uint64_t context, int source, int tag, const transport::Envelope& envelope) {
    return context == envelope.context && (source == MPI_ANY_SOURCE || source == envelope.source) &&
           (tag == MPI_ANY_TAG || tag == envelope.tag);
  }
  Receive* match(const transport::Envelope& envelope) {
    for (auto at = posted.begin(); at != posted.end(); ++at)
      if (fits((*at)->context, (*at)->rank, (*at)->tag, envelope)) {
        Receive* found = *at;
        posted.erase(at);
        return found;
      }
    return nullptr;
  }
  Arrived* find(std::uint64_t context, int source, int tag) {
    for (Arrived* each : waiting)
      if (fits(context, source, tag, each->envelope)) return each;
    return nullptr;
  }
};

/// Makes random calls to the engine and to the model and compares their results.
class Game {
public:
  struct Sizes {
    unsigned contexts, sources, tags;
  };
  Game(unsigned seed, Sizes sizes) : random_(seed), sizes_(sizes) {}

  int below(unsigned bound) { return static_cast<int>(random_() % bound); }

  void arrival() {
    transport::Envelope envelope{context(), source(), tag(), 0};
    Receive* expected = model.match(envelope);
    Posted* got = matching.match(envelope);
    ASSERT_EQ(got, expected);
    if (got == nullptr) {
      messages_.push_back(make_message(envelope.context, envelope.source, envelope.tag));
      ASSERT_TRUE(matching.add(messages_.back()));
      model.waiting.push_back(&messages_.back());
    } else if (below(16) == 0) { // its sender has withdrawn it
      ASSERT_TRUE(matching.repost(*got));
      auto at = model.posted.begin();
      while (at != model.posted.end() && (*at)->number < expected->number) ++at;
      model.posted.insert(at, expected);
    }
  }
  /// One in `one_in` receives is from any source, and one in `one_in` has any tag.
  void receive(unsigned one_in) {
    int from = below(one_in) == 0 ? MPI_ANY_SOURCE : source(),
        with = below(one_in) == 0 ? MPI_ANY_TAG : tag();
    std::uint64_t in = context();
    Arrived* expected = model.find(in, from, with);
    ASSERT_EQ(matching.find(in, from, with), expected);
    if (expected != nullptr) {
      matching.remove(*expected);
      std::erase(model.waiting, expected);
    } else {
      receives_.push_back(make_receive(in, from, with, ++number_));
      ASSERT_TRUE(matching.post(receives_.back()));
      model.posted.push_back(&receives_.back());
    }
  }
  void probe() {
    std::uint64_t in = context();
    int from = below(4) == 0 ? MPI_ANY_SOURCE : source(), with = below(4) == 0 ? MPI_ANY_TAG : tag();
    ASSERT_EQ(matching.find(in, from, with), model.find(in, from, with));
  }
  void cancelled_receive() {
    if (model.posted.empty()) return;
    auto at = model.posted.begin() + below(static_cast<unsigned>(model.posted.size()));
    matching.remove(**at);
    model.posted.erase(at);
  }
  void withdrawn_message() {
    if (model.waiting.empty()) return;
    auto at = model.waiting.begin() + below(static_cast<unsigned>(model.waiting.size()));
    matching.remove(**at);
    model.waiting.erase(at);
  }
  void finish() {
    ASSERT_EQ(matching.unexpected(), model.waiting.size());
    std::size_t visited = 0;
    matching.each_unexpected([&](UnexpectedEntry& message) {
      ++visited;
      matching.remove(message);
    });
    EXPECT_EQ(visited, model.waiting.size());
    EXPECT_EQ(matching.unexpected(), 0u);
    for (Receive* each : model.posted) matching.remove(*each);
    EXPECT_TRUE(matching.idle());
    EXPECT_EQ(matching.sorting_bytes(), 0u) << "what sorts by tag goes with the last entry";
  }

  Matching matching;
  Model model;

private:
  std::uint64_t context() { return static_cast<std::uint64_t>(below(sizes_.contexts)) << 2; }
  int source() { return below(sizes_.sources); }
  int tag() { return below(sizes_.tags); }

  std::mt19937 random_;
  Sizes sizes_;
  int number_ = 0;
  std::deque<Receive> receives_; // stable addresses
  std::deque<Arrived> messages_;
};

class RandomSequence : public testing::TestWithParam<unsigned> {};

TEST_P(RandomSequence, agrees_with_the_model) {
  std::mt19937 random(GetParam());
  // Few values make collisions; many make the table grow.
  Game game(GetParam(), {1 + static_cast<unsigned>(random() % 40), 1 + static_cast<unsigned>(random() % 12),
                         1 + static_cast<unsigned>(random() % 4)});
  for (int step = 0; step < 20'000 && !HasFatalFailure(); ++step) {
    switch (game.below(8)) {
    case 0:
    case 1:
    case 2: game.arrival(); break;
    case 3: game.cancelled_receive(); break;
    default: game.receive(4);
    }
  }
  game.finish();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSequence, testing::Range(1u, 41u));

/// Number of steps of a phase: usually small, sometimes large.
int length_of_phase(std::mt19937& random) {
  return static_cast<int>(random() % (random() % 8 == 0 ? 1500 : 200));
}

/// Sequences in which many receives or messages with many tags accumulate and are then matched.
class ManyTags : public testing::TestWithParam<unsigned> {};

TEST_P(ManyTags, agree_with_the_model_while_lists_grow_and_shrink) {
  constexpr unsigned sequences = 50;
  for (unsigned i = 0; i < sequences && !HasFatalFailure(); ++i) {
    unsigned seed = GetParam() * sequences + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Game game(seed, {1 + static_cast<unsigned>(random() % 3), 1 + static_cast<unsigned>(random() % 3),
                     40 + static_cast<unsigned>(random() % 2000)});
    const unsigned wildcards = 2 + random() % 200;
    for (int phase = 0; phase < 6; ++phase) {
      const unsigned of_messages = random() % 100, removals = random() % 30;
      for (int step = length_of_phase(random); step > 0 && !HasFatalFailure(); --step) {
        if (static_cast<unsigned>(game.below(100)) < removals) {
          game.below(2) == 0 ? game.cancelled_receive() : game.withdrawn_message();
          game.probe();
        } else if (static_cast<unsigned>(game.below(100)) < of_messages) {
          game.arrival();
        } else {
          game.receive(wildcards);
        }
      }
    }
    game.finish();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManyTags, testing::Range(0u, 40u));

/// Entries are posted, or arrive, in one order and are taken in the opposite order.
TEST(Matching, entries_with_a_hundred_thousand_tags_are_found_in_reverse_order) {
  constexpr int many = 100'000;
  Matching matching;
  std::vector<Receive> receives(many);
  for (int tag = 0; tag < many; ++tag) {
    receives[static_cast<std::size_t>(tag)] = make_receive(4, tag % 2 == 0 ? 1 : MPI_ANY_SOURCE, tag);
    ASSERT_TRUE(matching.post(receives[static_cast<std::size_t>(tag)]));
  }
  for (int tag = many; tag-- > 0;)
    ASSERT_EQ(matching.match({4, 1, tag, 0}), &receives[static_cast<std::size_t>(tag)]);
  std::vector<Arrived> messages(many);
  for (int tag = 0; tag < many; ++tag) {
    messages[static_cast<std::size_t>(tag)] = make_message(4, tag % 3, tag);
    ASSERT_TRUE(matching.add(messages[static_cast<std::size_t>(tag)]));
  }
  for (int tag = many; tag-- > 0;) {
    UnexpectedEntry* found = matching.find(4, tag % 2 == 0 ? MPI_ANY_SOURCE : tag % 3, tag);
    ASSERT_EQ(found, &messages[static_cast<std::size_t>(tag)]);
    matching.remove(*found);
  }
  EXPECT_TRUE(matching.idle());
}

TEST(Matching, a_few_entries_take_no_memory_for_sorting) {
  Matching matching;
  std::deque<Receive> receives;
  std::deque<Arrived> messages;
  for (int tag = 0; tag < near_entries; ++tag) {
    receives.push_back(make_receive(4, 1, tag));
    ASSERT_TRUE(matching.post(receives.back()));
    messages.push_back(make_message(8, 1, tag));
    ASSERT_TRUE(matching.add(messages.back()));
  }
  for (int tag = near_entries; tag-- > 0;) {
    EXPECT_NE(matching.match({4, 1, tag, 0}), nullptr);
    matching.remove(*matching.find(8, 1, tag));
    EXPECT_EQ(matching.sorting_bytes(), 0u);
  }
}

TEST(Matching, memory_for_sorting_follows_what_is_pending_and_not_how_many_tags_there_were) {
  Matching matching;
  std::deque<Receive> receives;
  for (int tag = 0; tag < 200'000; ++tag) {
    receives.push_back(make_receive(4, 1, tag));
    ASSERT_TRUE(matching.post(receives.back()));
    if (tag >= 100) { ASSERT_EQ(matching.match({4, 1, tag - 50, 0}), &receives[receives.size() - 51]); }
  }
  EXPECT_GT(matching.sorting_bytes(), 0u);
  EXPECT_LE(matching.sorting_bytes(), 1u << 15);
  for (Receive& each : receives)
    if (each.tag < 50 || each.tag >= 200'000 - 50) matching.remove(each);
  EXPECT_TRUE(matching.idle());
  EXPECT_EQ(matching.sorting_bytes(), 0u);
}

} // namespace
} // namespace near::p2p
