// Judges and displays an invented snapshot of a job on a machine with four nodes.
#include "place/show.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

using namespace near;
using place::Kind;
using place::Snapshot;
using What = place::Warning::What;

namespace {

constexpr std::uint64_t page = 4096;

os::CpuSet cpus(unsigned first, unsigned last) {
  os::CpuSet set;
  set.add_range(first, last);
  return set;
}

/// Four nodes with two processors each; rank r on node r, with a heap and a queue of `pages` pages there.
Snapshot job(std::uint64_t pages) {
  Snapshot made;
  made.job = "nearmpi-77";
  made.launcher = 77;
  made.at = "2026-11-21T18:00:00Z";
  made.page_bytes = page;
  for (int node = 0; node < 4; ++node) {
    auto first = static_cast<unsigned>(2 * node);
    made.nodes.push_back({node, cpus(first, first + 1), 256u << 20, 100u << 20});
    place::Process rank;
    rank.pid = 100 + node;
    rank.rank = node;
    rank.program = "/home/somebody/simulate";
    rank.allowed = cpus(first, first);
    rank.nodes = {node};
    rank.planned = 2 * node;
    rank.node = node;
    place::Mapping heap;
    heap.kind = Kind::heap;
    heap.entry = {0x1000, 0x1000 + pages * page, "rw-p", 0, "00:00", 0, "[heap]",
                  page,   pages * page,          0,      0, 0,       ""};
    heap.line.policy = "local";
    heap.line.page_bytes = page;
    heap.line.pages_on[node] = pages;
    heap.intended = {node};
    heap.own = {pages * page, pages * page};
    heap.located = true;
    heap.ranges = {{0x1000, 0x1000 + pages * page, node, false}};
    rank.bytes_on[node] = pages * page;
    rank.mappings.push_back(heap);
    made.processes.push_back(rank);
    place::Part queue;
    queue.owner = node;
    queue.role = "queue";
    queue.begin = static_cast<std::uint64_t>(node + 1) << 30;
    queue.end = queue.begin + pages * page;
    queue.node = node;
    queue.bytes_on[node] = pages * page;
    queue.share = {pages * page, pages * page};
    queue.ranges = {{queue.begin, queue.end, node, false}};
    made.parts.push_back(queue);
  }
  return made;
}

/// Moves the last page of rank 0's queue to node 3, whose rank maps it.
void plant(Snapshot& snapshot) {
  auto& queue = snapshot.parts[0];
  queue.bytes_on[0] -= page;
  queue.bytes_on[3] += page;
  queue.share.local -= page;
  queue.ranges[0].end -= page;
  queue.ranges.push_back({queue.end - page, queue.end, 3, true});
  queue.mapped_by = {0, 3};
}

TEST(kinds, are_told_by_name_and_permissions) {
  auto kind = [](const char* name, const char* permissions = "rw-p") {
    place::SmapsEntry entry;
    entry.name = name;
    entry.permissions = permissions;
    return place::kind_of(entry, "/bin/a.out");
  };
  EXPECT_EQ(kind("/bin/a.out"), Kind::program);
  EXPECT_EQ(kind("/lib/libc.so.6"), Kind::library);
  EXPECT_EQ(kind("/lib/module.so"), Kind::library);
  EXPECT_EQ(kind("/lib/libold.so.1 (deleted)"), Kind::library);
  EXPECT_EQ(kind("/data/a.source"), Kind::file);
  EXPECT_EQ(kind("[heap]"), Kind::heap);
  EXPECT_EQ(kind("[stack]"), Kind::stack);
  EXPECT_EQ(kind(""), Kind::anonymous);
  EXPECT_EQ(kind("[anon:glibc: malloc]"), Kind::anonymous);
  EXPECT_EQ(kind("/memfd:nearmpi (deleted)", "rw-s"), Kind::segment);
  EXPECT_EQ(kind("/dev/shm/x", "rw-s"), Kind::shared);
  EXPECT_EQ(kind("[vvar_vclock]", "r--p"), Kind::kernel);
}

TEST(ranges, grow_while_node_and_judgement_are_the_same) {
  std::vector<place::Range> ranges;
  place::append_page(ranges, 0x1000, page, 0, false);
  place::append_page(ranges, 0x2000, page, 0, false);
  place::append_page(ranges, 0x3000, page, 1, true);
  place::append_page(ranges, 0x5000, page, 1, true); // after a hole
  place::append_page(ranges, 0x6000, page, 1, false);
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(ranges[0].end, 0x3000u);
  EXPECT_EQ(ranges[2].begin, 0x5000u);
}

TEST(judgement, nothing_to_say_of_a_job_in_its_place) {
  auto snapshot = job(100);
  EXPECT_TRUE(place::warnings_of(snapshot).empty());
  bool judged = false;
  EXPECT_TRUE(place::offenders(snapshot, 100, judged).empty());
  EXPECT_TRUE(judged);
  EXPECT_NE(place::text_of(snapshot, false).find("Every page lies where it belongs."), std::string::npos);
}

TEST(judgement, a_page_on_the_wrong_node_names_who_may_have_written_it) {
  auto snapshot = job(100);
  plant(snapshot);
  auto warnings = place::warnings_of(snapshot);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].what, What::wrong_node);
  EXPECT_EQ(warnings[0].rank, 0);
  EXPECT_EQ(warnings[0].text,
            "rank 0 queue: 1 of 100 pages not on node 0 but on node 3 (1 page at 0x40063000 of the segment)");
  EXPECT_NE(warnings[0].advice.find("rank 3 runs there and maps them"), std::string::npos)
      << warnings[0].advice;
}

