// Receives over the fake transport: order, wildcards, truncation, rendezvous, cancel, probe.
#include "fixture.h"

namespace near::p2p {
namespace {

class Receiving : public Messages {};

TEST_F(Receiving, an_unexpected_message_waits_inline_or_in_its_packet) {
  arrive(1, 7, "short");
  arrive(1, 7, std::string(500, 'x'));
  EXPECT_EQ(fake::world().peers[1].packets_out, 1);
  EXPECT_EQ(fake::world().peers[1].credits_out, 2);
  EXPECT_EQ(take(1, 7), "short");
  EXPECT_EQ(take(1, 7), std::string(500, 'x'));
}

TEST_F(Receiving, a_message_is_counted_as_unexpected_when_it_is_kept_and_not_again) {
  arrive(1, 7, "short");
  arrive(1, 7, std::string(500, 'x'));
  std::uint64_t withdrawn = arrive_rts(2, 7, std::string(5000, 'y'));
  EXPECT_EQ(fake::world().unexpected, 3);
  EXPECT_EQ(take(1, 7), "short");
  EXPECT_EQ(take(1, 7), std::string(500, 'x'));
  fake::withdraw(withdrawn);
  std::string buffer(16, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, request).ok());
  arrive(3, 7, "expected");
  EXPECT_TRUE(wait(request, nullptr).ok());
  EXPECT_EQ(fake::world().unexpected, 3);
}

TEST_F(Receiving, an_expected_message_is_delivered_from_the_handler) {
  std::string buffer(16, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, request).ok());
  EXPECT_FALSE(request->complete);
  arrive(3, 9, "hello");
  EXPECT_TRUE(request->complete);
  MPI_Status status;
  EXPECT_TRUE(wait(request, &status).ok());
  EXPECT_EQ(status.MPI_SOURCE, 3);
  EXPECT_EQ(status.MPI_TAG, 9);
  EXPECT_EQ(status_bytes(status), 5);
  EXPECT_FALSE(status_cancelled(status));
  EXPECT_EQ(buffer.substr(0, 6), "hello.");
}

TEST_F(Receiving, a_truncated_message_fills_the_buffer_and_says_both_lengths) {
  for (bool rendezvous : {false, true}) {
    std::string data(400, 'd'), buffer(100, '.');
    if (rendezvous)
      arrive_rts(1, 7, data);
    else
      arrive(1, 7, data);
    Completion completion;
    Result result = receive(text(buffer), 1, 7, communicator, completion);
    EXPECT_EQ(result.code(), MPI_ERR_TRUNCATE);
    EXPECT_EQ(base::failure_text(),
              "message of 400 bytes from rank 1 with tag 7 does not fit the receive buffer of 100 bytes");
    EXPECT_EQ(buffer, std::string(100, 'd'));
    EXPECT_EQ(completion.bytes, 100);
  }
}

TEST_F(Receiving, eager_messages_and_rendezvous_share_one_order) {
  arrive(1, 7, "first");
  arrive_rts(1, 7, "second");
  arrive(1, 7, "third");
  EXPECT_EQ(take(1, 7), "first");
  EXPECT_EQ(take(1, MPI_ANY_TAG), "second");
  EXPECT_EQ(take(MPI_ANY_SOURCE, 7), "third");
}

TEST_F(Receiving, a_withdrawn_rts_is_skipped_by_receives_and_probes) {
  std::uint64_t first = arrive_rts(1, 7, "gone");
  arrive_rts(1, 7, "here");
  fake::withdraw(first);
  Completion envelope;
  ASSERT_TRUE(probe(1, 7, communicator, envelope));
  EXPECT_EQ(envelope.bytes, 4);
  EXPECT_EQ(take(1, 7), "here");
  std::uint64_t last = arrive_rts(1, 7, "gone too");
  fake::withdraw(last);
  EXPECT_FALSE(probe(1, 7, communicator, envelope));
}

