// PMIx: what a process asks its launcher, which the test plays by functions in place of libpmix's.
#include "boot/pmix.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace near::boot {
namespace {

using pmix::Info;
using pmix::Process;
using pmix::Type;
using pmix::Value;

/// What libpmix's functions find, and what they were asked.
struct Played {
  int init_status = 0, fence_status = 0;
  std::uint32_t rank = 1;
  std::map<std::string, Value> values; ///< by "rank key"
  std::map<std::string, std::string> texts;
  std::vector<std::string> asked;
  void (*when_over)(int, void*) = nullptr;
  void* data = nullptr;
  pmix::Handler handler = nullptr;
};
Played played;
// Of another thread.
std::atomic<int> aborted_with{0};
std::atomic<bool> answers_abort{true};

constexpr int not_found = -46;

Value number(std::uint32_t of, Type type = Type::uint32) {
  Value made{};
  made.type = type;
  made.uint32 = of;
  return made;
}

std::string name_of(const Process* process, const char* key) {
  const std::string who = process->rank == pmix::all_ranks ? "all" : std::to_string(process->rank);
  return std::string(process->job) + " " + who + " " + key;
}

const pmix::Library library = {
    .Init = [](Process* self, Info*, std::size_t) -> int {
      std::strcpy(self->job, "job");
      self->rank = played.rank;
      return played.init_status;
    },
    .Finalize = [](const Info*, std::size_t) -> int {
      played.asked.emplace_back("finalize");
      return 0;
    },
    .Abort = [](int status, const char*, Process*, std::size_t) -> int {
      aborted_with = status;
      while (!answers_abort) pause();
      return 0;
    },
    .Put = [](std::uint8_t scope, const char* key, Value* value) -> int {
      played.asked.push_back("put " + std::to_string(scope) + " " + key + " " + value->text);
      return value->type == Type::text ? 0 : -1;
    },
    .Commit = []() -> int {
      played.asked.emplace_back("commit");
      return 0;
    },
    .Fence = [](const Process* processes, std::size_t, const Info* info, std::size_t infos) -> int {
      const bool collects =
          infos == 1 && info->value.type == Type::flag && info->value.flag && processes == nullptr;
      played.asked.push_back(std::string("fence ") + (collects ? info->key : "?"));
      return played.fence_status;
    },
    .Fence_nb = [](const Process*, std::size_t, const Info*, std::size_t, void (*when_over)(int, void*),
                   void* data) -> int {
      played.when_over = when_over;
      played.data = data;
      return 0;
    },
    .Get = [](const Process* process, const char* key, const Info* info, std::size_t infos,
              Value** value) -> int {
      const std::string name = name_of(process, key);
      played.asked.push_back("get " + name + " " + (infos == 1 ? info->key : "?"));
      const auto text = played.texts.find(name);
      const auto found = played.values.find(name);
      if (text == played.texts.end() && found == played.values.end()) return not_found;
      *value = static_cast<Value*>(std::malloc(sizeof(Value)));
      **value = found != played.values.end() ? found->second : Value{};
      if (text != played.texts.end()) {
        (*value)->type = Type::text;
        (*value)->text = strdup(text->second.c_str());
      }
      return 0;
    },
    .Register_event_handler = [](int* statuses, std::size_t count, Info*, std::size_t, pmix::Handler handler,
                                 void (*)(int, std::size_t, void*), void*) -> int {
      if (count == 1 && *statuses == pmix::lost_connection) played.handler = handler;
      return 0;
    },
    .Error_string = [](int status) -> const char* { return status == not_found ? "NOT-FOUND" : nullptr; },
};

std::array<char*, 1> no_environment{nullptr};

class PmixTest : public testing::Test {
protected:
  PmixTest() {
    played = {};
    played.values["job all pmix.job.size"] = number(4);
    played.values["job 1 pmix.appnum"] = number(2);
  }
  Result connect() { return pmix.connect(no_environment.data()); }
  Pmix pmix{library};
};

TEST_F(PmixTest, a_process_learns_who_it_is_without_asking_the_launcher) {
  ASSERT_TRUE(connect().ok()) << base::failure_text();
  EXPECT_EQ(pmix.rank(), 1u);
  EXPECT_EQ(pmix.size(), 4u);
  EXPECT_EQ(pmix.application(), 2u);
  for (const auto& each : played.asked) EXPECT_TRUE(each.ends_with(" pmix.optional")) << each;
}

TEST_F(PmixTest, the_number_of_the_program_may_be_of_another_type_or_absent) {
  played.values["job 1 pmix.appnum"] = number(3, Type::integer);
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(pmix.application(), 3u);
  played.values.erase("job 1 pmix.appnum");
  ASSERT_TRUE(connect().ok());
  EXPECT_EQ(pmix.application(), 0u);
}

TEST_F(PmixTest, a_launcher_that_does_not_answer_is_named) {
  played.init_status = -25;
  std::string job = "PMIX_NAMESPACE=job-of-yesterday";
  std::array<char*, 2> environment{job.data(), nullptr};
  EXPECT_TRUE(pmix.connect(environment.data()).is(base::Code::gone));
  EXPECT_NE(base::failure_text().find("PMIX_NAMESPACE=job-of-yesterday does not answer"),
            std::string_view::npos)
      << base::failure_text();
}

TEST_F(PmixTest, a_job_without_a_size_is_refused) {
  played.values["job all pmix.job.size"] = number(4, static_cast<Type>(12));
  EXPECT_TRUE(connect().is(base::Code::unsupported));
  EXPECT_NE(base::failure_text().find("pmix.job.size has the type 12"), std::string_view::npos);
  played.values.erase("job all pmix.job.size");
  EXPECT_TRUE(connect().is(base::Code::unsupported));
  EXPECT_NE(base::failure_text().find("NOT-FOUND"), std::string_view::npos) << base::failure_text();
}

TEST_F(PmixTest, a_rank_outside_the_job_is_refused) {
  played.rank = 4;
  EXPECT_TRUE(connect().is(base::Code::invalid));
  EXPECT_NE(base::failure_text().find("PMIX_RANK=4 is outside a job of 4 processes"), std::string_view::npos);
}

TEST_F(PmixTest, machines_are_numbered_in_the_order_of_the_ranks) {
  ASSERT_TRUE(connect().ok());
  const std::array<const char*, 4> hosts{"zeta", "alpha", "zeta", "beta"};
  for (std::size_t rank = 0; rank < 4; ++rank)
    played.texts["job " + std::to_string(rank) + " pmix.hname"] = hosts[rank];
  std::vector<std::uint32_t> machines;
  ASSERT_TRUE(pmix.find_machines(machines).ok()) << base::failure_text();
  EXPECT_EQ(machines, (std::vector<std::uint32_t>{0, 1, 0, 2}));
  played.texts.erase("job 2 pmix.hname");
  EXPECT_TRUE(pmix.find_machines(machines).is(base::Code::unsupported));
  EXPECT_NE(base::failure_text().find("on which machine rank 2 is"), std::string_view::npos);
}

TEST_F(PmixTest, what_was_put_is_spread_by_the_fence_and_got_in_limited_time) {
  ASSERT_TRUE(connect().ok());
  played.asked.clear();
  ASSERT_TRUE(pmix.put("key", "a text").ok());
  ASSERT_TRUE(pmix.fence().ok());
  played.texts["job 3 key"] = "another";
  std::string value;
  ASSERT_TRUE(pmix.get(3, "key", value).ok());
  EXPECT_EQ(value, "another");
  EXPECT_EQ(played.asked, (std::vector<std::string>{"put 3 key a text", "commit", "fence pmix.collect",
                                                    "get job 3 key pmix.timeout"}));
}

TEST_F(PmixTest, what_is_missing_or_no_text_is_an_error) {
  ASSERT_TRUE(connect().ok());
  std::string value = "unchanged";
  EXPECT_TRUE(pmix.get(3, "key", value).is(base::Code::invalid));
  played.values["job 3 key"] = number(7);
  EXPECT_TRUE(pmix.get(3, "key", value).is(base::Code::invalid));
  EXPECT_EQ(value, "unchanged");
}

TEST_F(PmixTest, a_fence_that_fails_says_so) {
  ASSERT_TRUE(connect().ok());
  played.fence_status = not_found;
  EXPECT_FALSE(pmix.fence().ok());
  EXPECT_EQ(base::failure_text(), "PMIx_Fence: NOT-FOUND");
}

TEST_F(PmixTest, the_last_fence_is_over_when_libpmix_says_so) {
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(pmix.begin_fence().ok());
  bool over = true;
  ASSERT_TRUE(pmix.look_at_fence(over).ok());
  EXPECT_FALSE(over);
  std::thread([] { played.when_over(0, played.data); }).join();
  ASSERT_TRUE(pmix.look_at_fence(over).ok());
  EXPECT_TRUE(over);
  played.when_over(-61, played.data);
  EXPECT_FALSE(pmix.look_at_fence(over).ok());
  EXPECT_TRUE(over);
}

TEST_F(PmixTest, an_abort_ends_although_the_launcher_does_not_answer) {
  static Pmix& asking = *new Pmix(library);
  ASSERT_TRUE(asking.connect(no_environment.data()).ok());
  asking.abort(7);
  EXPECT_EQ(aborted_with, 7);
  static Pmix& waiting = *new Pmix(library); // used by its thread until the test ends
  ASSERT_TRUE(waiting.connect(no_environment.data()).ok());
  answers_abort = false;
  waiting.abort(8);
  EXPECT_EQ(aborted_with, 8);
}

TEST_F(PmixTest, the_loss_of_the_launcher_is_told) {
  static int told = 0, answers = 0;
  ASSERT_TRUE(connect().ok());
  pmix.when_lost([] { ++told; });
  ASSERT_NE(played.handler, nullptr);
  EXPECT_EQ(told, 0);
  const auto answer = [](int status, Info*, std::size_t, void (*)(int, void*), void*, void* event) {
    if (status == pmix::event_handled && event == &answers) ++answers;
  };
  played.handler(1, pmix::lost_connection, nullptr, nullptr, 0, nullptr, 0, answer, &answers);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(answers, 1) << "libpmix waits for the handler's answer";
}

TEST_F(PmixTest, a_launcher_is_there_if_job_and_rank_are_named) {
  const auto offered = [](std::vector<std::string> rows) {
    std::vector<char*> environment;
    for (auto& row : rows) environment.push_back(row.data());
    environment.push_back(nullptr);
    return Pmix::is_offered(environment.data());
  };
  EXPECT_TRUE(offered({"PMIX_NAMESPACE=job", "PMIX_RANK=3"}));
  EXPECT_FALSE(offered({"PMIX_NAMESPACE=job"}));
  EXPECT_FALSE(offered({"PMIX_RANK=3"}));
  EXPECT_FALSE(offered({"PMIX_NAMESPACE=", "PMIX_RANK=3"}));
  EXPECT_FALSE(offered({"PMIX_NAMESPACE=job", "PMIX_RANK=x"}));
  EXPECT_FALSE(offered({"PMIX_NAMESPACE=job", "PMIX_RANK="}));
  EXPECT_FALSE(offered({"PMIX_NAMESPACE=job", "PMIX_RANK=-1"}));
}

} // namespace
} // namespace near::boot
