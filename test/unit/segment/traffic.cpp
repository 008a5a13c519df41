// Counts of sent messages, read from a segment that this test fills by hand.
#include "segment/traffic.h"
#include "os/pages.h"
#include "segment/activity.h"

#include <gtest/gtest.h>

#include <random>

using namespace near::segment;

namespace {

constexpr std::uint32_t rows = 1024; // a column has four pages
constexpr Offset traffic_begin = 64 << 12;

/// A segment in which the process in row 0 is ready and has a table of the messages that it has sent.
class TrafficOfOne : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(segment.create(rows, 1000, 2).ok()) << near::base::failure_text();
    control = new (segment.at<std::byte>(segment.region(0))) ControlPage{};
    control->traffic = segment.region(0) + traffic_begin;
    segment.entry(0).phase.store_release(static_cast<std::uint32_t>(Phase::ready));
  }
  void send(Path path, std::uint32_t to, std::uint64_t messages, std::uint64_t bytes) {
    auto& row = segment.at<Traffic>(control->traffic)[static_cast<std::size_t>(path) * rows + to];
    row.messages.bump_relaxed(messages);
    row.bytes.bump_relaxed(bytes);
  }
  std::uint64_t bytes_that_exist() {
    std::uint64_t sum = 0;
    for (Offset first = 0, behind = 0;
         near::os::next_data(segment.descriptor(), behind, segment.bytes(), first, behind);)
      sum += behind - first;
    return sum;
  }
  auto read() { return traffic_of(segment, segment.descriptor(), 0); }

  Segment segment;
  ControlPage* control = nullptr;
};

TEST_F(TrafficOfOne, is_nothing_before_the_first_message) {
  std::uint64_t before = bytes_that_exist();
  EXPECT_TRUE(read().empty());
  EXPECT_EQ(bytes_that_exist(), before);
}

TEST_F(TrafficOfOne, is_counted_by_receiver_and_path) {
  send(Path::inlined, 0, 1, 8);
  send(Path::inlined, 999, 3, 0);
  send(Path::packet, 513, 2, 2000);
  send(Path::pipelined, 513, 1, 1 << 20);
  send(Path::cma, 999, 1, 5);
  auto sent = read();
  ASSERT_EQ(sent.size(), 3u);
  auto is = [&](std::uint32_t to, Path path, std::uint64_t messages, std::uint64_t bytes) {
    const Amount& amount = sent.at(to)[static_cast<std::size_t>(path)];
    return amount.messages == messages && amount.bytes == bytes;
  };
  EXPECT_TRUE(is(0, Path::inlined, 1, 8) && is(0, Path::pipelined, 0, 0));
  EXPECT_TRUE(is(513, Path::packet, 2, 2000) && is(513, Path::pipelined, 1, 1 << 20) &&
              is(513, Path::inlined, 0, 0));
  EXPECT_TRUE(is(999, Path::inlined, 3, 0) && is(999, Path::cma, 1, 5));
  EXPECT_NE(job_table(segment, segment.descriptor(), {}, 0).find(" 8     1.0 MiB "), std::string::npos);
}

TEST_F(TrafficOfOne, is_read_without_making_pages) {
  send(Path::inlined, 300, 1, 8); // the second page of the first column
  send(Path::direct, 1, 1, 8);
  std::uint64_t before = bytes_that_exist();
  EXPECT_EQ(read().size(), 2u);
  job_table(segment, segment.descriptor(), {}, 0);
  EXPECT_EQ(bytes_that_exist(), before);
}

TEST_F(TrafficOfOne, is_nothing_where_the_owner_wrote_nonsense) {
  send(Path::inlined, 0, 1, 8);
  const Offset end = segment.region(1);
  for (Offset wrong : {Offset{0}, segment.region(0) - 16, control->traffic + 8, end, end - 4096,
                       segment.bytes(), ~Offset{0} - 15, ~Offset{0} - traffic_bytes(rows) + 1}) {
    control->traffic = wrong;
    EXPECT_TRUE(read().empty()) << wrong;
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 10000; ++i) { // only existing pages of its own region are read
    control->traffic = random() >> random() % 64;
    (void)read();
  }
}

} // namespace
