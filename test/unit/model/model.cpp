// Datatypes written as text, their blocks, and the times that predictions are compared with.
#include "model/check.h"
#include "model/plot.h"
#include "model/shape.h"
#include "model/type_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

using namespace near;
using profile::Blocks;
using profile::Spacing;

namespace {

struct Made {
  explicit Made(std::string_view text) {
    EXPECT_TRUE(model::parse_type(text, type).ok()) << base::failure_text();
  }
  std::vector<Blocks> blocks(MPI_Count count = 1) const { return model::blocks_of(*type, count); }
  model::HeldType type;
};

std::string failure(std::string_view text) {
  model::HeldType type;
  EXPECT_FALSE(model::parse_type(text, type).ok()) << text;
  return std::string(base::failure_text());
}

double sum(const std::vector<Blocks>& all, std::uint64_t Blocks::* part) {
  double added = 0;
  for (const Blocks& each : all)
    added += static_cast<double>(each.*part) * (part == &Blocks::bytes ? static_cast<double>(each.count) : 1);
  return added;
}

TEST(TypeText, makes_what_the_constructors_make) {
  struct Row {
    const char* text;
    MPI_Count size, extent;
  };
  for (const Row& row :
       {Row{"double", 8, 8}, Row{"MPI_DOUBLE", 8, 8}, Row{" char ", 1, 1}, Row{"MPI_UINT64_T", 8, 8},
        Row{"unsigned_short", 2, 2}, Row{"MPI_DOUBLE_INT", 12, 16},
        Row{"vector(1000,1,16,double)", 8000, (999 * 16 + 1) * 8}, Row{"vector(3, 2, -4, int)", 24, 40},
        Row{"hvector(4,1,100,float)", 16, 304}, Row{"contiguous(3, vector(2,1,2,short))", 12, 18},
        Row{"indexed([2,1],[0,5],int)", 12, 24}, Row{"indexed_block(1,[0,3,4],double)", 24, 40},
        Row{"subarray([4,6],[2,3],[1,2],byte)", 6, 24}, Row{"resized(0,16,float)", 4, 16},
        Row{"resized(-8,16,double)", 8, 16}}) {
    const Made made(row.text);
    ASSERT_FALSE(made.type.empty()) << row.text;
    EXPECT_EQ((*made.type).size, row.size) << row.text;
    EXPECT_EQ((*made.type).extent, row.extent) << row.text;
    EXPECT_TRUE((*made.type).committed) << row.text;
  }
}

TEST(TypeText, says_what_is_wrong_and_where) {
  EXPECT_EQ(failure("vektor(1,1,1,double)"), "the datatype 'vektor(1,1,1,double)' is not understood: there "
                                             "is no type 'vektor'; did you mean vector?");
  EXPECT_EQ(failure("duble"),
            "the datatype 'duble' is not understood: there is no type 'duble'; did you mean double?");
  EXPECT_EQ(failure("vector(1,1,double)"), "the datatype 'vector(1,1,double)' is not understood: a whole "
                                           "number is expected where 'double)' stands");
  EXPECT_EQ(failure("vector(1,1,1,double"),
            "the datatype 'vector(1,1,1,double' is not understood: ')' is expected at the end");
  EXPECT_EQ(failure("double double"),
            "the datatype 'double double' is not understood: nothing more is expected where 'double' stands");
  EXPECT_EQ(failure(""),
            "the datatype '' is not understood: a datatype, such as double or vector(1000,1,16,double), is "
            "expected at the end");
  EXPECT_EQ(failure("vector(-1,1,1,int)"), "the count is -1; it must not be negative");
  EXPECT_EQ(failure("indexed([1,2],[0],int)"), "there are 2 block lengths, but 1 displacements");
  EXPECT_EQ(failure("subarray([4],[3],[2],int)"),
            "dimension 0: 3 elements from 2 on do not lie in an array of 4");
  EXPECT_NE(failure("contiguous(9223372036854775807,double)").find("2^63"), std::string::npos);
  EXPECT_NE(failure("vector(99999999999999999999,1,1,int)").find("a whole number"), std::string::npos);
}

TEST(TypeText, survives_whatever_it_is_given) {
  std::mt19937 random(3);
  const std::string whole =
      "vector(4,1,2,indexed([1,2],[0,3],subarray([4,6],[2,3],[1,2],resized(0,16,float))))";
  const std::string signs = "()[],-0123456789 evtorx";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = signs[random() % signs.size()];
      else
        text.erase(at, 1 + random() % 5);
    }
    model::HeldType type;
    if (!model::parse_type(text, type).ok()) continue;
    const std::vector<Blocks> all = model::blocks_of(*type, 3);
    ASSERT_EQ(sum(all, &Blocks::bytes), 3.0 * static_cast<double>((*type).size)) << text;
  }
  failure(std::string(5000, '('));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "contiguous(1,";
  EXPECT_EQ(failure(deep), "the datatype nests more than 32 types");
}

TEST(Shape, of_strided_types_is_one_kind_of_block) {
  const auto blocks = Made("vector(1000,2,16,double)").blocks();
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].count, 1000u);
  EXPECT_EQ(blocks[0].bytes, 16u);
  EXPECT_EQ(blocks[0].spacing, Spacing::equal);
  EXPECT_EQ(blocks[0].step, 128);
}

