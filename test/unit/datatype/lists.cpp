// Types whose blocks are listed: how the list is kept, and that every part of it is packed.
#include "copy/copy.h"
#include "datatype/datatype.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace near::datatype {
namespace {

using Numbers = std::vector<MPI_Count>;

class Lists : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(make_predefined_types().ok());
    integer_ = find_datatype(MPI_INT);
  }
  void TearDown() override {
    for (Datatype* type : made_) release(type);
  }
  /// Ints at these bytes.
  Datatype& ints_at(const Numbers& places) {
    Datatype* type = nullptr;
    Result result = make_indexed_block(1, places, true, *integer_, type);
    EXPECT_TRUE(result.ok()) << base::failure_text();
    made_.push_back(type);
    return *type;
  }
  /// Packs and unpacks all, and parts that begin and end anywhere.
  static void expect_moved(Datatype& type, const Numbers& places) {
    std::vector<std::byte> memory(static_cast<std::size_t>(type.true_lb + type.true_extent)), expected;
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 37 + (i >> 8));
    for (MPI_Count place : places)
      expected.insert(expected.end(), memory.begin() + place, memory.begin() + place + 4);
    const Buffer buffer{memory.data(), 1, &type};
    for (MPI_Count from : {0, 1, 4, 63 * 4, 64 * 4, 65 * 4 + 2, 1000 * 4})
      for (MPI_Count less : {0, 1, 4, 64 * 4, 777 * 4 + 3}) {
        const MPI_Count bytes = type.size - from - less;
        if (bytes <= 0) continue;
        std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
        pack(buffer, from, packed.data(), bytes);
        ASSERT_EQ(std::memcmp(packed.data(), expected.data() + from, packed.size()), 0)
            << bytes << " bytes from " << from;
        std::vector<std::byte> empty(memory.size()), put(memory.size());
        unpack({empty.data(), 1, &type}, from, packed.data(), bytes);
        for (MPI_Count i = from; i < from + bytes; ++i) {
          const auto place = static_cast<std::size_t>(places[static_cast<std::size_t>(i / 4)] + i % 4);
          put[place] = memory[place];
        }
        ASSERT_EQ(empty, put) << bytes << " bytes from " << from;
      }
  }

  /// Packs several elements of ints at these places, the last one not always whole, and unpacks them again.
  static void expect_elements_moved(Datatype& type, const Numbers& places) {
    for (MPI_Count elements : {3, 5, 12}) expect_elements_moved(type, places, elements);
  }
  static void expect_elements_moved(Datatype& type, const Numbers& places, MPI_Count elements) {
    const MPI_Count extent = type.extent;
    std::vector<std::byte> memory(
        static_cast<std::size_t>((elements - 1) * extent + type.true_lb + type.true_extent)),
        packed(static_cast<std::size_t>(elements * type.size));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 37 + (i >> 8));
    for (MPI_Count bytes : {elements * type.size, elements * type.size - 6}) {
      pack({memory.data(), elements, &type}, 0, packed.data(), bytes);
      std::vector<std::byte> empty(memory.size()), put(memory.size());
      for (MPI_Count i = 0; i < bytes; ++i) {
        const MPI_Count element = i / type.size, within = i % type.size;
        const auto place = static_cast<std::size_t>(
            element * extent + places[static_cast<std::size_t>(within / 4)] + within % 4);
        ASSERT_EQ(packed[static_cast<std::size_t>(i)], memory[place]) << "byte " << i;
        put[place] = memory[place];
      }
      unpack({empty.data(), elements, &type}, 0, packed.data(), bytes);
      ASSERT_EQ(empty, put) << bytes << " bytes";
    }
  }

  Datatype* integer_ = nullptr;
  std::vector<Datatype*> made_;
};

/// `count` places in a random-looking order, ascending but for neighbours.
Numbers places_of(std::size_t count, MPI_Count apart) {
  Numbers places;
  for (std::size_t i = 0; i < count; ++i)
    places.push_back(static_cast<MPI_Count>(i ^ 1) * apart + 4 * static_cast<MPI_Count>(i % 3));
  return places;
}

