// Frames between mpiexec and its agents: in pieces, damaged, and after what a login shell prints.
#include "machines/frames.h"

#include <gtest/gtest.h>

namespace near::machines {
namespace {

TEST(Frames, arrive_in_pieces) {
  const std::string sent =
      frame(Kind::output, "hello\n") + frame(Kind::alive) + frame(Kind::put, std::string(70000, 'x'));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, sent.size()}) {
    FrameReader reader;
    std::vector<Frame> taken;
    for (std::size_t at = 0; at < sent.size(); at += piece) {
      reader.feed(std::string_view(sent).substr(at, piece));
      for (Frame next; reader.next(next);) taken.push_back(next);
    }
    ASSERT_EQ(taken.size(), 3u) << piece;
    EXPECT_EQ(taken[0].kind, Kind::output);
    EXPECT_EQ(taken[0].body, "hello\n");
    EXPECT_EQ(taken[1].kind, Kind::alive);
    EXPECT_EQ(taken[2].body.size(), 70000u);
    EXPECT_TRUE(reader.rest().empty());
    EXPECT_FALSE(reader.broken());
  }
}

TEST(Frames, begin_after_the_greeting) {
  FrameReader reader;
  reader.feed("Welcome to this machine!\nNEARMPI-");
  EXPECT_FALSE(reader.skip_past(greeting));
  reader.feed("AGENT\n" + frame(Kind::alive));
  EXPECT_TRUE(reader.skip_past(greeting));
  Frame taken;
  EXPECT_TRUE(reader.next(taken));
  EXPECT_EQ(taken.kind, Kind::alive);
}

TEST(Frames, damage_is_noticed) {
  for (const std::string& sent :
       {std::string(5, '\0'), std::string("\1\0\0\0\0", 5), std::string("\1\0\0\0\xff", 5),
        std::string("\xff\xff\xff\xff\1", 5), std::string("bash: no such file")}) {
    FrameReader reader;
    reader.feed(sent);
    Frame taken;
    EXPECT_FALSE(reader.next(taken));
    EXPECT_TRUE(reader.broken());
    reader.feed(frame(Kind::alive));
    EXPECT_FALSE(reader.next(taken)) << "what follows damage has no meaning";
  }
}

TEST(Bodies, are_read_as_they_were_written) {
  const std::string body =
      BodyWriter().number(7).text("a b").texts({"x", "", "y"}).numbers({1, 4000000000u}).body();
  BodyReader reader(body);
  EXPECT_EQ(reader.number(), 7u);
  EXPECT_EQ(reader.text(), "a b");
  EXPECT_EQ(reader.texts(), (std::vector<std::string>{"x", "", "y"}));
  EXPECT_FALSE(reader.complete());
  EXPECT_EQ(reader.numbers(), (std::vector<unsigned>{1, 4000000000u}));
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.number(), 0u);
  EXPECT_FALSE(reader.ok());
}

TEST(Bodies, of_processes_are_read_whole_or_not_at_all) {
  const std::string body = Processes{"boot pid:[1]", {17, 0, 4194304}}.body();
  Processes read;
  EXPECT_FALSE(Processes::read(body.substr(0, body.size() - 1), read));
  EXPECT_FALSE(Processes::read(body + "x", read));
  EXPECT_TRUE(read.numbers.empty());
  ASSERT_TRUE(Processes::read(body, read));
  EXPECT_EQ(read.space, "boot pid:[1]");
  EXPECT_EQ(read.numbers, (std::vector<unsigned>{17, 0, 4194304}));
}

TEST(Bodies, that_end_early_give_nothing) {
  const std::string whole = BodyWriter().texts({"one", "two"}).body();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    BodyReader reader(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(reader.texts().empty()) << size;
    EXPECT_FALSE(reader.ok()) << size;
  }
  const std::string without_end = BodyWriter().number(UINT64_MAX).body();
  BodyReader huge(without_end);
  EXPECT_TRUE(huge.numbers().empty());
  EXPECT_FALSE(huge.ok());
}

} // namespace
} // namespace near::machines