TEST(Shape, of_rows_tells_the_steps_within_them_from_those_between_them) {
  const auto blocks = Made("resized(0,65536,vector(2,1,2,double))").blocks(1000);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].count + blocks[1].count, 2000u);
  EXPECT_EQ(blocks[0].step, 16);
  EXPECT_EQ(blocks[1].step, 65536 - 16);
  double touched = 0;
  for (const Blocks& each : blocks) touched += touched_bytes(each);
  EXPECT_NEAR(touched, 1000 * (64 + 16), 100);
}

TEST(Shape, of_contiguous_data_is_one_block) {
  const auto blocks = Made("contiguous(100,double)").blocks(10);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].count, 1u);
  EXPECT_EQ(blocks[0].bytes, 8000u);
  EXPECT_EQ(touched_bytes(blocks[0]), 8000);
  EXPECT_TRUE(Made("contiguous(0,double)").blocks(10).empty());
}

TEST(Shape, of_listed_blocks_has_a_distance_for_each_order_of_magnitude) {
  const auto blocks = Made("indexed_block(1,[0,3,6,9,1000,1003,1006],double)").blocks();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].spacing, Spacing::listed);
  EXPECT_EQ(blocks[0].count + blocks[1].count, 7u);
  EXPECT_EQ(blocks[0].step, 24);
  EXPECT_EQ(blocks[1].step, 991 * 8);
}

TEST(Shape, accounts_for_every_byte) {
  for (const char* text :
       {"vector(7,3,5,int)", "indexed([1,5,2],[0,3,100],double)", "subarray([8,8,8],[4,4,1],[1,1,1],double)",
        "contiguous(3,indexed([1,2],[0,3],subarray([4,6],[2,3],[1,2],char)))", "vector(5,1,-3,float)",
        "indexed([1,2],[0,5],vector(2,1,3,int))", "hvector(5,1,0,double)"})
    for (MPI_Count count : {1, 2, 17}) {
      const Made made(text);
      EXPECT_EQ(sum(made.blocks(count), &Blocks::bytes), static_cast<double>((*made.type).size * count))
          << text;
    }
}

TEST(Shape, takes_no_longer_for_types_that_are_repeated_often) {
  std::string nested = "double";
  for (int i = 0; i < 24; ++i) nested = "indexed([1,1,1],[0,1,3]," + nested + ")";
  const Made deep(nested);
  EXPECT_EQ(sum(deep.blocks(), &Blocks::bytes), 8.0 * 282'429'536'481.0) << "three to the power of 24";
  const Made flat("indexed([1,2],[0,5],int)");
  EXPECT_EQ(sum(flat.blocks(MPI_Count{1} << 50), &Blocks::bytes), 12.0 * 1125899906842624.0);
}

TEST(Shape, of_more_elements_than_fit_is_refused) {
  MPI_Count count = 0;
  const Made far("vector(2,1,1000000000000,double)"), empty("contiguous(0,int)"),
      usual("vector(3,1,2,double)");
  EXPECT_FALSE(model::elements_for(*far.type, std::uint64_t{1} << 33, count).ok());
  EXPECT_NE(base::failure_text().find("2^63"), std::string_view::npos) << base::failure_text();
  EXPECT_FALSE(model::elements_for(*empty.type, 0, count).ok());
  ASSERT_TRUE(model::elements_for(*usual.type, 0, count).ok());
  EXPECT_EQ(count, 1);
  ASSERT_TRUE(model::elements_for(*usual.type, 25, count).ok());
  EXPECT_EQ(count, 2);
}

TEST(Timing, takes_buffers_of_any_shape_and_refuses_those_that_are_too_large) {
  for (const char* text : {"vector(100,1,16,double)", "vector(100,1,-16,double)", "resized(-64,-32,double)",
                           "double", "hvector(2,1,1,int)", "indexed_block(1,[4611686018427387904],char)"})
    for (auto direction : {profile::Direction::gather, profile::Direction::scatter})
      for (auto before : {profile::Before::hot, profile::Before::cold}) {
        double took = 0;
        const Made made(text);
        ASSERT_TRUE(model::time_copy(5, *made.type, direction, before, took).ok())
            << text << base::failure_text();
        EXPECT_GT(took, 0) << text;
      }
  double took = 0;
  const Made huge("vector(2,1,1000000000000,double)"), nothing("contiguous(0,int)");
  EXPECT_FALSE(model::time_copy(1, *huge.type, profile::Direction::gather, profile::Before::hot, took).ok());
  EXPECT_NE(base::failure_text().find("memory"), std::string_view::npos) << base::failure_text();
  EXPECT_FALSE(
      model::time_copy(1, *nothing.type, profile::Direction::gather, profile::Before::hot, took).ok());
}

TEST(Plot, has_every_point_within_its_edges) {
  std::vector<model::Point> points;
  for (double time : {1e-9, 1.0, 25.0, 3e3, 1e6, 1e12}) {
    model::Point point;
    point.predicted = time;
    point.measured = 2 * time;
    points.push_back(point);
  }
  const std::string drawn = model::plot_of(points);
  EXPECT_TRUE(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
  std::size_t circles = 0;
  for (std::size_t at = drawn.find("r=\"2.5\""); at != std::string::npos;
       at = drawn.find("r=\"2.5\"", at + 1))
    ++circles;
  EXPECT_EQ(circles, points.size());
  EXPECT_EQ(drawn.find("nan"), std::string::npos);
  EXPECT_EQ(drawn.find("\"-"), std::string::npos) << "a coordinate to the left of the picture, or above it";
  EXPECT_NE(model::plot_of({}).find("0 layouts"), std::string::npos);
}

} // namespace
