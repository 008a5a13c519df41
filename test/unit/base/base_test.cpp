#include "base/checked.h"
#include "base/free_ranges.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace {

using namespace near::base;

TEST(FreeRanges, are_taken_from_the_first_that_fits_and_merge_when_they_come_back) {
  FreeRanges free;
  std::uint64_t a = 0, b = 0, c = 0, none = 7;
  EXPECT_FALSE(free.take(1, 1, none));
  free.give(100, 100);
  ASSERT_TRUE(free.take(10, 1, a) && free.take(16, 64, b) && free.take(10, 1, c));
  EXPECT_EQ(a, 100u);
  EXPECT_EQ(b, 128u) << "aligned";
  EXPECT_EQ(c, 110u) << "what the alignment has skipped stays free";
  EXPECT_FALSE(free.take(57, 1, none)) << "56 are left in a row";
  free.give(128, 16);
  free.give(100, 10);
  EXPECT_FALSE(free.take(100, 1, none)) << "ten are out";
  free.give(110, 10);
  EXPECT_TRUE(free.take(100, 1, a));
  EXPECT_EQ(a, 100u);
  EXPECT_FALSE(free.take(1, 1, none));
  EXPECT_EQ(none, 7u) << "a failure sets nothing";
}

TEST(Result, a_failure_carries_its_code_and_its_sentence) {
  Result result = fail(Code::limit, "{} of {}", 3, 4);
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(result.is(Code::limit));
  EXPECT_EQ(failure_text(), "3 of 4");
  EXPECT_TRUE(Result().ok());
}

TEST(Result, a_failed_system_call_is_named_with_its_reason) {
  Result result = fail_system("open", ENOENT, "/nowhere");
  EXPECT_TRUE(result.is(Code::system));
  EXPECT_EQ(failure_text(), "open: No such file or directory (/nowhere)");
}

TEST(Result, threads_do_not_see_each_others_sentences) {
  (void)fail(Code::invalid, "mine");
  std::thread([] {
    EXPECT_EQ(failure_text(), "");
    (void)fail(Code::invalid, "other");
  }).join();
  EXPECT_EQ(failure_text(), "mine");
}

TEST(Result, try_returns_the_first_failure) {
  auto steps = [](bool first_fails) -> Result {
    NEAR_TRY(first_fails ? Result(Code::gone) : Result());
    return Result(Code::refused);
  };
  EXPECT_TRUE(steps(true).is(Code::gone));
  EXPECT_TRUE(steps(false).is(Code::refused));
}

TEST(Bytes, suffixes_multiply_and_nonsense_is_refused) {
  std::uint64_t bytes = 0;
  EXPECT_TRUE(parse_bytes("4096", bytes).ok() && bytes == 4096);
  EXPECT_TRUE(parse_bytes("16k", bytes).ok() && bytes == 16384);
  EXPECT_TRUE(parse_bytes("2M", bytes).ok() && bytes == 2u << 20);
  EXPECT_TRUE(parse_bytes("3g", bytes).ok() && bytes == 3ull << 30);
  for (const char* wrong : {"", "k", "-1", "1.5k", "1kb", "99999999999999999999", "18446744073709551615g"})
    EXPECT_FALSE(parse_bytes(wrong, bytes).ok()) << wrong;
}

TEST(Counted, one_item_is_singular) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "slot"), "2 slots");
}

TEST(NearestWord, a_misspelling_finds_its_word_and_nonsense_finds_none) {
  constexpr std::array<std::string_view, 3> words = {"bind-to", "map-by", "report-bindings"};
  EXPECT_EQ(nearest_word("bindto", words), "bind-to");
  EXPECT_EQ(nearest_word("map_by", words), "map-by");
  EXPECT_EQ(nearest_word("report-binding", words), "report-bindings");
  EXPECT_EQ(nearest_word("xyzzy", words), "");
  // A shorter word allows fewer differences; two transposed letters count as one mistake.
  constexpr std::array<std::string_view, 3> short_words = {"top", "info", "core"};
  EXPECT_EQ(nearest_word("foo", short_words), "");
  EXPECT_EQ(nearest_word("tp", short_words), "top");
  EXPECT_EQ(nearest_word("coer", short_words), "core");
  EXPECT_EQ(nearest_word("inof", short_words), "info");
}

TEST(DidYouMean, names_the_nearest_word_or_says_nothing) {
  constexpr std::array<std::string_view, 2> words = {"bind-to", "map-by"};
  EXPECT_EQ(did_you_mean("bindto", words), "; did you mean bind-to?");
  EXPECT_EQ(did_you_mean("bindto", words, "--"), "; did you mean --bind-to?");
  EXPECT_EQ(did_you_mean("xyzzy", words, "--"), "");
}

class KnobReading : public testing::Test {
protected:
  static Result read(std::vector<std::string> entries) {
    std::vector<char*> environment;
    for (auto& entry : entries) environment.push_back(entry.data());
    environment.push_back(nullptr);
    return read_knobs(environment.data());
  }
};

