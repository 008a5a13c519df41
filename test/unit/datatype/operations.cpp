// Every predefined operation on every type that it is defined for, and user functions.
#include "datatype/operation.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>

namespace near::datatype {
namespace {

class Operations : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(make_predefined_types().ok());
    ASSERT_TRUE(make_predefined_operations().ok());
  }
  template <class T>
  static T once(MPI_Op op, MPI_Datatype type, T in, T inout) {
    Operation& operation = *find_operation(op);
    EXPECT_TRUE(check_operation(operation, *find_datatype(type)).ok()) << base::failure_text();
    reduce(operation, &in, &inout, 1, *find_datatype(type));
    return inout;
  }
};

TEST_F(Operations, each_is_defined_on_the_standards_types_only) {
  // In the order SUM PROD MAX MIN LAND LOR LXOR BAND BOR BXOR MINLOC MAXLOC REPLACE NO_OP.
  const MPI_Op all[] = {MPI_SUM,  MPI_PROD, MPI_MAX,  MPI_MIN,    MPI_LAND,   MPI_LOR,     MPI_LXOR,
                        MPI_BAND, MPI_BOR,  MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  auto mask = [&](MPI_Datatype type) {
    std::string text;
    for (MPI_Op op : all) text += check_operation(*find_operation(op), *find_datatype(type)).ok() ? '1' : '.';
    return text;
  };
  for (MPI_Datatype type : {MPI_INT, MPI_AINT, MPI_UNSIGNED_LONG, MPI_SIGNED_CHAR, MPI_UINT16_T, MPI_COUNT})
    EXPECT_EQ(mask(type), "1111111111....");
  for (MPI_Datatype type : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER16})
    EXPECT_EQ(mask(type), "1111...111....");
  for (MPI_Datatype type : {MPI_FLOAT, MPI_LONG_DOUBLE, MPI_REAL2, MPI_REAL16, MPI_DOUBLE_PRECISION})
    EXPECT_EQ(mask(type), "1111..........");
  for (MPI_Datatype type : {MPI_C_COMPLEX, MPI_COMPLEX32, MPI_COMPLEX4, MPI_C_LONG_DOUBLE_COMPLEX})
    EXPECT_EQ(mask(type), "11............");
  for (MPI_Datatype type : {MPI_C_BOOL, MPI_LOGICAL, MPI_LOGICAL16}) EXPECT_EQ(mask(type), "....111.......");
  EXPECT_EQ(mask(MPI_BYTE), ".......111....");
  for (MPI_Datatype type : {MPI_FLOAT_INT, MPI_2INT, MPI_2REAL}) EXPECT_EQ(mask(type), "..........11..");
  for (MPI_Datatype type : {MPI_CHARACTER, MPI_WCHAR, MPI_PACKED}) EXPECT_EQ(mask(type), "..............");
}

TEST_F(Operations, derived_types_are_refused_by_predefined_operations) {
  Datatype* pair = nullptr;
  ASSERT_TRUE(make_contiguous(2, *find_datatype(MPI_INT), pair).ok());
  EXPECT_EQ(check_operation(*find_operation(MPI_SUM), *pair).code(), MPI_ERR_OP);
  EXPECT_EQ(check_accumulate(*find_operation(MPI_REPLACE), *pair).code(), MPI_SUCCESS);
  release(pair);
}

TEST_F(Operations, every_defined_combination_runs_on_every_type) {
  // Values 2 and 3 (or true and true) of each type, made by adding ones if the type has a sum.
  for (std::uintptr_t bits = 0x200; bits < 0x300; ++bits) {
    Datatype* type = find_datatype(reinterpret_cast<MPI_Datatype>(bits));
    if (type == nullptr) continue;
    for (std::uintptr_t op = 0x20; op < 0x40; ++op) {
      Operation* operation = find_operation(reinterpret_cast<MPI_Op>(op));
      if (operation == nullptr || !check_operation(*operation, *type).ok()) continue;
      SCOPED_TRACE(describe(*operation) + " on " + describe(*type));
      constexpr MPI_Count n = 9;
      std::vector<std::byte> in(static_cast<std::size_t>(n * type->extent) + 1), inout(in.size());
      inout.back() = std::byte{0x77};
      reduce(*operation, in.data(), inout.data(), n, *type);
      EXPECT_EQ(inout.back(), std::byte{0x77}) << "wrote behind the end";
      for (std::size_t i = 0; i + 1 < inout.size(); ++i) EXPECT_EQ(inout[i], std::byte{0}) << "0 op 0 is 0";
    }
  }
}

