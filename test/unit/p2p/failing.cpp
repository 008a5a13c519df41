// A peer that fails while the job continues.
#include "fixture.h"

#include "transport/registry.h"

namespace near::p2p {
namespace {

class Failing : public Messages {
protected:
  void TearDown() override {
    forget_failed_peers();
    Messages::TearDown();
  }
  static void fail(int rank) { transport::fail(fake::world().peers[static_cast<std::size_t>(rank)]); }
};

TEST_F(Failing, ends_receives_that_name_the_peer_and_no_others) {
  std::string a(8, 0), b(8, 0), c(8, 0);
  Request *from_failed = nullptr, *from_any = nullptr, *from_other = nullptr;
  ASSERT_TRUE(start_receive(text(a), 3, 1, communicator, from_failed).ok());
  ASSERT_TRUE(start_receive(text(b), MPI_ANY_SOURCE, 1, communicator, from_any).ok());
  ASSERT_TRUE(start_receive(text(c), 4, 1, communicator, from_other).ok());
  fail(3);
  progress();
  EXPECT_FALSE(engine(*from_any).complete);
  EXPECT_FALSE(engine(*from_other).complete);
  Result ended = wait(from_failed);
  EXPECT_EQ(ended.code(), MPI_ERR_PROC_ABORTED);
  EXPECT_NE(std::string(base::failure_text()).find("rank 3 has failed"), std::string::npos)
      << base::failure_text();
  arrive(4, 1, "ok");
  arrive(4, 1, "ok");
  EXPECT_TRUE(wait(from_any).ok());
  EXPECT_TRUE(wait(from_other).ok());
}

TEST_F(Failing, ends_receives_that_are_posted_later) {
  fail(3);
  std::string data(8, 0);
  Completion completion;
  EXPECT_EQ(receive(text(data), 3, 1, communicator, completion).code(), MPI_ERR_PROC_ABORTED);
}

TEST_F(Failing, is_told_for_earlier_and_later_failures) {
  static std::vector<std::uint32_t> told;
  told.clear();
  fail(3);
  watch_failures([](const object::ProcessId& process) { told.push_back(process.rank); });
  EXPECT_EQ(told, (std::vector<std::uint32_t>{3}));
  fail(4);
  fail(4);
  EXPECT_EQ(told, (std::vector<std::uint32_t>{3, 4}));
}

TEST_F(Failing, leaves_messages_that_have_arrived) {
  arrive(3, 1, "ok");
  fail(3);
  std::string data(8, 0);
  Completion completion;
  EXPECT_TRUE(receive(text(data), 3, 1, communicator, completion).ok());
  EXPECT_EQ(data.substr(0, 2), "ok");
}

TEST_F(Failing, ends_the_receive_of_an_announced_message_and_no_later_one) {
  arrive_rts(3, 1, std::string(5000, 'x'));
  arrive(3, 1, "ok");
  fail(3);
  std::string data(5000, 0);
  Completion completion;
  EXPECT_EQ(receive(text(data), MPI_ANY_SOURCE, 1, communicator, completion).code(), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(completion.source, 3);
  EXPECT_TRUE(receive(text(data), 3, 1, communicator, completion).ok());
  EXPECT_EQ(data.substr(0, 2), "ok");
  EXPECT_EQ(receive(text(data), 3, 1, communicator, completion).code(), MPI_ERR_PROC_ABORTED)
      << "nothing is left";
}

TEST_F(Failing, ends_matched_receives_of_announced_messages) {
  arrive_rts(3, 1, std::string(5000, 'x'));
  fail(3);
  bool found = false;
  Message* message = nullptr;
  Completion completion;
  ASSERT_TRUE(probe_matched(3, 1, communicator, found, message, completion).ok());
  ASSERT_TRUE(found);
  std::string data(5000, 0);
  EXPECT_EQ(receive_matched(*message, text(data), completion).code(), MPI_ERR_PROC_ABORTED);
}

TEST_F(Failing, ends_sends_under_way_deferred_and_new) {
  std::string large(5000, 'x'), small(8, 'x');
  Request *under_way = nullptr, *deferred = nullptr;
  ASSERT_TRUE(start_send(text(large), 3, 1, communicator, SendMode::standard, under_way).ok());
  fake::world().rts_left = 0;
  ASSERT_TRUE(start_send(text(large), 3, 1, communicator, SendMode::standard, deferred).ok());
  fail(3);
  EXPECT_EQ(wait(under_way).code(), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(wait(deferred).code(), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(send(text(small), 3, 1, communicator, SendMode::standard).code(), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(send(text(large), 3, 1, communicator, SendMode::standard).code(), MPI_ERR_PROC_ABORTED);
  EXPECT_TRUE(send(text(small), 4, 1, communicator, SendMode::standard).ok()) << "others are not concerned";
}

} // namespace
} // namespace near::p2p
