// Messages that are taken before their receives are posted, over the fake transport.
#include "fixture.h"

#include "base/knob.h"
#include "os/clock.h"
#include "p2p/early.h"

#include <unistd.h>

namespace near::p2p {
namespace {

class Early : public Messages {
protected:
  void SetUp() override {
    Messages::SetUp();
    begin_taking(); // another test may have ended it
    fake::world().may_come_early = true;
  }
  void TearDown() override {
    longest_wait_ns = usual_wait_ns_;
    set_knobs(nullptr);
    Messages::TearDown();
  }

  static void set_knobs(const char* entry) {
    std::string copy = entry != nullptr ? entry : "";
    std::array<char*, 2> environment{entry != nullptr ? copy.data() : nullptr, nullptr};
    ASSERT_TRUE(base::read_knobs(environment.data()).ok());
  }
  static void poll_in_vain() {
    for (int i = 0; i < 100; ++i) (void)progress();
  }
  /// Waits for longer than any message is left, but for those that are never taken: several times, since each wait may be over at once
  /// on a busy machine.
  static void wait_in_vain() {
    for (int i = 0; i < 3; ++i) {
      int looks = 0;
      wait_until([&] {
        usleep(200);
        return ++looks == 30;
      });
    }
  }
  template <class Done>
  static void wait_for(Done done) {
    const std::uint64_t watchdog = os::monotonic_ns() + 30'000'000'000;
    int looks = 0;
    while (!done() && os::monotonic_ns() < watchdog)
      wait_until([&] {
        usleep(200);
        return done() || ++looks % 30 == 0;
      });
    EXPECT_TRUE(done());
  }
  static int held() { return fake::world().peers[1].credits_out + fake::world().peers[1].packets_out; }
  /// Withdraws a message that was not taken.
  void drop(std::uint64_t rts_number, int source, int tag) {
    EXPECT_FALSE(fake::is_accepted(rts_number));
    fake::withdraw(rts_number);
    Completion envelope;
    EXPECT_FALSE(probe(source, tag, communicator, envelope));
  }

private:
  const std::uint64_t usual_wait_ns_ = longest_wait_ns;
};

const std::string in_slot = "short", in_packet(500, 'p'), announced(600, 'a'), long_one(5000, 'l');

TEST_F(Early, polls_in_vain_take_short_messages) {
  arrive(1, 7, in_slot);
  arrive(1, 7, in_packet);
  poll_in_vain();
  EXPECT_EQ(held(), 3) << "nobody waits for them to be released";
  const std::uint64_t number = arrive_rts(1, 7, announced);
  arrive_rts(1, 8, "");
  poll_in_vain();
  EXPECT_EQ(held(), 0);
  EXPECT_TRUE(fake::is_accepted(number));
  EXPECT_EQ(take(1, 7), in_slot);
  EXPECT_EQ(take(1, 7), in_packet);
  EXPECT_EQ(take(1, 7), announced);
  EXPECT_EQ(take(1, 8), "");
}

TEST_F(Early, nothing_is_taken_while_something_moves) {
  longest_wait_ns = ~std::uint64_t{0};
  arrive(1, 7, in_packet);
  const std::uint64_t number = arrive_rts(1, 8, announced);
  for (int i = 0; i < 100; ++i) {
    ++transport::moves;
    (void)progress();
  }
  EXPECT_EQ(held(), 2);
  drop(number, 1, 8);
  EXPECT_EQ(take(1, 7), in_packet);
}

TEST_F(Early, short_messages_are_taken_in_the_end_whatever_moves) {
  longest_wait_ns = 0;
  arrive(1, 7, in_packet);
  arrive_rts(1, 8, announced);
  ++transport::moves;
  (void)progress();
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(take(1, 8), announced);
  EXPECT_EQ(take(1, 7), in_packet);
}

TEST_F(Early, a_turn_takes_only_what_is_here_when_it_begins) {
  longest_wait_ns = 0;
  const std::string kilobyte(1000, 'k');
  const int first = 100;
  for (int i = 0; i < first; ++i) arrive(1, 7, kilobyte);
  const std::uint64_t number = arrive_rts(1, 8, announced);
  (void)progress();
  EXPECT_TRUE(fake::is_accepted(number));
  EXPECT_GT(held(), first) << "they are taken in parts";
  longest_wait_ns = ~std::uint64_t{0};
  arrive(1, 9, in_packet);
  for (int i = 0; i < 100; ++i) {
    ++transport::moves;
    (void)progress();
  }
  EXPECT_EQ(held(), 2);
  for (int i = 0; i < first; ++i) EXPECT_EQ(take(1, 7), kilobyte);
  EXPECT_EQ(take(1, 8), announced);
  EXPECT_EQ(take(1, 9), in_packet);
}

TEST_F(Early, messages_of_synchronous_sends_wait_for_their_receives) {
  fake::world().may_come_early = false;
  const std::uint64_t short_number = arrive_rts(1, 7, announced), long_number = arrive_rts(1, 8, long_one);
  arrive(1, 9, in_packet);
  poll_in_vain();
  wait_in_vain();
  EXPECT_EQ(held(), 2);
  drop(short_number, 1, 7);
  drop(long_number, 1, 8);
  EXPECT_EQ(take(1, 9), in_packet);
}

TEST_F(Early, a_withdrawn_message_is_not_taken) {
  fake::withdraw(arrive_rts(1, 7, announced));
  fake::withdraw(arrive_rts(1, 8, long_one));
  wait_in_vain();
  Completion envelope;
  EXPECT_FALSE(probe(1, MPI_ANY_TAG, communicator, envelope));
}

TEST_F(Early, only_waits_take_long_messages) {
  const std::uint64_t number = arrive_rts(1, 7, long_one);
  poll_in_vain();
  EXPECT_FALSE(fake::is_accepted(number));
  wait_for([&] { return fake::is_accepted(number); });
  EXPECT_EQ(take(1, 7, 8192), long_one);
}

TEST_F(Early, long_messages_are_taken_one_by_one) {
  fake::move_at_once(false);
  const std::uint64_t first = arrive_rts(1, 7, long_one), second = arrive_rts(1, 7, long_one);
  wait_for([&] { return fake::is_accepted(first); });
  wait_in_vain();
  EXPECT_FALSE(fake::is_accepted(second));
  fake::finish_moving();
  wait_for([&] { return fake::is_accepted(second); });
  fake::finish_moving();
  EXPECT_EQ(take(1, 7, 8192), long_one);
  EXPECT_EQ(take(1, 7, 8192), long_one);
}

TEST_F(Early, a_receive_waits_for_data_that_is_on_its_way) {
  for (const bool enough : {true, false}) {
    fake::move_at_once(false);
    arrive_rts(1, 7, announced);
    poll_in_vain();
    EXPECT_TRUE(is_fetching());
    std::string buffer(enough ? 700 : 100, '.');
    Request* request = nullptr;
    ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
    EXPECT_FALSE(request->complete);
    EXPECT_TRUE(cancel(*request).ok());
    EXPECT_FALSE(request->complete);
    fake::finish_moving();
    EXPECT_FALSE(is_fetching());
    EXPECT_TRUE(request->complete);
    EXPECT_EQ(wait(request).code(), enough ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
    EXPECT_EQ(buffer.substr(0, 600), std::string(enough ? 600 : 100, 'a'));
  }
}

TEST_F(Early, a_matched_probe_takes_data_that_is_on_its_way) {
  for (const bool before : {true, false}) {
    fake::move_at_once(false);
    arrive_rts(1, 7, announced);
    poll_in_vain();
    Completion envelope;
    Message* message = nullptr;
    bool found = false;
    ASSERT_TRUE(probe_matched(1, 7, communicator, found, message, envelope).ok());
    ASSERT_TRUE(found);
    EXPECT_EQ(envelope.bytes, 600);
    if (before) fake::finish_moving();
    std::string buffer(600, '.');
    Request* request = nullptr;
    ASSERT_TRUE(start_receive_matched(*message, text(buffer), request).ok());
    EXPECT_EQ(request->complete, before);
    if (!before) fake::finish_moving();
    EXPECT_TRUE(wait(request).ok());
    EXPECT_EQ(buffer, announced);
  }
}

TEST_F(Early, data_that_does_not_come_is_the_receives_error) {
  for (const bool before : {true, false}) {
    fake::move_at_once(false);
    arrive_rts(1, 7, announced);
    poll_in_vain();
    if (before) fake::finish_moving(MPI_ERR_PROC_ABORTED);
    std::string buffer(600, '.');
    Request* request = nullptr;
    ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
    if (!before) fake::finish_moving(MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(wait(request).code(), MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(buffer, std::string(600, '.'));
  }
}

TEST_F(Early, memory_is_bounded_and_used_again) {
  set_knobs("NEAR_UNEXPECTED=2k"); // for one of these messages
  const std::uint64_t first = arrive_rts(1, 7, announced), second = arrive_rts(1, 8, announced);
  poll_in_vain();
  EXPECT_TRUE(fake::is_accepted(first));
  EXPECT_FALSE(fake::is_accepted(second));
  EXPECT_EQ(take(1, 7), announced);
  poll_in_vain();
  EXPECT_TRUE(fake::is_accepted(second));
  EXPECT_EQ(take(1, 8), announced);
}

TEST_F(Early, a_message_that_does_not_fit_does_not_keep_others_from_being_taken) {
  set_knobs("NEAR_UNEXPECTED=8k");
  const std::uint64_t too_long = arrive_rts(1, 7, std::string(9000, 't'));
  wait_in_vain();
  const std::uint64_t fits = arrive_rts(1, 8, long_one);
  wait_for([&] { return fake::is_accepted(fits); });
  drop(too_long, 1, 7);
  EXPECT_EQ(take(1, 8, 8192), long_one);
  set_knobs("NEAR_UNEXPECTED=1k");
  arrive(1, 7, in_packet);
  const std::uint64_t not_even_short = arrive_rts(1, 8, announced), shorter = arrive_rts(1, 9, in_slot);
  poll_in_vain();
  EXPECT_TRUE(fake::is_accepted(shorter));
  drop(not_even_short, 1, 8);
  EXPECT_EQ(take(1, 9), in_slot);
  EXPECT_EQ(take(1, 7), in_packet);
}

TEST_F(Early, an_impossible_length_is_not_taken) {
  const std::uint64_t number = fake::arrive_rts(1, from(1, 7, ~std::size_t{0} - 100), "short");
  wait_in_vain();
  drop(number, 1, 7);
}

} // namespace
} // namespace near::p2p
