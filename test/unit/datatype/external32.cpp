// The external32 representation.
#include "datatype/external32.h"

#include <gtest/gtest.h>

#include <cstring>

namespace near::datatype {
namespace {

class External32 : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(make_predefined_types().ok()); }
  template <class T>
  static std::string hex(MPI_Datatype handle, T value) {
    Datatype& type = *find_datatype(handle);
    std::vector<std::byte> out(static_cast<std::size_t>(external_size(type)));
    Result result = pack_external({&value, 1, &type}, out.data());
    if (!result.ok()) return base::format("error {}", result.code());
    T back{};
    EXPECT_TRUE(unpack_external({&back, 1, &type}, out.data()).ok());
    EXPECT_TRUE(back == value);
    std::string text;
    for (std::byte byte : out) text += base::format("{:02x}", static_cast<unsigned>(byte));
    return text;
  }
};

TEST_F(External32, values_are_big_endian_of_the_standards_width) {
  EXPECT_EQ(hex<int>(MPI_INT, 0x01020304), "01020304");
  EXPECT_EQ(hex<short>(MPI_SHORT, -2), "fffe");
  EXPECT_EQ(hex<long>(MPI_LONG, -2), "fffffffe");
  EXPECT_EQ(hex<unsigned long>(MPI_UNSIGNED_LONG, 0xfffffffe), "fffffffe");
  EXPECT_EQ(hex<long long>(MPI_LONG_LONG, -2), "fffffffffffffffe");
  EXPECT_EQ(hex<double>(MPI_DOUBLE, 1.0), "3ff0000000000000");
  EXPECT_EQ(hex<long double>(MPI_LONG_DOUBLE, 1.0L), "3fff0000000000000000000000000000");
  EXPECT_EQ(hex<long double>(MPI_LONG_DOUBLE, -1.5L), "bfff8000000000000000000000000000");
  EXPECT_EQ(hex<wchar_t>(MPI_WCHAR, L'A'), "0041");
  EXPECT_EQ(hex<char>(MPI_CHAR, 'A'), "41");
  EXPECT_EQ(hex<MPI_Aint>(MPI_AINT, 1), "0000000000000001");
}

TEST_F(External32, a_value_beyond_its_width_is_a_conversion_error) {
  EXPECT_EQ(hex<long>(MPI_LONG, 1L << 40), base::format("error {}", int{MPI_ERR_CONVERSION}));
  EXPECT_EQ(hex<long>(MPI_LONG, -(1L << 40)), base::format("error {}", int{MPI_ERR_CONVERSION}));
  EXPECT_EQ(hex<unsigned long>(MPI_UNSIGNED_LONG, 1ul << 32),
            base::format("error {}", int{MPI_ERR_CONVERSION}));
}

TEST_F(External32, complex_parts_are_converted_one_by_one) {
  float value[2] = {1.0f, 2.0f};
  std::uint8_t out[8];
  Datatype& type = *find_datatype(MPI_C_COMPLEX);
  ASSERT_TRUE(pack_external({value, 1, &type}, reinterpret_cast<std::byte*>(out)).ok());
  EXPECT_EQ(out[0], 0x3f);
  EXPECT_EQ(out[4], 0x40);
}

TEST_F(External32, mixed_types_come_back_across_buffer_ends) {
  struct Record {
    char tag;
    int number;
    double values[3];
    long double wide;
  };
  std::vector<MPI_Count> lengths{1, 1, 3, 1};
  std::vector<MPI_Count> at{offsetof(Record, tag), offsetof(Record, number), offsetof(Record, values),
                            offsetof(Record, wide)};
  std::vector<Datatype*> types{find_datatype(MPI_CHAR), find_datatype(MPI_INT), find_datatype(MPI_DOUBLE),
                               find_datatype(MPI_LONG_DOUBLE)};
  Datatype* type = nullptr;
  ASSERT_TRUE(make_struct(lengths, at, types, type).ok());
  EXPECT_EQ(type->extent, static_cast<MPI_Count>(sizeof(Record)));
  EXPECT_EQ(external_size(*type), 1 + 4 + 24 + 16);
  constexpr int n = 1000;
  std::vector<Record> records(n), back(n);
  for (int i = 0; i < n; ++i)
    records[static_cast<std::size_t>(i)] = {static_cast<char>(i), i, {i * 0.5, i * 0.25, -1.0 * i}, i * 3.0L};
  std::vector<std::byte> out(static_cast<std::size_t>(external_size(*type) * n));
  ASSERT_TRUE(pack_external({records.data(), n, type}, out.data()).ok());
  ASSERT_TRUE(unpack_external({back.data(), n, type}, out.data()).ok());
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(back[i].tag, records[i].tag);
    EXPECT_EQ(back[i].number, records[i].number);
    EXPECT_EQ(back[i].values[2], records[i].values[2]);
    EXPECT_EQ(back[i].wide, records[i].wide);
  }
  std::vector<int> numbers(5000), numbers_back(5000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * 7);
  std::vector<std::byte> flat(20000);
  ASSERT_TRUE(pack_external({numbers.data(), 5000, find_datatype(MPI_INT)}, flat.data()).ok());
  ASSERT_TRUE(unpack_external({numbers_back.data(), 5000, find_datatype(MPI_INT)}, flat.data()).ok());
  EXPECT_EQ(numbers, numbers_back);
  release(type);
}

TEST_F(External32, pairs_have_no_gap) {
  EXPECT_EQ(external_size(*find_datatype(MPI_DOUBLE_INT)), 12);
  EXPECT_EQ(external_size(*find_datatype(MPI_LONG_DOUBLE_INT)), 20);
  EXPECT_EQ(external_size(*find_datatype(MPI_LONG_INT)), 8);
}

} // namespace
} // namespace near::datatype