TEST_F(Lists, long_lists_take_16_bits_for_each_block) {
  for (std::size_t count : {2046u, 2048u, 2110u, 2112u, 5000u}) {
    const Numbers places = places_of(count, 20);
    Datatype& type = ints_at(places);
    const CompactNumbers& positions = type.form.form->entries.positions();
    ASSERT_EQ(type.form.form->kind, NormalForm::Kind::equal);
    EXPECT_EQ(positions.is_short(), count >= 2048) << count;
    EXPECT_NE(positions.is_short(), positions.is_narrow());
    ASSERT_EQ(positions.size(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(positions[i] + type.form.at, places[i]);
    if (positions.is_short()) { EXPECT_LT(positions.memory(), count * 2 + count / 8); }
    expect_moved(type, places);
  }
}

TEST_F(Lists, blocks_far_apart_keep_32_bits) {
  const Numbers places = places_of(3000, 1100); // 64 of them span more than 64 KiB
  Datatype& type = ints_at(places);
  EXPECT_TRUE(type.form.form->entries.positions().is_narrow());
  expect_moved(type, places);
}

TEST_F(Lists, one_element_with_listed_blocks_goes_straight) {
  const Numbers few = places_of(6, 20), many = places_of(4000, 20);
  EXPECT_NE(ints_at(few).gather, nullptr);
  EXPECT_EQ(ints_at(few).grid.count, 6u);
  expect_moved(ints_at(few), few);
  EXPECT_EQ(ints_at(many).gather, nullptr); // a walk costs nothing beside 4,000 blocks
  Datatype* type = nullptr;
  const Numbers lengths = {1, 3, 1}, at = {0, 8, 32};
  Datatype* members[] = {integer_, find_datatype(MPI_DOUBLE), find_datatype(MPI_CHAR)};
  ASSERT_TRUE(make_struct(lengths, at, members, type).ok());
  made_.push_back(type);
  EXPECT_NE(type->gather, nullptr);
  EXPECT_NE(type->scatter, nullptr);
  EXPECT_NE(type->grid.start, nullptr);
}

TEST_F(Lists, columns_of_a_matrix_lose_by_parts) {
  Datatype *column = nullptr, *next = nullptr, *few = nullptr, *all = nullptr;
  ASSERT_TRUE(make_vector(512, 1, 1000, false, *integer_, column).ok());
  ASSERT_TRUE(make_resized(*column, 0, 4, next).ok());
  ASSERT_TRUE(make_vector(8, 1, 1, false, *next, all).ok());
  ASSERT_TRUE(make_vector(100, 1, 1000, false, *integer_, few).ok());
  made_.insert(made_.end(), {column, next, few, all});
  EXPECT_TRUE(loses_by_parts({nullptr, 1, all}));
  EXPECT_TRUE(loses_by_parts({nullptr, 8, next}));
  EXPECT_FALSE(
      loses_by_parts({nullptr, 2, all})); // the second one begins where the first one's last column does not
  EXPECT_FALSE(loses_by_parts({nullptr, 1, next})) << "one column";
  EXPECT_FALSE(loses_by_parts({nullptr, 8, few})) << "whose lines stay in a cache";
  EXPECT_FALSE(loses_by_parts({nullptr, 100, integer_}));
}

TEST_F(Lists, columns_are_copied_to_columns_of_another_matrix) {
  constexpr std::size_t rows = 300, columns = 4;
  constexpr MPI_Count wide = 9, wider = 128; // whose rows share sets of a cache
  Datatype *column = nullptr, *next = nullptr, *from = nullptr, *to = nullptr, *other = nullptr;
  ASSERT_TRUE(make_vector(rows, 1, wide, false, *integer_, column).ok());
  ASSERT_TRUE(make_resized(*column, 0, 4, next).ok());
  ASSERT_TRUE(make_vector(rows, 1, wider, false, *integer_, other).ok());
  ASSERT_TRUE(make_vector(columns, 1, 4, true, *other, to).ok());
  made_.insert(made_.end(), {column, next, other, to});
  ASSERT_TRUE(make_contiguous(columns, *next, from).ok());
  made_.push_back(from);
  std::vector<int> source(rows * wide), target(rows * wider, -1), expected = target;
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<int>(i);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < columns; ++i) expected[row * wider + i] = source[row * wide + i];
  for (const Buffer& buffer : {Buffer{source.data(), 1, from}, Buffer{source.data(), columns, next}}) {
    std::fill(target.begin(), target.end(), -1);
    copy(buffer, {target.data(), 1, to}, buffer.bytes());
    EXPECT_EQ(target, expected);
  }
  // A part of it goes the other way round.
  std::fill(target.begin(), target.end(), -1);
  copy({source.data(), 1, from}, {target.data(), 1, to}, 4 * (rows + 1));
  for (std::size_t row = 1; row < rows; ++row) EXPECT_EQ(target[row * wider + 1], -1);
  EXPECT_EQ(target[1], source[1]);
}

/// Few enough blocks are copied in two steps, in parts of 8 KiB, which end within a block of 24 bytes.
TEST_F(Lists, blocks_are_copied_to_blocks_that_share_sets_of_a_cache) {
  for (const MPI_Count length : {6, 7, 16})
    for (const MPI_Count count : {200, 5000})
      for (const MPI_Count apart : {128, 1024}) {
        const MPI_Count near = length + 1;
        Datatype *from = nullptr, *to = nullptr;
        ASSERT_TRUE(make_vector(count, length, near, false, *integer_, from).ok());
        ASSERT_TRUE(make_vector(count, length, apart, false, *integer_, to).ok());
        made_.insert(made_.end(), {from, to});
        for (Datatype* type : {from, to}) ASSERT_TRUE(commit(*type).ok());
        std::vector<int> source(static_cast<std::size_t>(count * near)),
            target(static_cast<std::size_t>(count * apart), -1), expected = target;
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<int>(i);
        for (MPI_Count i = 0; i < count * length; ++i)
          expected[static_cast<std::size_t>(i / length * apart + i % length)] =
              source[static_cast<std::size_t>(i / length * near + i % length)];
        const Buffer buffer{source.data(), 1, from};
        copy(buffer, {target.data(), 1, to}, buffer.bytes());
        EXPECT_TRUE(target == expected)
            << count << " blocks of " << length << " ints, " << apart << " ints apart";
      }
}

/// What would follow the last block may be too far away for 63 bits.
TEST_F(Lists, blocks_may_lie_at_the_end_of_the_address_space) {
  Datatype *far = nullptr, *type = nullptr;
  constexpr MPI_Count extent = -9'000'000'000'000'000'000;
  ASSERT_TRUE(make_resized(*integer_, 0, extent, far).ok());
  made_.push_back(far);
  ASSERT_TRUE(make_indexed(Numbers{2, 1}, Numbers{0, 16}, true, *far, type).ok()) << base::failure_text();
  made_.push_back(type);
  EXPECT_EQ(type->size, 12);
  ASSERT_EQ(type->form.form->kind, NormalForm::Kind::equal);
  const CompactNumbers& positions = type->form.form->entries.positions();
  EXPECT_EQ(positions[1] - positions[0], extent);
  EXPECT_EQ(positions[2] - positions[0], 16);
}

TEST_F(Lists, a_committed_struct_of_vectors_and_lists_goes_part_by_part) {
  Datatype *vector = nullptr, *structs = nullptr, *same = nullptr;
  ASSERT_TRUE(make_vector(3, 1, 2, false, *integer_, vector).ok());
  made_.push_back(vector);
  const Numbers listed = places_of(40, 20), lengths = {1, 1, 2}, at = {40, 200, 0};
  Datatype* members[] = {vector, &ints_at(listed), integer_};
  ASSERT_TRUE(make_struct(lengths, at, members, structs).ok());
  made_.push_back(structs);
  EXPECT_TRUE(structs->parts.empty());
  ASSERT_TRUE(commit(*structs).ok());
  EXPECT_EQ(structs->parts.size(), 3u);
  EXPECT_EQ(structs->gather, nullptr);
  ASSERT_TRUE(make_duplicate(*structs, same).ok());
  made_.push_back(same);
  EXPECT_EQ(same->parts.size(), 3u);

  Numbers places = {40, 48, 56};
  for (MPI_Count place : listed) places.push_back(200 + place);
  places.insert(places.end(), {0, 4});
  expect_moved(*structs, places);
  expect_elements_moved(*structs, places);
}

/// Three nested vectors, which have no function of their own, and the same as a list.
TEST_F(Lists, few_blocks_are_listed_when_the_datatype_is_committed) {
  Datatype *row = nullptr, *plane = nullptr, *cube = nullptr, *same = nullptr;
  ASSERT_TRUE(make_vector(2, 1, 3, false, *integer_, row).ok());
  made_.push_back(row);
  ASSERT_TRUE(make_vector(3, 1, 40, true, *row, plane).ok());
  made_.push_back(plane);
  ASSERT_TRUE(make_vector(2, 1, 400, true, *plane, cube).ok());
  made_.push_back(cube);
  EXPECT_EQ(cube->gather, nullptr);
  ASSERT_TRUE(commit(*cube).ok());
  EXPECT_NE(cube->gather, nullptr);
  ASSERT_NE(cube->few, nullptr);
  EXPECT_EQ(cube->few->blocks.count, 12u);
  ASSERT_TRUE(make_duplicate(*cube, same).ok());
  made_.push_back(same);
  EXPECT_EQ(same->few, cube->few);
  Numbers places;
  for (MPI_Count i = 0; i < 12; ++i) places.push_back(i / 6 * 400 + i / 2 % 3 * 40 + i % 2 * 12);
  for (Datatype* type : {cube, same}) {
    expect_moved(*type, places);
    expect_elements_moved(*type, places);
  }
}

TEST_F(Lists, few_blocks_of_different_lengths_are_listed) {
  Datatype *pairs = nullptr, *structs = nullptr;
  ASSERT_TRUE(make_vector(3, 2, 4, false, *integer_, pairs).ok());
  made_.push_back(pairs);
  const Numbers lengths = {1, 1, 1}, at = {100, 400, 0};
  Datatype* members[] = {pairs, &ints_at({40, 0, 80, 84}), integer_};
  ASSERT_TRUE(make_struct(lengths, at, members, structs).ok());
  made_.push_back(structs);
  ASSERT_TRUE(commit(*structs).ok());
  ASSERT_NE(structs->few, nullptr);
  EXPECT_EQ(structs->few->blocks.count, 7u);
  EXPECT_TRUE(structs->parts.empty());
  const Numbers places = {100, 104, 116, 120, 132, 136, 440, 400, 480, 484, 0};
  expect_moved(*structs, places);
  expect_elements_moved(*structs, places);
}

/// The order in which elements are written matters if they overlap, and a list by columns has another one.
TEST_F(Lists, elements_that_are_woven_into_each_other_go_one_by_one) {
  Datatype *type = nullptr, *woven = nullptr;
  ASSERT_TRUE(make_indexed(Numbers{1, 2, 1}, Numbers{0, 20, 48}, true, *integer_, type).ok());
  made_.push_back(type);
  ASSERT_TRUE(make_resized(*type, 0, 8, woven).ok());
  made_.push_back(woven);
  for (Datatype* each : {type, woven}) ASSERT_TRUE(commit(*each).ok());
  ASSERT_NE(type->few, nullptr);
  ASSERT_NE(woven->few, nullptr);
  EXPECT_TRUE(type->few->by_columns);
  EXPECT_FALSE(woven->few->by_columns);
  EXPECT_NE(woven->gather, nullptr) << "for one element";
  expect_elements_moved(*woven, {0, 20, 24, 48});
}

/// Blocks that would be a list otherwise, and rows that would be a grid.
TEST_F(Lists, small_elements_go_by_windows_where_the_processor_has_them) {
  if (copy::chosen().windows == nullptr) GTEST_SKIP() << "NOT tested here: no kernel for windows";
  Datatype *listed = nullptr, *rows = nullptr, *long_rows = nullptr, *pairs = nullptr, *same = nullptr;
  ASSERT_TRUE(make_resized(ints_at({8, 0, 20}), 0, 28, listed).ok());
  ASSERT_TRUE(make_vector(2, 1, 2, false, *integer_, pairs).ok());
  ASSERT_TRUE(make_resized(*pairs, 0, 20, rows).ok());
  ASSERT_TRUE(make_vector(30, 1, 2, false, *integer_, long_rows).ok());
  made_.insert(made_.end(), {listed, pairs, rows, long_rows});
  EXPECT_EQ(rows->most_by_windows, -1) << "not committed";
  for (Datatype* type : {listed, rows, long_rows}) ASSERT_TRUE(commit(*type).ok());
  EXPECT_GT(listed->most_by_windows, 1000);
  EXPECT_GT(rows->most_by_windows, 1000);
  EXPECT_EQ(long_rows->most_by_windows, -1) << "a grid takes less time";
  EXPECT_EQ(long_rows->few, nullptr);
  ASSERT_TRUE(make_duplicate(*listed, same).ok());
  made_.push_back(same);
  EXPECT_EQ(same->windows, listed->windows);
  expect_moved(*listed, {8, 0, 20});
  expect_elements_moved(*listed, {8, 0, 20});
  expect_elements_moved(*same, {8, 0, 20});
  expect_elements_moved(*rows, {0, 8});
}

/// Windows would have to check each of these elements for ends of pages.
TEST_F(Lists, rows_that_are_far_apart_or_descend_are_a_grid) {
  if (copy::chosen().windows == nullptr) GTEST_SKIP() << "NOT tested here: no kernel for windows";
  Datatype* pairs = nullptr;
  ASSERT_TRUE(make_vector(2, 1, 2, false, *integer_, pairs).ok());
  made_.push_back(pairs);
  for (MPI_Count extent : {4096, 4097, 8192, 0, -16, -8192}) {
    Datatype* rows = nullptr;
    ASSERT_TRUE(make_resized(*pairs, 0, extent, rows).ok());
    made_.push_back(rows);
    ASSERT_TRUE(commit(*rows).ok());
    EXPECT_EQ(rows->most_by_windows > 0, extent == 4096) << extent;
  }
}

/// From that many on, short blocks are a grid, whose registers hold more of them.
TEST_F(Lists, many_short_blocks_are_a_grid) {
  if (copy::chosen().windows == nullptr) GTEST_SKIP() << "NOT tested here: no kernel for windows";
  Datatype* spread = nullptr;
  ASSERT_TRUE(make_resized(*integer_, 0, 12, spread).ok());
  made_.push_back(spread);
  ASSERT_TRUE(commit(*spread).ok());
  const MPI_Count most = spread->most_by_windows;
  EXPECT_GT(most, 16);
  for (MPI_Count count : {most - 1, most, most + 1}) expect_elements_moved(*spread, {0, 4}, count);
}

TEST_F(Lists, a_struct_of_many_vectors_is_walked) {
  Datatype *vector = nullptr, *structs = nullptr;
  ASSERT_TRUE(make_vector(5, 1, 2, false, *integer_, vector).ok());
  made_.push_back(vector);
  Numbers lengths(9, 1), at, places;
  for (MPI_Count i = 0; i < 9; ++i) {
    at.push_back(i * i * 100);
    for (MPI_Count j = 0; j < 5; ++j) places.push_back(at.back() + 8 * j);
  }
  std::vector<Datatype*> members(9, vector);
  members[4] = integer_;
  places.erase(places.begin() + 21, places.begin() + 25);
  ASSERT_TRUE(make_struct(lengths, at, members, structs).ok());
  made_.push_back(structs);
  ASSERT_TRUE(commit(*structs).ok());
  EXPECT_TRUE(structs->parts.empty());
  expect_moved(*structs, places);
}

} // namespace
} // namespace near::datatype
