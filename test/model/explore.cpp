#include "explore.h"

#include "model.h"
#include "sources.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string_view>

namespace near::model {

namespace {

/// One object serves all executions, so its stacks and buffers are reused.
Execution& execution() {
  static Execution& only = *new Execution;
  return only;
}

/// Words found to be shared, by scenario.
std::bitset<max_words>& known_shared(const Scenario& scenario) {
  static auto& known = *new std::map<const Scenario*, std::bitset<max_words>>;
  return known[&scenario];
}

Execution::Result run_once(const Scenario& scenario, Chooser& chooser, const Bounds& bounds,
                           const Mutant& mutant, bool tracing = false) {
  Execution& one = execution();
  one.shared = known_shared(scenario);
  Stage stage;
  auto result = one.run([&] { scenario.body(stage); }, chooser, bounds, mutant, tracing);
  known_shared(scenario) = one.shared;
  return result;
}

/// States that were reached, and how much was left of the bounds then.
class Reached {
public:
  Reached() : entries_(1u << 12) {}
  /// Returns whether the state was reached before with at least as much left; otherwise records it.
  bool before(std::uint64_t state, const Bounds& left) {
    state |= 1; // 0 marks a free entry
    if (2 * count_ > entries_.size()) grow();
    Entry& entry = find(state);
    std::array<std::uint16_t, 4> now = {small(left.preemptions), small(left.stale), small(left.deferrals),
                                        small(left.kills)};
    if (entry.state == 0) {
      ++count_;
      entry = {state, now};
      return false;
    }
    bool covered = true, more = true;
    for (std::size_t i = 0; i < now.size(); ++i) {
      covered = covered && now[i] <= entry.left[i];
      more = more && now[i] >= entry.left[i];
    }
    if (more) entry.left = now;
    return covered;
  }

private:
  struct Entry {
    std::uint64_t state = 0;
    std::array<std::uint16_t, 4> left{};
  };
  static std::uint16_t small(unsigned number) { return static_cast<std::uint16_t>(std::min(number, 65535u)); }
  Entry& find(std::uint64_t state) {
    std::size_t mask = entries_.size() - 1, at = state >> 20 & mask;
    while (entries_[at].state != 0 && entries_[at].state != state) at = (at + 1) & mask;
    return entries_[at];
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.state != 0) find(entry.state) = entry;
  }

  std::vector<Entry> entries_;
  std::size_t count_ = 0;
};

/// Takes each alternative of each decision in turn, the last decision first, and turns back at known states.
class DepthFirst : public Chooser {
public:
  explicit DepthFirst(bool remembers) : remembers_(remembers) {}
  unsigned choose(Choice, unsigned alternatives) override {
    if (at_ == path_.size()) path_.push_back({0, alternatives});
    if (path_[at_].alternatives != alternatives) {
      std::fprintf(stderr, "model: the scenario does not do the same when it is repeated\n");
      std::abort();
    }
    return path_[at_++].chosen;
  }
  /// Goes to the next path; returns false if there is none.
  bool next() {
    at_ = 0;
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().alternatives) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    return true;
  }
  void restart() {
    at_ = 0;
    path_.clear();
    reached_ = {};
  }
  bool knows_states() const override { return remembers_ && at_ == path_.size(); }
  bool been_here(std::uint64_t state, const Bounds& left) override { return reached_.before(state, left); }

private:
  struct Step {
    unsigned chosen, alternatives;
  };
  std::vector<Step> path_;
  std::size_t at_ = 0;
  bool remembers_;
  Reached reached_;
};

/// Random numbers that are the same on all machines (splitmix64).
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(next() % limit); }
  bool one_in(unsigned many) { return below(many) == 0; }

private:
  std::uint64_t state_;
};