TEST_F(Receiving, a_posted_receive_is_cancelled_and_one_whose_data_moves_is_not) {
  std::string buffer(16, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
  ASSERT_TRUE(cancel(*request).ok());
  MPI_Status status;
  EXPECT_TRUE(wait(request, &status).ok());
  EXPECT_TRUE(status_cancelled(status));

  fake::move_at_once(false);
  ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
  arrive_rts(1, 7, "data");
  EXPECT_FALSE(request->complete);
  ASSERT_TRUE(cancel(*request).ok());
  EXPECT_FALSE(request->complete);
  fake::finish_moving();
  EXPECT_TRUE(wait(request, &status).ok());
  EXPECT_FALSE(status_cancelled(status));
  EXPECT_EQ(buffer.substr(0, 4), "data");
}

TEST_F(Receiving, a_transfer_that_fails_is_the_receives_error) {
  fake::move_at_once(false);
  std::string buffer(16, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
  arrive_rts(1, 7, "data");
  fake::finish_moving(MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(wait(request).code(), MPI_ERR_PROC_ABORTED);
}

TEST_F(Receiving, a_freed_receive_still_receives_and_then_goes) {
  std::string buffer(16, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), 1, 7, communicator, request).ok());
  MPI_Request handle = public_handle(*request), stale = handle;
  free_request(handle, *request);
  EXPECT_EQ(handle, MPI_REQUEST_NULL);
  EXPECT_EQ(find_request(stale), nullptr);
  EXPECT_EQ(live_requests(), 1u);
  arrive(1, 7, "late");
  EXPECT_EQ(buffer.substr(0, 4), "late");
  EXPECT_EQ(live_requests(), 0u);
}

TEST_F(Receiving, the_null_process_answers_at_once) {
  std::string buffer(4, '.');
  Completion completion;
  ASSERT_TRUE(receive(text(buffer), MPI_PROC_NULL, 5, communicator, completion).ok());
  EXPECT_EQ(completion.source, MPI_PROC_NULL);
  EXPECT_EQ(completion.tag, MPI_ANY_TAG);
  EXPECT_EQ(completion.bytes, 0);
  Completion envelope;
  EXPECT_TRUE(probe(MPI_PROC_NULL, MPI_ANY_TAG, communicator, envelope));
  EXPECT_EQ(envelope.source, MPI_PROC_NULL);
  EXPECT_EQ(buffer, "....");
}

TEST_F(Receiving, a_matched_message_is_out_of_reach_for_other_receives_and_its_sender) {
  arrive_rts(1, 7, "mine");
  arrive(1, 7, "theirs");
  bool found = false;
  Message* message = nullptr;
  Completion envelope;
  ASSERT_TRUE(probe_matched(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, found, message, envelope).ok());
  ASSERT_TRUE(found);
  EXPECT_EQ(find_message(public_handle(*message)), message);
  EXPECT_EQ(envelope.bytes, 4);
  EXPECT_EQ(take(MPI_ANY_SOURCE, MPI_ANY_TAG), "theirs");
  std::string buffer(16, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_receive_matched(*message, text(buffer), request).ok());
  EXPECT_TRUE(wait(request).ok());
  EXPECT_EQ(buffer.substr(0, 4), "mine");
}

TEST_F(Receiving, a_persistent_receive_is_started_again_and_again) {
  std::string buffer(4, '.');
  Request* request = nullptr;
  ASSERT_TRUE(make_receive(text(buffer), 1, 7, communicator, request).ok());
  EXPECT_FALSE(request->active);
  MPI_Request handle = public_handle(*request);
  for (std::string data : {"one", "two"}) {
    ASSERT_TRUE(start(*request).ok());
    EXPECT_EQ(start(*request).code(), MPI_ERR_REQUEST);
    arrive(1, 7, data);
    wait_complete(*request);
    EXPECT_TRUE(finish(handle, *request, MPI_STATUS_IGNORE, false).ok());
    EXPECT_EQ(handle, public_handle(*request));
    EXPECT_FALSE(request->active);
    EXPECT_EQ(buffer.substr(0, 3), data);
  }
  free_request(handle, *request);
}

TEST_F(Receiving, a_status_holds_counts_of_more_than_32_bits) {
  MPI_Status status{};
  set_status_bytes(status, (MPI_Count{1} << 40) + 5);
  set_status_cancelled(status, true);
  EXPECT_EQ(status_bytes(status), (MPI_Count{1} << 40) + 5);
  EXPECT_TRUE(status_cancelled(status));
  write_empty_status(&status);
  EXPECT_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
  EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
  EXPECT_EQ(status.MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(status_bytes(status), 0);
  EXPECT_FALSE(status_cancelled(status));
}

} // namespace
} // namespace near::p2p