TEST_F(Operations, integers_wrap_around) {
  EXPECT_EQ(once<int>(MPI_SUM, MPI_INT, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(once<std::uint16_t>(MPI_PROD, MPI_UINT16_T, 0xffff, 0xffff), 1);
  EXPECT_EQ(once<std::int8_t>(MPI_PROD, MPI_INT8_T, -128, -1), -128);
  EXPECT_EQ(once<Int128>(MPI_SUM, MPI_INTEGER16, Int128{1} << 100, Int128{1} << 100) >> 101, Int128{1});
  EXPECT_EQ(once<std::int64_t>(MPI_MIN, MPI_INT64_T, -5, 4), -5);
  EXPECT_EQ(once<std::uint64_t>(MPI_MAX, MPI_UINT64_T, ~0ull, 4), ~0ull);
  EXPECT_EQ(once<int>(MPI_BXOR, MPI_INT, 0b1100, 0b1010), 0b0110);
}

TEST_F(Operations, floating_types_of_every_width_calculate) {
  EXPECT_EQ(once<double>(MPI_SUM, MPI_DOUBLE, 0.5, 0.25), 0.75);
  EXPECT_EQ(once<long double>(MPI_PROD, MPI_LONG_DOUBLE, 3.0L, 0.5L), 1.5L);
  EXPECT_TRUE(once<Float128>(MPI_SUM, MPI_REAL16, Float128(1), Float128(2)) == Float128(3));
  EXPECT_EQ(float{once<Half>(MPI_SUM, MPI_REAL2, Half::from(1.5f), Half::from(2.25f))}, 3.75f);
  EXPECT_EQ(float{once<Half>(MPI_MAX, MPI_REAL2, Half::from(-1.5f), Half::from(-2.25f))}, -1.5f);
  std::complex<float> product = once<std::complex<float>>(MPI_PROD, MPI_C_COMPLEX, {1, 2}, {3, 4});
  EXPECT_EQ(product, (std::complex<float>{-5, 10}));
}

TEST_F(Operations, half_precision_survives_the_way_through_float) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    Half half{static_cast<std::uint16_t>(bits)};
    float wide = half;
    if (wide != wide) {
      EXPECT_NE(float{Half::from(wide)}, float{Half::from(wide)});
      continue;
    }
    ASSERT_EQ(Half::from(wide).bits, bits);
  }
  EXPECT_EQ(Half::from(65519.9f).bits, 0x7bff);
  EXPECT_EQ(Half::from(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half::from(1.00048828125f).bits, 0x3c00) << "a tie goes to even";
  EXPECT_EQ(Half::from(0x1p-25f).bits, 0) << "a tie goes to even";
  EXPECT_EQ(Half::from(0x1.8p-25f).bits, 1);
}

TEST_F(Operations, any_nonzero_logical_is_true_and_results_are_one) {
  EXPECT_EQ(once<int>(MPI_LAND, MPI_LOGICAL, -1, 2), 1);
  EXPECT_EQ(once<int>(MPI_LXOR, MPI_INT, 8, 4), 0);
  EXPECT_EQ(once<std::uint8_t>(MPI_LOR, MPI_C_BOOL, 0, 1), 1);
  EXPECT_EQ(once<std::int64_t>(MPI_LAND, MPI_LOGICAL8, std::int64_t{1} << 40, 1), 1);
}

struct DoubleInt {
  double value;
  int index;
};

TEST_F(Operations, locations_take_the_lesser_index_of_equal_values) {
  DoubleInt minimum = once<DoubleInt>(MPI_MINLOC, MPI_DOUBLE_INT, {1.0, 7}, {1.0, 3});
  EXPECT_EQ(minimum.index, 3);
  minimum = once<DoubleInt>(MPI_MINLOC, MPI_DOUBLE_INT, {1.0, 2}, {1.0, 3});
  EXPECT_EQ(minimum.index, 2);
  DoubleInt maximum = once<DoubleInt>(MPI_MAXLOC, MPI_DOUBLE_INT, {5.0, 9}, {1.0, 3});
  EXPECT_EQ(maximum.index, 9);
  EXPECT_EQ(maximum.value, 5.0);
  struct TwoReals {
    float value, index;
  };
  TwoReals real = once<TwoReals>(MPI_MINLOC, MPI_2REAL, {-1, 4}, {2, 3});
  EXPECT_EQ(real.index, 4);
  struct LongDoubleInt {
    long double value;
    int index;
  };
  LongDoubleInt wide = once<LongDoubleInt>(MPI_MAXLOC, MPI_LONG_DOUBLE_INT, {2, 4}, {2, 5});
  EXPECT_EQ(wide.index, 4);
}

int calls = 0;
MPI_Count seen_length = 0;
bool handle_was_good = false;

void sum_with_int_length(void* in, void* inout, int* length, MPI_Datatype* type) {
  ++calls;
  seen_length = *length;
  handle_was_good = find_datatype(*type) != nullptr;
  for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}
void count_calls(void*, void*, int* length, MPI_Datatype*) {
  ++calls;
  seen_length += *length;
}
void count_calls_large(void*, void*, MPI_Count* length, MPI_Datatype*) {
  ++calls;
  seen_length += *length;
}

TEST_F(Operations, a_user_function_gets_the_lengths_it_can_hold) {
  Datatype& type = *find_datatype(MPI_INT);
  Operation* narrow = make_operation(count_calls, nullptr, true);
  Operation* wide = make_operation(nullptr, count_calls_large, false);
  EXPECT_FALSE(wide->commutative);
  constexpr MPI_Count many = (MPI_Count{1} << 32) + 5;
  calls = 0, seen_length = 0;
  char anywhere[4];
  reduce(*narrow, anywhere, anywhere, many, type);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(seen_length, many);
  calls = 0, seen_length = 0;
  reduce(*wide, anywhere, anywhere, many, type);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen_length, many);
  MPI_Op handle = public_handle(*narrow);
  free_operation(*narrow);
  EXPECT_EQ(find_operation(handle), nullptr);
  free_operation(*wide);
}

TEST_F(Operations, a_user_function_may_use_a_type_that_the_program_has_freed) {
  Datatype* type = nullptr;
  ASSERT_TRUE(make_contiguous(1, *find_datatype(MPI_INT), type).ok());
  object::keep(type); // as a pending reduction does
  ASSERT_TRUE(free_type(*type).ok());
  MPI_Datatype handle =
      reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(type->handle & ~object::retired_bit));
  Operation* operation = make_operation(sum_with_int_length, nullptr, true);
  int in = 4, inout = 5;
  reduce(*operation, &in, &inout, 1, *type);
  EXPECT_EQ(inout, 9);
  EXPECT_TRUE(handle_was_good);
  EXPECT_EQ(find_datatype(handle), nullptr);
  release(type);
  free_operation(*operation);
}

} // namespace
} // namespace near::datatype