TEST(judgement, when_nobody_else_is_there_it_was_the_owner) {
  auto snapshot = job(100);
  plant(snapshot);
  snapshot.parts[0].mapped_by = {0};
  auto warnings = place::warnings_of(snapshot);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].advice.find("Rank 0 itself ran elsewhere"), std::string::npos) << warnings[0].advice;
}

TEST(judgement, when_most_of_a_part_is_wrong_it_was_the_owner) {
  auto snapshot = job(100);
  plant(snapshot);
  auto& queue = snapshot.parts[0];
  queue.share.local = 0;
  queue.ranges = {{queue.begin, queue.end, 3, true}};
  auto warnings = place::warnings_of(snapshot);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].advice.find("Rank 0 itself ran elsewhere"), std::string::npos) << warnings[0].advice;
}

TEST(judgement, a_full_node_is_told_first) {
  auto snapshot = job(100);
  plant(snapshot);
  snapshot.nodes[0].free_bytes = 1u << 20;
  auto warnings = place::warnings_of(snapshot);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].advice.starts_with("Node 0 has only 1 MiB free")) << warnings[0].advice;
}

TEST(judgement, a_rank_that_left_its_binding_and_its_new_memory) {
  auto snapshot = job(10);
  auto& rank = snapshot.processes[1];
  rank.allowed = cpus(6, 7);
  rank.nodes = {3};
  rank.left = true;
  auto& heap = rank.mappings[0];
  heap.own.local -= 2 * page;
  heap.ranges = {{0x1000, 0x9000, 1, false}, {0x9000, 0xb000, 3, true}};
  auto warnings = place::warnings_of(snapshot);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].what, What::left_binding);
  EXPECT_EQ(warnings[0].text,
            "rank 1 may now run on processors 6-7 (node 3); mpiexec had bound it to processor 2 on node 1");
  EXPECT_EQ(warnings[1].text, "rank 1 heap: 2 of 10 pages not on node 1 but on node 3 (2 pages at 0x9000)");
}

TEST(judgement, pages_that_the_owner_has_not_touched) {
  auto snapshot = job(10);
  snapshot.parts[2].foreign = 3 * page;
  snapshot.parts[2].mapped_by = {1};
  place::Part nobodys;
  nobodys.role = "nobody's";
  nobodys.foreign = page;
  nobodys.bytes_on[0] = page;
  snapshot.parts.push_back(nobodys);
  auto warnings = place::warnings_of(snapshot);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].what, What::foreign_page);
  EXPECT_EQ(warnings[0].text, "rank 2 queue: 3 pages that rank 2 has not touched; mapped by rank 1");
  EXPECT_EQ(warnings[1].rank, -1);
}

TEST(assertion, is_of_each_rank_and_role_so_that_a_large_heap_hides_nothing) {
  auto snapshot = job(100);
  plant(snapshot);
  auto& heap = snapshot.processes[0].mappings[0];
  heap.own = {1000000 * page, 1000000 * page};
  bool judged = false;
  auto rows = place::offenders(snapshot, 99.9, judged);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].rank, 0);
  EXPECT_EQ(rows[0].where, "queue");
  EXPECT_EQ(place::assertion_text(snapshot, 99.9), "less than 99.9% local: rank 0 queue: 99.00%\n");
  EXPECT_EQ(place::assertion_text(snapshot, 99), "");
}

