// Sends over the fake transport: eager, rendezvous, deferral, modes, buffers, cancel, send-receive.
#include "fixture.h"

#include <new>

namespace near::p2p {
namespace {

class Sending : public Messages {};

Request* must_start(const Buffer& buffer, int to, int tag, Communicator& on, SendMode mode) {
  Request* request = nullptr;
  EXPECT_TRUE(start_send(buffer, to, tag, on, mode, request).ok());
  return request;
}

TEST_F(Sending, a_small_blocking_send_leaves_at_once_and_makes_no_request) {
  std::string data = "hello";
  ASSERT_TRUE(send(text(data), 1, 7, communicator, SendMode::standard).ok());
  ASSERT_EQ(fake::world().sent.size(), 1u);
  EXPECT_EQ(fake::world().sent[0].envelope.tag, 7);
  EXPECT_EQ(fake::world().sent[0].transfer, nullptr);
}

TEST_F(Sending, a_message_to_self_comes_back) {
  std::string small = "small", large(5000, 'l');
  Request* first = must_start(text(small), 0, 1, communicator, SendMode::standard);
  Request* second = must_start(text(large), 0, 2, communicator, SendMode::standard);
  EXPECT_EQ(take(0, 2, 6000), large);
  EXPECT_EQ(take(0, 1), small);
  EXPECT_TRUE(wait(first).ok());
  EXPECT_TRUE(wait(second).ok());
}

TEST_F(Sending, a_synchronous_send_completes_with_its_receiver_even_when_empty) {
  std::string data;
  Request* request = must_start(text(data), 1, 7, communicator, SendMode::synchronous);
  EXPECT_FALSE(request->complete);
  ASSERT_NE(fake::world().sent[0].transfer, nullptr);
  fake::finish_sent(0);
  EXPECT_TRUE(wait(request).ok());
}

TEST_F(Sending, sends_beyond_the_descriptors_wait_their_turn_in_order) {
  fake::world().eager_left = 0;
  fake::world().rts_left = 2;
  std::string data = "x";
  Request* requests[6];
  for (int i = 0; i < 6; ++i) requests[i] = must_start(text(data), 1, i, communicator, SendMode::standard);
  EXPECT_EQ(fake::world().sent.size(), 2u);
  fake::world().eager_left = 100; // eager is possible again, but must not overtake
  std::string later = "later";
  Request* last = must_start(text(later), 1, 6, communicator, SendMode::standard);
  Request* other = must_start(text(later), 2, 0, communicator, SendMode::standard);
  EXPECT_TRUE(other->complete) << "another peer's messages need not wait";
  (void)progress();
  fake::finish_sent(0);
  fake::finish_sent(1);
  (void)progress();
  for (Request* each : requests) EXPECT_TRUE(wait(each).ok());
  EXPECT_TRUE(wait(last).ok());
  EXPECT_TRUE(wait(other).ok());
  int expected = 0;
  for (const auto& sent : fake::world().sent) {
    if (sent.to->number == 1) { EXPECT_EQ(sent.envelope.tag, expected++); }
  }
  EXPECT_EQ(expected, 7);
}

TEST_F(Sending, an_unmatched_send_is_cancelled_and_a_matched_one_is_not) {
  std::string data(5000, 'd');
  Request* first = must_start(text(data), 1, 1, communicator, SendMode::standard);
  Request* second = must_start(text(data), 1, 2, communicator, SendMode::standard);
  fake::match_sent(1);
  ASSERT_TRUE(cancel(*first).ok());
  ASSERT_TRUE(cancel(*second).ok());
  EXPECT_TRUE(first->complete);
  EXPECT_FALSE(second->complete);
  fake::finish_sent(1);
  MPI_Status status;
  EXPECT_TRUE(wait(first, &status).ok());
  EXPECT_TRUE(status_cancelled(status));
  EXPECT_TRUE(wait(second, &status).ok());
  EXPECT_FALSE(status_cancelled(status));
}

TEST_F(Sending, a_deferred_send_is_cancelled_without_leaving) {
  fake::world().rts_left = 0;
  std::string data(5000, 'd');
  Request* first = must_start(text(data), 1, 1, communicator, SendMode::standard);
  Request* second = must_start(text(data), 1, 2, communicator, SendMode::standard);
  ASSERT_TRUE(cancel(*second).ok());
  ASSERT_TRUE(cancel(*first).ok());
  EXPECT_FALSE(has_deferred());
  EXPECT_TRUE(wait(first).ok());
  EXPECT_TRUE(wait(second).ok());
  EXPECT_TRUE(fake::world().sent.empty());
}

TEST_F(Sending, a_buffered_send_returns_at_once_and_its_copy_leaves_later) {
  fake::world().eager_left = 0;
  std::vector<char> room(2000 + MPI_BSEND_OVERHEAD);
  ASSERT_TRUE(attach_buffer(nullptr, room.data(), static_cast<MPI_Count>(room.size())).ok());
  std::string data(2000, 'b');
  ASSERT_TRUE(send(text(data), 0, 1, communicator, SendMode::buffered).ok());
  data.assign(2000, '-');
  EXPECT_EQ(take(0, 1), std::string(2000, 'b'));
  void* base = nullptr;
  MPI_Count size = 0;
  ASSERT_TRUE(detach_buffer(nullptr, base, size).ok());
  EXPECT_EQ(base, room.data());
  EXPECT_EQ(size, static_cast<MPI_Count>(room.size()));
}

TEST_F(Sending, a_full_buffer_is_an_error_that_says_how_full) {
  std::vector<char> room(4000 + MPI_BSEND_OVERHEAD);
  std::string data(2000, 'b'), more(3000, 'c');
  EXPECT_EQ(send(text(data), 1, 1, communicator, SendMode::buffered).code(), MPI_ERR_BUFFER);
  ASSERT_TRUE(attach_buffer(nullptr, room.data(), static_cast<MPI_Count>(room.size())).ok());
  EXPECT_EQ(attach_buffer(nullptr, room.data(), 1).code(), MPI_ERR_BUFFER);
  ASSERT_TRUE(send(text(data), 1, 1, communicator, SendMode::buffered).ok());
  EXPECT_EQ(send(text(more), 1, 2, communicator, SendMode::buffered).code(), MPI_ERR_BUFFER);
  EXPECT_NE(base::failure_text().find("finds no free space"), std::string::npos);
  ASSERT_TRUE(send(text(data), 1, 3, communicator, SendMode::buffered).ok());
  Request* flush = nullptr;
  ASSERT_TRUE(start_flush_buffer(nullptr, flush).ok());
  EXPECT_FALSE(flush->complete);
  fake::finish_sent(0);
  fake::finish_sent(1);
  EXPECT_TRUE(wait(flush).ok());
  void* base = nullptr;
  MPI_Count size = 0;
  ASSERT_TRUE(detach_buffer(nullptr, base, size).ok());
  EXPECT_EQ(detach_buffer(nullptr, base, size).code(), MPI_ERR_BUFFER);
}

TEST_F(Sending, an_automatic_buffer_has_room_for_everything) {
  ASSERT_TRUE(attach_buffer(&communicator, MPI_BUFFER_AUTOMATIC, 0).ok());
  std::string data(5000, 'a');
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(send(text(data), 0, i, communicator, SendMode::buffered).ok());
  for (int i = 50; i-- > 0;) EXPECT_EQ(take(0, i, 6000), data);
  forget(communicator);
  EXPECT_EQ(send(text(data), 0, 1, communicator, SendMode::buffered).code(), MPI_ERR_BUFFER);
}

TEST_F(Sending, drain_waits_for_sends_whose_requests_were_freed) {
  std::string data(5000, 'd'), buffer(5000, '.');
  Request* request = must_start(text(data), 0, 1, communicator, SendMode::standard);
  MPI_Request handle = public_handle(*request);
  free_request(handle, *request);
  Request* receive = nullptr;
  ASSERT_TRUE(start_receive(text(buffer), 0, 1, communicator, receive).ok());
  drain();
  EXPECT_EQ(live_requests(), 1u);
  EXPECT_TRUE(wait(receive).ok());
  EXPECT_EQ(buffer, data);
}

TEST_F(Sending, send_receive_with_self_in_all_four_forms) {
  std::string out = "ping", in(8, '.');
  Completion completion;
  ASSERT_TRUE(send_receive(text(out), 0, 3, text(in), 0, 3, communicator, completion).ok());
  EXPECT_EQ(in.substr(0, 4), "ping");
  EXPECT_EQ(completion.bytes, 4);

  in.assign(8, '.');
  Request* request = nullptr;
  ASSERT_TRUE(start_send_receive(text(out), 0, 3, text(in), 0, 3, communicator, request).ok());
  MPI_Status status;
  EXPECT_TRUE(wait(request, &status).ok());
  EXPECT_EQ(status.MPI_SOURCE, 0);
  EXPECT_EQ(status_bytes(status), 4);
  EXPECT_EQ(in.substr(0, 4), "ping");

  std::string both(5000, 'r');
  arrive(2, 9, "from two");
  Request* sent = must_start(text(out), 1, 0, communicator, SendMode::standard);
  EXPECT_TRUE(wait(sent).ok());
  ASSERT_TRUE(start_send_receive_replace(text(both), 1, 4, 2, 9, communicator, request).ok());
  EXPECT_FALSE(request->complete);
  fake::finish_sent(1);
  EXPECT_TRUE(wait(request, &status).ok());
  EXPECT_EQ(both.substr(0, 9), "from twor");

  both.assign(5000, 's');
  ASSERT_TRUE(send_receive_replace(text(both), 0, 4, 0, 4, communicator, completion).ok());
  EXPECT_EQ(both, std::string(5000, 's'));
}

TEST_F(Sending, a_program_that_only_sends_looks_for_the_answers_that_the_transport_expects) {
  std::string data(10, 'a'), large(5000, 'b');
  auto sends = [&] {
    EXPECT_TRUE(send(text(data), 1, 1, communicator, SendMode::standard).ok());
    EXPECT_TRUE(wait(must_start(text(data), 1, 1, communicator, SendMode::standard)).ok());
    Request* rendezvous = must_start(text(large), 1, 1, communicator, SendMode::standard);
    const int looks = fake::world().looks;
    fake::finish_sent(fake::world().sent.size() - 1);
    EXPECT_TRUE(wait(rendezvous).ok());
    return looks;
  };
  EXPECT_EQ(sends(), 0);
  transport::answers_due.store_relaxed(1);
  EXPECT_EQ(sends(), 3);
}

TEST_F(Sending, a_partition_that_is_ready_wakes_whoever_waits_for_the_request) {
  std::string data(100, 'p');
  Request* request = nullptr;
  ASSERT_TRUE(make_partitioned_send(text(data), 1, 1, 7, communicator, request).ok());
  ASSERT_TRUE(start(*request).ok());
  const int before = fake::world().wakes;
  ASSERT_TRUE(mark_ready(*request, 0).ok());
  EXPECT_GT(fake::world().wakes, before);
  MPI_Request handle = public_handle(*request);
  wait_complete(*request);
  EXPECT_TRUE(finish(handle, *request, MPI_STATUS_IGNORE, false).ok());
  free_request(handle, *request);
}

/// Finds no memory in its second step.
struct Unlucky : Schedule {
  int calls = 0;
  bool advance(Completion&) override {
    if (++calls == 2) throw std::bad_alloc();
    return calls > 2;
  }
};

TEST_F(Sending, a_schedule_that_finds_no_memory_once_goes_on) {
  Request* request = nullptr;
  ASSERT_TRUE(make_scheduled(&communicator, std::make_unique<Unlucky>(), false, request).ok());
  EXPECT_THROW(progress(), std::bad_alloc);
  EXPECT_FALSE(request->complete);
  EXPECT_TRUE(progress());
  EXPECT_TRUE(request->complete);
  EXPECT_TRUE(wait(request).ok());
}

TEST_F(Sending, a_persistent_send_is_freed_while_active) {
  std::string data(5000, 'p');
  Request* request = nullptr;
  ASSERT_TRUE(make_send(text(data), 1, 7, communicator, SendMode::synchronous, request).ok());
  MPI_Request handle = public_handle(*request);
  ASSERT_TRUE(start(*request).ok());
  fake::finish_sent(0);
  EXPECT_TRUE(finish(handle, *request, MPI_STATUS_IGNORE, false).ok());
  ASSERT_TRUE(start(*request).ok());
  free_request(handle, *request);
  EXPECT_EQ(live_requests(), 1u);
  fake::finish_sent(1);
  EXPECT_EQ(live_requests(), 0u);
}

} // namespace
} // namespace near::p2p
