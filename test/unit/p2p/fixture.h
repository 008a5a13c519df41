// A communicator of eight processes over the fake transport; this process is rank 0.
#pragma once

#include "fake_transport.h"
#include "p2p/engine.h"

#include <gtest/gtest.h>

#include <array>

namespace near::p2p {

namespace fake = transport::fake;

class Messages : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(datatype::make_predefined_types().ok());
    attach();
    fake::reset();
    for (std::uint32_t i = 0; i < members.size(); ++i) members[i].rank = i;
    communicator.context = 64;
    communicator.rank = 0;
    communicator.size = communicator.peers = static_cast<int>(members.size());
    communicator.process_ids = members.data();
  }
  void TearDown() override {
    EXPECT_EQ(matching().unexpected(), 0u) << "the test left messages unreceived";
    EXPECT_TRUE(fake::nothing_held()) << "a credit or packet was not given back";
    EXPECT_FALSE(has_deferred());
    EXPECT_EQ(communicator.references.load_relaxed(), 1);
    EXPECT_EQ(live_requests(), 0u) << "requests leak";
  }

  static Buffer text(std::string& of) {
    return Buffer{of.data(), static_cast<MPI_Count>(of.size()), datatype::find_datatype(MPI_BYTE)};
  }
  transport::Envelope from(int source, int tag, std::size_t bytes) const {
    return {communicator.context, source, tag, bytes};
  }
  void arrive(int source, int tag, const std::string& data) const {
    fake::arrive(source, from(source, tag, data.size()), data);
  }
  std::uint64_t arrive_rts(int source, int tag, const std::string& data) const {
    return fake::arrive_rts(source, from(source, tag, data.size()), data);
  }
  /// As MPI_Wait.
  static Result wait(Request* request, MPI_Status* status = MPI_STATUS_IGNORE) {
    wait_complete(*request);
    MPI_Request handle = public_handle(*request);
    return finish(handle, *request, status, false);
  }
  /// Receives with the blocking call and returns the data.
  std::string take(int source, int tag, std::size_t room = 4096) {
    std::string buffer(room, '.');
    Completion completion;
    Result result = receive(text(buffer), source, tag, communicator, completion);
    EXPECT_TRUE(result.ok());
    buffer.resize(static_cast<std::size_t>(completion.bytes));
    return buffer;
  }

  std::array<object::ProcessId, 8> members;
  Communicator communicator;
};

} // namespace near::p2p