/// A random walk. Half of the walks switch threads with a fixed probability; the others give the threads
/// priorities that change at a few random points (probabilistic concurrency testing, Burckhardt et al.,
/// ASPLOS 2010), which finds failures that need few switches at the right places.
class Walk : public Chooser {
public:
  Walk(unsigned number, unsigned usual_length) : random_(number), by_priority_(number % 2 == 0) {
    switch_one_in_ = 2u << random_.below(4);
    stale_one_in_ = 2u << random_.below(4);
    std::iota(priority_.begin(), priority_.end(), low_);
    for (std::size_t i = priority_.size(); i > 1; --i)
      std::swap(priority_[i - 1], priority_[random_.below(static_cast<unsigned>(i))]);
    changes_ = random_.below(static_cast<unsigned>(change_at_.size()) + 1);
    for (unsigned i = 0; i < changes_; ++i) change_at_[i] = random_.below(std::max(usual_length, 1u));
  }
  Bounds bounds(const Bounds& planned) {
    return {unbounded, random_.below(5), random_.below(3), planned.kills};
  }
  unsigned choose(Choice kind, unsigned alternatives) override {
    switch (kind) {
    case Choice::message:
    case Choice::place: return random_.one_in(stale_one_in_) ? 1 + random_.below(alternatives - 1) : 0;
    case Choice::kill: return random_.one_in(16) ? 1 : 0;
    case Choice::defer:
    case Choice::side:
    case Choice::thread: return random_.below(alternatives);
    }
    return 0;
  }
  unsigned choose_thread(std::span<const ThreadId> candidates) override {
    if (!by_priority_)
      return random_.one_in(switch_one_in_) ? random_.below(static_cast<unsigned>(candidates.size())) : 0;
    for (unsigned i = 0; i < changes_; ++i)
      if (change_at_[i] == length_) priority_[candidates[0]] = i;
    ++length_;
    auto best = std::max_element(candidates.begin(), candidates.end(),
                                 [&](ThreadId a, ThreadId b) { return priority_[a] < priority_[b]; });
    return static_cast<unsigned>(best - candidates.begin());
  }

private:
  Random random_;
  bool by_priority_;
  unsigned switch_one_in_, stale_one_in_, changes_ = 0, length_ = 0;
  static constexpr unsigned low_ = 16; ///< lower priorities are those after a change
  std::array<unsigned, max_threads> priority_{};
  std::array<unsigned, 5> change_at_{};
};

/// Repeats recorded decisions, then takes the default ones.
class Repeat : public Chooser {
public:
  explicit Repeat(const std::vector<std::uint8_t>& decisions) : decisions_(decisions) {}
  unsigned choose(Choice, unsigned alternatives) override {
    unsigned chosen = at_ < decisions_.size() ? decisions_[at_] : 0;
    ++at_;
    return std::min(chosen, alternatives - 1);
  }

private:
  const std::vector<std::uint8_t>& decisions_;
  std::size_t at_ = 0;
};

void drop_plain_end(std::vector<std::uint8_t>& decisions) {
  while (!decisions.empty() && decisions.back() == 0) decisions.pop_back();
}

/// Replaces decisions by the default, or omits them, as long as the execution still fails.
std::vector<std::uint8_t> shortened(const Scenario& scenario, const Bounds& bounds, const Mutant& mutant,
                                    std::vector<std::uint8_t> decisions) {
  auto still_fails = [&](std::vector<std::uint8_t> tried) {
    Repeat repeat(tried);
    if (run_once(scenario, repeat, bounds, mutant) != Execution::Result::failed) return false;
    auto made = execution().decisions();
    drop_plain_end(made);
    auto weight = [](const std::vector<std::uint8_t>& list) {
      return std::pair(list.size() - static_cast<std::size_t>(std::count(list.begin(), list.end(), 0)),
                       list.size());
    };
    if (weight(made) >= weight(decisions)) return false;
    decisions = std::move(made);
    return true;
  };
  drop_plain_end(decisions);
  bool better = true;
  for (int round = 0; better && round < 20; ++round) {
    better = false;
    for (std::size_t at = decisions.size(); at-- > 0;) {
      if (at >= decisions.size()) continue;
      auto plain = decisions, without = decisions;
      plain[at] = 0;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
      better |= (decisions[at] != 0 && still_fails(plain)) || still_fails(without);
    }
  }
  return decisions;
}

// ---- schedules as text: shared words, bounds, decisions ----

std::string number_text(unsigned number) { return number >= unbounded ? "-" : std::to_string(number); }