TEST(assertion, without_a_binding_there_is_nothing_to_assert) {
  auto snapshot = job(10);
  for (auto& part : snapshot.parts) part.share = {};
  for (auto& rank : snapshot.processes) rank.mappings[0].own = {};
  bool judged = true;
  EXPECT_TRUE(place::offenders(snapshot, 1, judged).empty());
  EXPECT_FALSE(judged);
  EXPECT_TRUE(place::assertion_text(snapshot, 1).starts_with("asserted nothing")) << "not silently good";
}

TEST(assertion, a_rank_that_cannot_be_inspected_does_not_pass_silently) {
  auto snapshot = job(10);
  auto& rank = snapshot.processes[3];
  rank.problem = "process 103 may not be looked at";
  rank.mappings.clear();
  EXPECT_EQ(place::assertion_text(snapshot, 99), "") << "it has ended, say";
  rank.unseen = true;
  EXPECT_EQ(place::assertion_text(snapshot, 99),
            "not known to be local: rank 3: process 103 may not be looked at\n");
}

TEST(text, one_page_in_a_million_is_not_rounded_away) {
  auto snapshot = job(1000000);
  plant(snapshot);
  EXPECT_NE(place::text_of(snapshot, false).find("99.99%"), std::string::npos);
  EXPECT_NE(place::assertion_text(snapshot, 100), "");
}

TEST(text, the_line_of_a_rank_counts_its_region_too) {
  auto snapshot = job(100);
  plant(snapshot);
  auto text = place::text_of(snapshot, false), line = text.substr(text.find("\n    0      100 ") + 1);
  EXPECT_TRUE(line.substr(0, line.find('\n')).ends_with("99.50%")) << text;
}

