// The documents of several machines: what they are worth together, and their page.
#include "place/show.h"
#include "segment/activity.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace near;

namespace {

/// Two ranks with so many bytes each, of which one still runs.
place::Snapshot job_of(std::uint64_t bytes) {
  place::Snapshot snapshot;
  snapshot.job = "nearmpi-1";
  for (int rank : {0, 1}) {
    place::Process& process = snapshot.processes.emplace_back();
    process.rank = rank;
    process.bytes_on[0] = bytes;
    process.phase = segment::phase_name(rank == 0 ? segment::Phase::ready : segment::Phase::finalized);
  }
  place::Part& part = snapshot.parts.emplace_back();
  part.owner = 1;
  part.bytes_on[0] = 7;
  return snapshot;
}

TEST(several_machines, are_worth_what_they_are_together) {
  EXPECT_EQ(place::weight_of(job_of(100)), (place::Weight{true, 1, 207}));
  const place::Documents both = {{"m1", place::json_of(job_of(1), false)},
                                 {"m2", place::json_of(job_of(100), false)}};
  EXPECT_EQ(place::weight_of(both), (place::Weight{true, 2, 9 + 207}));
  EXPECT_EQ(place::weight_of(place::Documents{{"m1", ""}, {"m2", "near: no"}, {"m3", "7"}}), place::Weight{})
      << "no machine has answered";
  EXPECT_EQ(place::weight_of(place::Documents{{"m1", "{}"}}), (place::Weight{true, 0, 0}));
}

TEST(several_machines, a_snapshot_with_more_ranks_and_then_more_memory_is_worth_more) {
  place::Snapshot launcher = job_of(1'000'000);
  launcher.job.clear();
  place::Snapshot ended = job_of(1'000'000);
  ended.processes[0].phase = ended.processes[1].phase;
  EXPECT_LT(place::weight_of(launcher), place::weight_of(ended));
  EXPECT_LT(place::weight_of(ended), place::weight_of(job_of(1)));
  EXPECT_LT(place::weight_of(job_of(1)), place::weight_of(job_of(2)));
}

TEST(several_machines, are_on_one_page) {
  const std::string document = place::json_of(job_of(1), false), opening = "id=\"snapshot\">";
  const std::string text = place::page_of(place::Documents{{"</script>", document}, {"m2", ""}});
  const auto begin = text.find(opening) + opening.size();
  const auto machines =
      nlohmann::json::parse(text.substr(begin, text.find("</script>", begin) - begin))["machines"];
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(machines[0]["machine"], "</script>");
  EXPECT_EQ(machines[0]["snapshot"], nlohmann::json::parse(document));
  EXPECT_TRUE(machines[1]["snapshot"].is_null()) << "it has not answered";
}

} // namespace