std::string schedule_text(const Scenario& scenario, const Bounds& bounds,
                          const std::vector<std::uint8_t>& decisions) {
  char shared[24];
  std::snprintf(shared, sizeof shared, "%llx", known_shared(scenario).to_ullong());
  std::string text = std::string(shared) + "/" + number_text(bounds.preemptions) + "," +
                     number_text(bounds.stale) + "," + number_text(bounds.deferrals) + "," +
                     number_text(bounds.kills) + "/";
  for (std::size_t at = 0; at < decisions.size();) {
    std::size_t end = at;
    while (end < decisions.size() && decisions[end] == decisions[at]) ++end;
    if (at != 0) text += '.';
    text += std::to_string(decisions[at]);
    if (end - at > 1) text += "x" + std::to_string(end - at);
    at = end;
  }
  return text;
}

struct Schedule {
  std::bitset<max_words> shared;
  Bounds bounds;
  std::vector<std::uint8_t> decisions;
};

Schedule parse_schedule(const std::string& text) {
  Schedule schedule;
  const char* at = text.c_str();
  char* end = nullptr;
  auto number = [&]() -> unsigned {
    if (*at == '-') {
      at += 2;
      return unbounded;
    }
    auto value = static_cast<unsigned>(std::strtoul(at, &end, 10));
    at = end + (*end != '\0');
    return value;
  };
  schedule.shared = std::strtoull(at, &end, 16);
  at = end + (*end != '\0');
  schedule.bounds.preemptions = number();
  schedule.bounds.stale = number();
  schedule.bounds.deferrals = number();
  schedule.bounds.kills = number();
  while (*at != '\0') {
    auto value = static_cast<std::uint8_t>(std::strtoul(at, &end, 10));
    unsigned long times = 1;
    at = end;
    if (*at == 'x') {
      times = std::strtoul(at + 1, &end, 10);
      at = end;
    }
    schedule.decisions.insert(schedule.decisions.end(), std::min(times, 100'000ul), value);
    if (*at == '\0') break;
    ++at;
  }
  return schedule;
}

// ---- reports ----

std::string trace_text(const std::vector<TraceLine>& trace) {
  struct Row {
    std::string cells[7];
  };
  std::vector<Row> rows = {{{"thread", "operation", "word", "value", "order", "where", "label"}}};
  for (const TraceLine& line : trace) {
    std::string where;
    if (line.where.line() != 0) {
      std::string_view file = line.where.file_name();
      where = std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(line.where.line());
    }
    std::string value = line.value;
    if (!line.note.empty()) value += (value.empty() ? "" : "  ") + ("(" + line.note + ")");
    std::string_view order = line.order;
    bool ordered = order != "relaxed" && order != "plain";
    std::string label =
        ordered && line.where.line() != 0 ? label_at(line.where.file_name(), line.where.line()) : "";
    rows.push_back({{line.thread, line.operation, line.word, value, line.order, where, label}});
  }
  std::size_t width[7] = {};
  for (const Row& row : rows)
    for (int i = 0; i < 7; ++i) width[i] = std::max(width[i], row.cells[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string out = "   ";
    for (int i = 0; i < 7; ++i)
      out += " " + row.cells[i] + std::string(width[i] - row.cells[i].size() + 1, ' ');
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

std::string mutant_text(const Mutant& mutant) {
  if (mutant.file.empty()) return {};
  return "  with " + mutant.file + ":" + std::to_string(mutant.line) + " weakened\n";
}

Finding report(const Scenario& scenario, const Bounds& bounds, const Mutant& mutant,
               const std::vector<std::uint8_t>& decisions) {
  Finding finding;
  finding.found = true;
  Repeat repeat(decisions);
  if (run_once(scenario, repeat, bounds, mutant, true) != Execution::Result::failed) {
    finding.why = finding.report =
        "a failure that did not come again: the scenario depends on something outside of it";
    return finding;
  }
  finding.why = execution().failure();
  std::string name = scenario.name;
  finding.report = name + ": " + finding.why + "\n" + mutant_text(mutant) + trace_text(execution().trace());
  if (mutant.file.empty())
    finding.report += "  again: NEAR_MODEL_SCHEDULE='" + schedule_text(scenario, bounds, decisions) +
                      "' model_queue --gtest_filter=" + name + "\n";
  return finding;
}

Finding found(const Scenario& scenario, const Bounds& bounds, const Mutant& mutant,
              std::uint64_t executions) {
  auto decisions = shortened(scenario, bounds, mutant, execution().decisions());
  Finding finding = report(scenario, bounds, mutant, decisions);
  finding.executions = executions;
  return finding;
}

std::vector<const Scenario*>& registered() {
  static auto& all = *new std::vector<const Scenario*>;
  return all;
}

} // namespace

const Scenario* add_scenario(const Scenario& scenario) {
  registered().push_back(new Scenario(scenario));
  return registered().back();
}

const std::vector<const Scenario*>& scenarios() { return registered(); }

Finding search(const Scenario& scenario, const Bounds& bounds, const Mutant& mutant, std::uint64_t most,
               bool& complete, bool remembers) {
  DepthFirst path(remembers);
  std::uint64_t executions = 0;
  complete = false;
  while (executions < most) {
    ++executions;
    auto result = run_once(scenario, path, bounds, mutant);
    if (result == Execution::Result::failed) return found(scenario, bounds, mutant, executions);
    if (result == Execution::Result::again) {
      path.restart();
      continue;
    }
    if (!path.next()) {
      complete = true;
      break;
    }
  }
  Finding nothing;
  nothing.executions = executions;
  return nothing;
}

Finding walk(const Scenario& scenario, const Mutant& mutant, unsigned first, unsigned count) {
  unsigned usual_length = 50;
  for (unsigned number = first; number < first + count; ++number) {
    for (;;) {
      Walk way(number, usual_length);
      Bounds bounds = way.bounds(scenario.plan.bounds);
      auto result = run_once(scenario, way, bounds, mutant);
      if (result == Execution::Result::failed) return found(scenario, bounds, mutant, number - first + 1);
      if (result == Execution::Result::held) break;
    }
    usual_length = (7 * usual_length + execution().steps() + 7) / 8;
  }
  Finding nothing;
  nothing.executions = count;
  return nothing;
}

Finding replay(const Scenario& scenario, const Mutant& mutant, const std::string& schedule) {
  Schedule parsed = parse_schedule(schedule);
  known_shared(scenario) = parsed.shared;
  Repeat repeat(parsed.decisions);
  auto result = run_once(scenario, repeat, parsed.bounds, mutant, true);
  if (result == Execution::Result::failed) return report(scenario, parsed.bounds, mutant, parsed.decisions);
  Finding nothing;
  nothing.report = trace_text(execution().trace());
  nothing.executions = 1;
  return nothing;
}

std::set<Site> sites_of(const Scenario& scenario) {
  std::set<Site> sites;
  execution().sites = &sites;
  walk(scenario, {}, 0, 200);
  execution().sites = nullptr;
  return sites;
}

unsigned effort() {
  const char* text = std::getenv("NEAR_MODEL_EFFORT");
  return text == nullptr ? 1 : std::max(1u, static_cast<unsigned>(std::strtoul(text, nullptr, 10)));
}

void expect_holds(const Scenario& scenario) {
  if (const char* schedule = std::getenv("NEAR_MODEL_SCHEDULE")) {
    Finding finding = replay(scenario, {}, schedule);
    std::printf("%s", finding.report.c_str());
    EXPECT_FALSE(finding.found) << finding.why;
    return;
  }
  constexpr std::uint64_t most = 5'000'000;
  bool complete = false;
  Finding searched = search(scenario, scenario.plan.bounds, {}, most, complete);
  ASSERT_FALSE(searched.found) << searched.report;
  EXPECT_TRUE(complete) << "the bounds of this scenario's plan allow more than " << most
                        << " executions: make it smaller or its bounds tighter";
  Finding walked = walk(scenario, {}, 0, scenario.plan.walks * effort());
  ASSERT_FALSE(walked.found) << walked.report;
  std::printf("    %llu executions: all with up to %u switches, %u stale reads, %u late reads and %u deaths; "
              "%llu random walks\n",
              static_cast<unsigned long long>(searched.executions), scenario.plan.bounds.preemptions,
              scenario.plan.bounds.stale, scenario.plan.bounds.deferrals, scenario.plan.bounds.kills,
              static_cast<unsigned long long>(walked.executions));
  if (effort() == 1) return;
  Bounds further = scenario.plan.bounds;
  ++further.preemptions;
  Finding deeper = search(scenario, further, {}, effort() * std::uint64_t{100'000}, complete);
  ASSERT_FALSE(deeper.found) << deeper.report;
  std::printf("    %llu executions with one switch more%s\n",
              static_cast<unsigned long long>(deeper.executions), complete ? ", which are all" : "");
}

} // namespace near::model
