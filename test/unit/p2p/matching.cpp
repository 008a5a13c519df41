// The matching engine against a model that searches plain lists.
#include "p2p/matching.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace near::p2p {
namespace {

struct Receive : Posted {
  int number = 0;
};
struct Arrived : Waiting {
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

/// The standard's text as two lists: receives in posting order, messages in order of arrival.
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

class RandomSequence : public testing::TestWithParam<unsigned> {};

TEST_P(RandomSequence, agrees_with_the_model) {
  std::mt19937 random(GetParam());
  auto below = [&](unsigned bound) { return static_cast<int>(random() % bound); };
  // Few values make collisions; many make the table grow.
  const unsigned contexts = 1 + random() % 40, sources = 1 + random() % 12, tags = 1 + random() % 4;
  Matching matching;
  Model model;
  std::deque<Receive> receives; // stable addresses
  std::deque<Arrived> messages;
  for (int step = 0; step < 20'000; ++step) {
    std::uint64_t context = static_cast<std::uint64_t>(below(contexts)) << 2;
    int source = below(sources), tag = below(tags);
    switch (below(8)) {
    case 0:
    case 1:
    case 2: { // a message arrives
      transport::Envelope envelope{context, source, tag, 0};
      Receive* expected = model.match(envelope);
      Posted* got = matching.match(envelope);
      ASSERT_EQ(got, expected) << "step " << step;
      if (got == nullptr) {
        messages.push_back(make_message(context, source, tag, step));
        ASSERT_TRUE(matching.add(messages.back()));
        model.waiting.push_back(&messages.back());
      } else if (below(16) == 0) { // its sender withdrew it
        ASSERT_TRUE(matching.repost(*got));
        auto at = model.posted.begin();
        while (at != model.posted.end() && (*at)->number < expected->number) ++at;
        model.posted.insert(at, expected);
      }
      break;
    }
    case 3: { // a posted receive is cancelled
      if (model.posted.empty()) break;
      auto at = model.posted.begin() + below(static_cast<unsigned>(model.posted.size()));
      matching.remove(**at);
      model.posted.erase(at);
      break;
    }
    default: { // a receive is posted
      if (below(4) == 0) source = MPI_ANY_SOURCE;
      if (below(4) == 0) tag = MPI_ANY_TAG;
      Arrived* expected = model.find(context, source, tag);
      ASSERT_EQ(matching.find(context, source, tag), expected) << "step " << step;
      if (expected != nullptr) {
        matching.remove(*expected);
        std::erase(model.waiting, expected);
      } else {
        receives.push_back(make_receive(context, source, tag, step));
        ASSERT_TRUE(matching.post(receives.back()));
        model.posted.push_back(&receives.back());
      }
    }
    }
    ASSERT_EQ(matching.waiting(), model.waiting.size());
  }
  std::size_t visited = 0;
  matching.each_waiting([&](Waiting& message) {
    ++visited;
    matching.remove(message);
  });
  EXPECT_EQ(visited, model.waiting.size());
  EXPECT_EQ(matching.waiting(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSequence, testing::Range(1u, 41u));

} // namespace
} // namespace near::p2p