TEST(text, a_name_cannot_write_lines_of_its_own) {
  auto snapshot = job(1);
  snapshot.processes[0].program = "/tmp/\033[2J";
  snapshot.processes[0].mappings[0].entry.name = "/tmp/a\nwarning: b";
  auto text = place::text_of(snapshot, true);
  EXPECT_NE(text.find("/tmp/a\\012warning: b"), std::string::npos) << text;
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(text, a_rank_that_cannot_be_inspected_says_why) {
  auto snapshot = job(10);
  snapshot.processes[3].problem = "it has ended";
  EXPECT_NE(place::text_of(snapshot, true).find("    3      103 it has ended\n"), std::string::npos);
}

/// Each rank has sent its right neighbour some 8-byte messages, and rank 0 a large one to rank 2.
void talk(Snapshot& snapshot, int ranks) {
  using segment::Distance;
  auto at = [](segment::Path path) { return static_cast<std::size_t>(path); };
  for (int from = 0; from < ranks; ++from) {
    place::Flow flow;
    flow.from = from;
    flow.to = (from + 1) % ranks;
    flow.distance = from % 2 == 0 ? Distance::package : Distance::machine;
    flow.sent[at(segment::Path::inlined)] = {static_cast<std::uint64_t>(from + 1),
                                             static_cast<std::uint64_t>(8 * (from + 1))};
    snapshot.flows.push_back(flow);
    if (from != 0) continue;
    flow.to = 2;
    flow.distance = Distance::machine;
    flow.sent = {};
    flow.sent[at(segment::Path::packet)] = {1, 0};
    flow.sent[at(segment::Path::pipelined)] = {2, 3 << 20};
    snapshot.flows.push_back(flow);
  }
}

TEST(text, a_matrix_shows_how_much_each_rank_sent_to_each) {
  auto snapshot = job(1);
  talk(snapshot, 4);
  auto text = place::text_of(snapshot, false);
  EXPECT_NE(text.find("\n  from     to 0   to 1   to 2   to 3\n"
                      "     0        -      8   3.0M      -\n"
                      "     1        -      -     16      -\n"
                      "     2        -      -      -     24\n"
                      "     3       32      -      -      -\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\npackage          4     32         -      -         -      -"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nmachine          6     48         1      0         -      -         -      -        "
                      " 2   3.0M\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("\ncore"), std::string::npos) << "nobody is so near";
  text = place::text_of(snapshot, true);
  EXPECT_NE(text.find("\n     0 to 2      machine          3   3.0M  packet 0 in 1, pipelined 3.0M in 2\n"),
            std::string::npos)
      << text;
}

TEST(text, of_many_ranks_the_heaviest_pairs_are_shown) {
  auto snapshot = job(1);
  for (int rank = 4; rank < 20; ++rank) {
    snapshot.processes.push_back(snapshot.processes[0]);
    snapshot.processes.back().rank = rank;
  }
  talk(snapshot, 20);
  auto text = place::text_of(snapshot, false),
       heaviest = text.substr(text.find("\nThe heaviest of 21 pairs"));
  EXPECT_EQ(text.find("  from     to 0"), std::string::npos);
  auto first = heaviest.find("\n     0 to 2 "), second = heaviest.find("\n    19 to 0 "),
       tenth = heaviest.find("\n    11 to 12 ");
  EXPECT_TRUE(first < second && second < tenth && tenth != std::string::npos) << heaviest;
  EXPECT_EQ(heaviest.find("\n    10 to 11 "), std::string::npos) << heaviest;
  EXPECT_NE(place::text_of(snapshot, true).find("\n    10 to 11 "), std::string::npos);
}

TEST(text, a_job_that_has_sent_nothing_says_so_and_a_single_process_has_no_matrix) {
  auto snapshot = job(1);
  EXPECT_NE(place::text_of(snapshot, false).find("No rank has sent a message."), std::string::npos);
  snapshot.job.clear();
  EXPECT_EQ(place::text_of(snapshot, false).find("sent"), std::string::npos);
}

TEST(json, holds_each_pair_with_its_paths) {
  auto snapshot = job(1);
  EXPECT_EQ(nlohmann::json::parse(place::json_of(snapshot, false))["traffic"], nlohmann::json::array());
  talk(snapshot, 4);
  auto traffic = nlohmann::json::parse(place::json_of(snapshot, false))["traffic"];
  ASSERT_EQ(traffic.size(), 5u);
  EXPECT_EQ(traffic[1], nlohmann::json::parse(R"({"from": 0, "to": 2, "distance": "machine", "messages": 3,
      "bytes": 3145728, "paths": {"packet": {"messages": 1, "bytes": 0}, "pipelined": {"messages": 2, "bytes": 3145728}}})"));
  EXPECT_EQ(traffic[4]["from"], 3);
  EXPECT_EQ(traffic[4]["bytes"], 32);
}

TEST(json, holds_the_totals_and_every_range) {
  auto snapshot = job(100);
  plant(snapshot);
  auto document = nlohmann::json::parse(place::json_of(snapshot, true));
  EXPECT_EQ(document["near_place"], 1);
  EXPECT_EQ(document["bytes_on"]["2"], 100 * page);
  EXPECT_EQ(document["processes"][1]["bytes_on"]["1"], 100 * page);
  EXPECT_EQ(document["processes"][1]["rank"], 1);
  auto& queue = document["segment"][0];
  EXPECT_EQ(queue["intended_node"], 0);
  EXPECT_EQ(queue["judged_bytes"], 100 * page);
  EXPECT_EQ(queue["local_bytes"], 99 * page);
  ASSERT_EQ(queue["ranges"].size(), 2u);
  EXPECT_EQ(queue["ranges"][1]["node"], 3);
  EXPECT_EQ(queue["ranges"][1]["wrong"], true);
  EXPECT_EQ(queue["ranges"][1]["begin"], "0x40063000");
  EXPECT_EQ(document["warnings"][0]["warning"], "wrong-node");
}

TEST(json, is_one_line_when_many_follow_each_other) {
  EXPECT_EQ(place::json_of(job(1), false).find('\n'), std::string::npos);
}

TEST(json, a_name_of_any_bytes_does_no_harm) {
  auto snapshot = job(1);
  snapshot.processes[0].mappings[0].entry.name = "/tmp/\xff\"\n</script>";
  auto document = nlohmann::json::parse(place::json_of(snapshot, false));
  EXPECT_EQ(document["processes"][0]["mappings"][0]["name"], "/tmp/\xef\xbf\xbd\"\n</script>");
}

TEST(page, holds_the_document_and_asks_for_nothing) {
  auto snapshot = job(1);
  snapshot.processes[0].mappings[0].entry.name = "/tmp/</script><script>alert(1)</script>";
  std::string text = place::page_of(snapshot), opening = "<script type=\"application/json\" id=\"snapshot\">";
  auto begin = text.find(opening), end = text.find("</script>", begin);
  ASSERT_NE(begin, std::string::npos);
  begin += opening.size();
  EXPECT_EQ(nlohmann::json::parse(text.substr(begin, end - begin)),
            nlohmann::json::parse(place::json_of(snapshot, false)));
  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  for (const char* outside : {"http://", "https://", "src=", "href=", "url(", "@import", "innerHTML"})
    EXPECT_EQ(text.find(outside), std::string::npos) << outside;
  EXPECT_NE(text.find("default-src 'none'"), std::string::npos) << "and the browser forbids it";
}

} // namespace
