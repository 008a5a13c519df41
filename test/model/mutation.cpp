// The mutation tests: if any single ordering of a header in src/queue is weakened, a scenario fails. The
// orderings are found in the text of the headers, so a new one that no scenario needs fails here.
#include "explore.h"
#include "sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>

namespace {

using namespace near::model;

struct Weakening {
  const Ordering* ordering;
  std::string name; ///< "slot_queue.cas_acquire.1 without acquire"
  Mutant mutant;
};

void PrintTo(const Weakening& weakening, std::ostream* out) { *out << weakening.name; }

/// One for each half of an ordering: both halves of an acq_rel must be needed.
std::vector<Weakening> weakenings() {
  std::vector<Weakening> all;
  for (const Ordering& ordering : orderings()) {
    const std::string& operation = ordering.operation;
    Mutant mutant{ordering.file, ordering.line, false, false, false};
    bool both = operation.ends_with("_acq_rel");
    if (both || operation.ends_with("_acquire")) {
      mutant.acquire = true;
      all.push_back({&ordering, ordering.name + " without acquire", mutant});
      mutant.acquire = false;
    }
    if (both || operation.ends_with("_release")) {
      mutant.release = true;
      all.push_back({&ordering, ordering.name + " without release", mutant});
      mutant.release = false;
    }
    if (!mutant.acquire && !operation.ends_with("_acquire") && !operation.ends_with("_release") && !both) {
      mutant.removed = true;
      all.push_back({&ordering, ordering.name + " removed", mutant});
    }
  }
  return all;
}

/// Reads unkillable.txt: "name: reason" for each weakening that no scenario can notice.
std::map<std::string, std::string> unkillable() {
  std::map<std::string, std::string> reasons;
  std::ifstream file(source_root() + "/test/model/unkillable.txt");
  EXPECT_TRUE(file.is_open());
  for (std::string line; std::getline(file, line);) {
    auto colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    reasons[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return reasons;
}

bool executes(const Scenario& scenario, const Ordering& ordering) {
  static auto& sites = *new std::map<const Scenario*, std::set<Site>>;
  auto known = sites.find(&scenario);
  if (known == sites.end()) known = sites.emplace(&scenario, sites_of(scenario)).first;
  return std::any_of(known->second.begin(), known->second.end(), [&](const Site& site) {
    return site.second == ordering.line && site.first.ends_with(ordering.file);
  });
}

class mutation : public testing::TestWithParam<Weakening> {};

TEST_P(mutation, makes_a_scenario_fail) {
  const Weakening& weakening = GetParam();
  std::vector<const Scenario*> concerned;
  for (const Scenario* scenario : scenarios())
    if (executes(*scenario, *weakening.ordering)) concerned.push_back(scenario);
  ASSERT_FALSE(concerned.empty()) << "no scenario executes " << weakening.ordering->operation << " at "
                                  << weakening.ordering->file << ":" << weakening.ordering->line
                                  << ": write one (test/model/README.md)";
  auto reasons = unkillable();
  auto excused = reasons.find(weakening.name);
  Finding finding;
  const Scenario* by = nullptr;
  // First a few walks of each scenario: most weakenings are noticed at once.
  for (unsigned walks : {1'000u, 20'000u})
    for (std::size_t i = 0; i < concerned.size() && !finding.found; ++i) {
      by = concerned[i];
      finding = walk(*by, weakening.mutant, 0, walks * effort());
    }
  for (std::size_t i = 0; i < concerned.size() && !finding.found; ++i) {
    bool complete = false;
    by = concerned[i];
    finding = search(*by, by->plan.bounds, weakening.mutant, 200'000, complete);
  }
  if (excused != reasons.end()) {
    EXPECT_FALSE(finding.found) << weakening.name << " is noticed after all, by " << by->name
                                << ": take it out of test/model/unkillable.txt";
    return;
  }
  EXPECT_TRUE(finding.found) << "no scenario notices " << weakening.ordering->file << ":"
                             << weakening.ordering->line << " " << weakening.name
                             << ". Write a scenario that does, or weaken it in the header, or explain it in "
                                "test/model/unkillable.txt";
  if (finding.found) std::printf("    noticed by %s: %s\n", by->name, finding.why.c_str());
  if (std::getenv("NEAR_MODEL_SHOW") != nullptr) std::printf("%s", finding.report.c_str());
}

INSTANTIATE_TEST_SUITE_P(every_ordering, mutation, testing::ValuesIn(weakenings()), [](const auto& instance) {
  std::string name = instance.param.name;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '.' || c == ' '; }, '_');
  return name;
});

TEST(mutations, each_line_has_one_ordering) { // otherwise one mutant would weaken two
  std::set<std::pair<std::string, unsigned>> lines;
  for (const Ordering& ordering : orderings())
    EXPECT_TRUE(lines.insert({ordering.file, ordering.line}).second)
        << ordering.file << ":" << ordering.line << " has two orderings: give each a line of its own";
}

TEST(mutations, the_unkillable_are_orderings_that_exist) {
  std::set<std::string> names;
  for (const Weakening& weakening : weakenings()) names.insert(weakening.name);
  for (const auto& [name, reason] : unkillable()) {
    EXPECT_EQ(names.count(name), 1u) << name << " in test/model/unkillable.txt is not an ordering";
    EXPECT_GE(reason.size(), 40u) << name << " needs its reason";
  }
}

TEST(mutations, the_headers_orderings_are_found) {
  // The list is neither empty nor incomplete: it contains every place at which a scenario executes an
  // operation with an order.
  std::set<Site> listed;
  for (const Ordering& ordering : orderings()) listed.insert({ordering.file, ordering.line});
  EXPECT_GE(listed.size(), 10u);
  for (const Scenario* scenario : scenarios())
    for (const auto& [file, line] : sites_of(*scenario)) {
      auto at = file.rfind("queue/");
      if (at == std::string::npos) at = file.rfind("base/seqlock.h");
      if (at == std::string::npos || file.find("test/model") != std::string::npos) continue;
      EXPECT_EQ(listed.count({file.substr(at), line}), 1u)
          << file << ":" << line << " is not found in the text";
    }
}

} // namespace
