// Every call that would have to copy a buffer outside host memory refuses it.
#include "fixture.h"

namespace near::p2p {
namespace {

class DeviceMemory : public Messages {
protected:
  Buffer on_device(MPI_Count bytes) {
    return Buffer{data_.data(), bytes, datatype::find_datatype(MPI_BYTE), datatype::MemoryKind::device};
  }
  static void expect_refused(const Result& result) {
    EXPECT_EQ(result.code(), MPI_ERR_BUFFER);
    EXPECT_NE(base::failure_text().find("memory of a GPU"), std::string::npos) << base::failure_text();
  }
  void expect_untouched() const {
    EXPECT_EQ(data_, std::string(data_.size(), '.'));
    EXPECT_TRUE(fake::world().sent.empty());
  }

private:
  std::string data_ = std::string(64, '.');
};

TEST_F(DeviceMemory, sends_from_it_are_refused_and_nothing_leaves) {
  Request* request = nullptr;
  for (auto mode : {SendMode::standard, SendMode::buffered, SendMode::synchronous, SendMode::ready}) {
    expect_refused(send(on_device(8), 1, 7, communicator, mode));
    expect_refused(start_send(on_device(8), 1, 7, communicator, mode, request));
    expect_refused(make_send(on_device(8), 1, 7, communicator, mode, request));
  }
  expect_untouched();
}

TEST_F(DeviceMemory, receives_into_it_are_refused_and_the_message_stays) {
  arrive(1, 7, "kept");
  Request* request = nullptr;
  Completion completion;
  expect_refused(receive(on_device(8), 1, 7, communicator, completion));
  expect_refused(start_receive(on_device(8), 1, 7, communicator, request));
  expect_refused(make_receive(on_device(8), 1, 7, communicator, request));
  expect_untouched();
  EXPECT_EQ(take(1, 7), "kept");
}

TEST_F(DeviceMemory, send_receive_is_refused_for_either_side) {
  std::string data = "host";
  Completion completion;
  expect_refused(send_receive(on_device(4), 1, 7, text(data), 1, 7, communicator, completion, Channel::user));
  expect_refused(send_receive(text(data), 1, 7, on_device(4), 1, 7, communicator, completion, Channel::user));
  expect_refused(send_receive_replace(on_device(4), 1, 7, 1, 7, communicator, completion));
  expect_untouched();
}

TEST_F(DeviceMemory, an_empty_message_needs_no_copy) {
  ASSERT_TRUE(send(on_device(0), 1, 7, communicator, SendMode::standard).ok());
  EXPECT_EQ(fake::world().sent.size(), 1u);
  arrive(1, 7, "");
  Completion completion;
  EXPECT_TRUE(receive(on_device(0), 1, 7, communicator, completion).ok());
}

} // namespace
} // namespace near::p2p
