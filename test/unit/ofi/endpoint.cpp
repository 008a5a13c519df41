// Endpoints on this machine's own interface, which every machine has.
#include "ofi/endpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <poll.h>
#include <string>

namespace near::ofi {
namespace {

Choice here(const char* provider) { return {.provider = provider, .domain = "lo"}; }

/// Takes what is over at `at`, while `other` makes progress as well.
Completion wait_for_one(Endpoint& at, Endpoint& other) {
  std::array<Completion, 1> one{};
  std::array<Completion, 8> ignored{};
  std::size_t count = 0;
  while (count == 0) {
    EXPECT_TRUE(at.take(one, count).ok()) << base::failure_text();
    std::size_t others = 0;
    EXPECT_TRUE(other.take(ignored, others).ok()) << base::failure_text();
  }
  return one[0];
}

class Endpoints : public testing::TestWithParam<const char*> {
protected:
  void SetUp() override {
    for (Endpoint* each : {&first, &second})
      ASSERT_TRUE(each->open(here(GetParam())).ok()) << base::failure_text();
    ASSERT_TRUE(first.insert(second.address(), to_second).ok()) << base::failure_text();
  }
  void TearDown() override {
    first.close();
    second.close();
  }
  Endpoint first, second;
  fi_addr_t to_second = 0;
};
INSTANTIATE_TEST_SUITE_P(Networks, Endpoints, testing::Values("tcp", "net"));

TEST_P(Endpoints, a_message_arrives_in_the_memory_that_was_posted) {
  char out[] = "hello", in[64] = {};
  Operation receiving{{}, Operation::What::receive}, sending{{}, Operation::What::send};
  ASSERT_EQ(second.receive(in, sizeof in, nullptr, receiving), 0);
  std::int64_t sent = 0;
  while ((sent = first.send(out, sizeof out, nullptr, to_second, sending)) == -FI_EAGAIN) {
    // The connection is made by progress on both sides.
    std::array<Completion, 1> none{};
    std::size_t count = 0;
    ASSERT_TRUE(first.take(none, count).ok() && count == 0);
    ASSERT_TRUE(second.take(none, count).ok() && count == 0);
  }
  ASSERT_EQ(sent, 0);
  const Completion arrived = wait_for_one(second, first);
  EXPECT_EQ(arrived.operation, &receiving);
  EXPECT_EQ(arrived.bytes, sizeof out);
  EXPECT_EQ(arrived.error, 0);
  EXPECT_STREQ(in, "hello");
}

TEST_P(Endpoints, an_address_of_another_network_is_refused) {
  Endpoint other;
  ASSERT_TRUE(other.open(here(std::string_view(GetParam()) == "net" ? "tcp" : "net")).ok());
  fi_addr_t peer = 0;
  EXPECT_TRUE(first.insert(other.address(), peer).is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("name the same network for all"), std::string_view::npos)
      << base::failure_text();
  EXPECT_TRUE(first.insert({}, peer).is(base::Code::invalid));
  EXPECT_TRUE(first.insert(first.address().first(5), peer).is(base::Code::invalid));
  other.close();
}

TEST_P(Endpoints, one_that_is_idle_may_sleep) {
  std::array<Completion, 1> none{};
  std::size_t count = 0;
  ASSERT_TRUE(first.take(none, count).ok());
  EXPECT_EQ(count, 0u);
  ASSERT_TRUE(first.can_sleep());
  const bool is_silent = first.name().starts_with("net ");
  ASSERT_EQ(first.descriptor() < 0, is_silent) << first.name();
  if (is_silent) return;
  pollfd waiting{first.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 20), 0) << "nothing has happened";
}

TEST(Endpoint, a_network_that_does_not_exist_is_refused_with_those_that_do) {
  Endpoint endpoint;
  ASSERT_TRUE(endpoint.open({.provider = "carrier-pigeon", .domain = "lo"}).is(base::Code::unsupported));
  const std::string text(base::failure_text());
  EXPECT_NE(text.find("carrier-pigeon on lo"), std::string::npos) << text;
  EXPECT_NE(text.find("tcp;ofi_rxm on lo"), std::string::npos) << text;
  EXPECT_FALSE(endpoint.is_open());
}

TEST(Endpoint, of_the_tcp_providers_the_faster_one_is_taken) {
  Endpoint endpoint;
  ASSERT_TRUE(endpoint.open({.domain = "lo"}).ok()) << base::failure_text();
  EXPECT_TRUE(endpoint.name() == "net on lo" || endpoint.name() == "tcp on lo") << endpoint.name();
  endpoint.close();
}

} // namespace
} // namespace near::ofi