TEST_F(KnobReading, every_row_has_a_name_a_help_and_a_default_that_parses) {
  for (const Knob* knob : all_knobs()) {
    EXPECT_TRUE(knob->name.starts_with("NEAR_"));
    EXPECT_GT(std::string_view(knob->help).size(), 10u) << knob->name;
    std::string entry = knob->name + "=" + knob->default_text;
    EXPECT_TRUE(read({entry}).ok()) << entry << ": " << failure_text();
  }
}

TEST_F(KnobReading, a_value_reaches_its_member_and_auto_is_told_apart) {
  ASSERT_TRUE(read({"NEAR_EAGER_LIMIT=8k", "NEAR_SPIN=20", "HOME=/", "NEAR_STATS=1"}).ok());
  EXPECT_EQ(knobs().eager_limit.number, 8192u);
  EXPECT_EQ(knobs().spin.number, 20u);
  EXPECT_FALSE(knobs().spin.automatic);
  EXPECT_EQ(knobs().stats.number, 1u);
  ASSERT_TRUE(read({"NEAR_SPIN=auto", "NEAR_STATS=0"}).ok());
  EXPECT_TRUE(knobs().spin.automatic);
}

TEST_F(KnobReading, a_wrong_value_is_an_error_that_names_variable_value_and_form) {
  EXPECT_FALSE(read({"NEAR_PACKETS=many"}).ok());
  EXPECT_EQ(failure_text(), "NEAR_PACKETS=many: expected a number from 16 to 1048576, or auto");
  EXPECT_FALSE(read({"NEAR_STATS=yes"}).ok());
  EXPECT_FALSE(read({"NEAR_EAGER_LIMIT=8x"}).ok());
  EXPECT_FALSE(read({"NEAR_LOG=loud"}).ok());
}

TEST_F(KnobReading, a_value_outside_the_range_is_an_error_that_names_the_range) {
  for (auto [entry, expected] :
       {std::pair{"NEAR_PACKETS=1", "a number from 16 to 1048576, or auto"},
        {"NEAR_QUEUE_SLOTS=99999999999", "a number from 4 to 1048576"},
        {"NEAR_LANES=33", "a number from 0 to 32"},
        {"NEAR_CREDITS=0", "a number from 1 to 1073741824"},
        {"NEAR_EAGER_LIMIT=2g", "bytes from 0 to 1g, written such as 65536, 64k, 1m or 2g"},
        {"NEAR_SPIN=-1", "a number of microseconds from 0 to 1000000000, or auto"},
        {"NEAR_STATS=2", "0 or 1"},
        {"NEAR_LOG=loud", "error, warning, note or debug"}}) {
    EXPECT_FALSE(read({entry}).ok()) << entry;
    EXPECT_EQ(failure_text(), std::string(entry) + ": expected " + expected);
  }
}

TEST_F(KnobReading, a_check_from_outside_changes_nothing) {
  ASSERT_TRUE(read({"NEAR_PACKETS=32"}).ok());
  EXPECT_TRUE(check_knob("NEAR_PACKETS", "48").ok());
  EXPECT_FALSE(check_knob("NEAR_PACKETS", "1").ok());
  EXPECT_FALSE(check_knob("NEAR_PACKET", "48").ok());
  EXPECT_EQ(failure_text(), "unknown knob NEAR_PACKET; did you mean NEAR_PACKETS?");
  EXPECT_FALSE(check_knob("NEAR_FOO", "48").ok());
  EXPECT_EQ(failure_text(), "unknown knob NEAR_FOO; `near info --knobs` lists the known ones");
  EXPECT_EQ(knobs().packets.number, 32u);
}

TEST_F(KnobReading, an_unknown_name_warns_with_the_nearest_and_the_start_up_contract_is_left_alone) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(read({"NEAR_EAGER_LIMITS=8k", "NEAR_BOOT_SLOT=3"}).ok());
  auto said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("did you mean NEAR_EAGER_LIMIT?"), std::string::npos) << said;
  EXPECT_EQ(said.find("NEAR_BOOT"), std::string::npos) << said;
}

TEST(Log, a_line_names_its_writer_and_levels_below_the_threshold_are_silent) {
  set_speaker("rank 3");
  set_level(Level::warning);
  testing::internal::CaptureStderr();
  log(Level::warning, "{} pages", 7);
  log(Level::note, "not shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "near: rank 3: warning: 7 pages\n");
  set_speaker("");
}

TEST(Checked, overflow_is_reported_and_rounding_is_exact) {
  std::int64_t result = 0;
  EXPECT_TRUE(checked_add<std::int64_t>(1, 2, result) && result == 3);
  EXPECT_FALSE(checked_add<std::int64_t>(INT64_MAX, 1, result));
  EXPECT_FALSE(checked_multiply<std::int64_t>(INT64_MAX / 2, 3, result));
  EXPECT_EQ(round_up(0, 64), 0u);
  EXPECT_EQ(round_up(1, 64), 64u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_TRUE(is_power_of_two(4096) && !is_power_of_two(0) && !is_power_of_two(12));
}

} // namespace
