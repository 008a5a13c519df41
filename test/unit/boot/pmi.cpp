// PMI-1: the descriptions that launchers give, and a conversation with a launcher that the test plays.
#include "boot/pmi.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace near::boot {
namespace {

std::string machines(std::string_view mapping, std::uint32_t size) {
  std::vector<std::uint32_t> found;
  if (!machines_of(mapping, size, found).ok()) return "refused";
  std::string text;
  for (std::uint32_t each : found) text += std::to_string(each);
  return text;
}

TEST(Pmi, mappings_are_blocks_of_machines) {
  EXPECT_EQ(machines("(vector,(0,1,4))", 4), "0000");
  EXPECT_EQ(machines("(vector,(0,2,2))", 4), "0011");
  EXPECT_EQ(machines("(vector,(0,2,1))", 5), "01010") << "blocks are used again";
  EXPECT_EQ(machines("(vector,(0,1,2),(1,1,3))", 5), "00111");
  EXPECT_EQ(machines("(vector,(0,1,2),1)", 3), "001") << "a number is a machine with one process";
  EXPECT_EQ(machines("(vector,[(0,2,1)]x2,0)", 5), "01010");
  EXPECT_EQ(machines("(vector,[0,(1,1,2)]x2,0)", 7), "0110110");
  EXPECT_EQ(machines("(vector,(3,1,1))", 1), "3");
}

TEST(Pmi, other_texts_are_refused) {
  for (const char* text :
       {"", "(", "(vector)", "(vector,)", "(vector,(0,2))", "(vector,(0,0,1))", "(vector,(0,1,0))",
        "(vector,(a,1,1))", "(vector,(0,1,1)", "(vector,[(0,1,1)])", "(vector,[(0,1,1)]x)",
        "(vector,[0]x99999999)", "(vector,(0,1,1)) ", "(matrix,(0,1,1))", "(vector,(4294967296,1,1))"})
    EXPECT_EQ(machines(text, 4), "refused") << text;
  EXPECT_NE(base::failure_text().find("4294967296"), std::string_view::npos) << base::failure_text();
}

TEST(Pmi, fields_are_found_by_their_whole_name) {
  constexpr std::string_view line = "cmd=maxes rc=0 kvsname_max=256 value=(vector,(0,1,2))";
  EXPECT_EQ(field_of(line, "cmd"), "maxes");
  EXPECT_EQ(field_of(line, "kvsname_max"), "256");
  EXPECT_EQ(field_of(line, "kvsname"), "");
  EXPECT_EQ(field_of(line, "value"), "(vector,(0,1,2))");
  EXPECT_EQ(field_of("", "cmd"), "");
}

/// Answers the requests of one client with these texts, in turn; what the client asked is kept.
class Launcher {
public:
  explicit Launcher(std::vector<std::string> answers) : answers_(std::move(answers)) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) std::abort();
    client_ = ends[0];
    thread_ = std::thread([this, end = ends[1]] {
      for (const std::string& answer : answers_) {
        std::string line;
        for (char byte = 0; read(end, &byte, 1) == 1 && byte != '\n';) line += byte;
        asked_.push_back(line);
        // In two parts, since a line may arrive in pieces.
        if (write(end, answer.data(), answer.size() / 2) < 0) break;
        if (write(end, answer.data() + answer.size() / 2, answer.size() - answer.size() / 2) < 0) break;
      }
      close(end);
    });
  }
  ~Launcher() {
    close(client_);
    if (thread_.joinable()) thread_.join();
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  Result connect(Pmi& pmi) {
    rows_ = {"PMI_FD=" + std::to_string(client_), "PMI_RANK=1", "PMI_SIZE=4"};
    std::vector<char*> pointers;
    for (auto& row : rows_) pointers.push_back(row.data());
    pointers.push_back(nullptr);
    EXPECT_TRUE(Pmi::is_offered(pointers.data()));
    return pmi.connect(pointers.data());
  }
  const std::vector<std::string>& asked() {
    thread_.join();
    return asked_;
  }

private:
  std::vector<std::string> answers_, asked_, rows_;
  int client_ = -1;
  std::thread thread_;
};

const std::vector<std::string> greeting = {"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n",
                                           "cmd=my_kvsname kvsname=kvs_1\n", "cmd=appnum appnum=3\n"};

std::vector<std::string> after_greeting(std::vector<std::string> more) {
  more.insert(more.begin(), greeting.begin(), greeting.end());
  return more;
}

TEST(Pmi, a_process_greets_puts_and_gets) {
  Launcher launcher(after_greeting({"cmd=put_result rc=0\n", "cmd=barrier_out\n",
                                    "cmd=get_result rc=0 msg=success value=a b\n",
                                    "cmd=get_result rc=-1 msg=key_not_found\n", "cmd=finalize_ack\n"}));
  Pmi pmi;
  ASSERT_TRUE(launcher.connect(pmi).ok()) << base::failure_text();
  EXPECT_EQ(pmi.rank(), 1u);
  EXPECT_EQ(pmi.size(), 4u);
  EXPECT_EQ(pmi.application(), 3u);
  EXPECT_TRUE(pmi.put("here", "text").ok());
  EXPECT_TRUE(pmi.fence().ok());
  std::string value;
  ASSERT_TRUE(pmi.get("there", value).ok());
  EXPECT_EQ(value, "a b");
  EXPECT_FALSE(pmi.get("nowhere", value).ok());
  EXPECT_NE(base::failure_text().find("key_not_found"), std::string_view::npos) << base::failure_text();
  EXPECT_TRUE(pmi.finalize().ok());
  EXPECT_EQ(launcher.asked()[3], "cmd=put kvsname=kvs_1 key=here value=text");
}

TEST(Pmi, a_launcher_of_another_version_is_refused) {
  Launcher launcher({"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n"});
  Pmi pmi;
  EXPECT_TRUE(launcher.connect(pmi).is(base::Code::unsupported));
  EXPECT_NE(base::failure_text().find("version 2 of PMI"), std::string_view::npos) << base::failure_text();
}

TEST(Pmi, the_end_of_the_launcher_is_an_error) {
  Launcher launcher(greeting);
  Pmi pmi;
  ASSERT_TRUE(launcher.connect(pmi).ok());
  EXPECT_TRUE(pmi.fence().is(base::Code::gone)) << base::failure_text();
}

TEST(Pmi, a_descriptor_that_is_not_open_is_named) {
  std::array<char, 32> fd{"PMI_FD=871"}, rank{"PMI_RANK=0"}, size{"PMI_SIZE=2"};
  std::array<char*, 4> environment{fd.data(), rank.data(), size.data(), nullptr};
  Pmi pmi;
  EXPECT_TRUE(pmi.connect(environment.data()).is(base::Code::gone));
  EXPECT_NE(base::failure_text().find("PMI_FD=871 is not open"), std::string_view::npos);
}

TEST(Pmi, one_process_is_no_job) {
  std::array<char, 32> fd{"PMI_FD=3"}, rank{"PMI_RANK=0"}, size{"PMI_SIZE=1"};
  std::array<char*, 4> environment{fd.data(), rank.data(), size.data(), nullptr};
  EXPECT_FALSE(Pmi::is_offered(environment.data()));
}

} // namespace
} // namespace near::boot
