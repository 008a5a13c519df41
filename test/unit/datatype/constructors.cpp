// Bounds, limits and lifetimes of constructed types. The expected bounds agree with those of MPICH 5.0.
#include "datatype/datatype.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace near::datatype {
namespace {

using Numbers = std::vector<MPI_Count>;
constexpr MPI_Count largest = std::numeric_limits<MPI_Count>::max();

class Constructors : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(make_predefined_types().ok());
    live_ = datatypes().live();
  }
  void TearDown() override {
    for (Datatype* type : made_) release(type);
    EXPECT_EQ(datatypes().live(), live_);
  }
  Datatype& own(Result result, Datatype* type) {
    EXPECT_TRUE(result.ok()) << base::failure_text();
    made_.push_back(type);
    return *type;
  }
  Datatype& contiguous(MPI_Count count, Datatype& old) {
    Datatype* type = nullptr;
    Result result = make_contiguous(count, old, type);
    return own(result, type);
  }
  Datatype& vector(MPI_Count count, MPI_Count length, MPI_Count stride, Datatype& old,
                   bool in_bytes = false) {
    Datatype* type = nullptr;
    Result result = make_vector(count, length, stride, in_bytes, old, type);
    return own(result, type);
  }
  Datatype& structure(const Numbers& lengths, const Numbers& at, std::vector<Datatype*> types) {
    Datatype* type = nullptr;
    Result result = make_struct(lengths, at, types, type);
    return own(result, type);
  }
  Datatype& resized(Datatype& old, MPI_Count lb, MPI_Count extent) {
    Datatype* type = nullptr;
    Result result = make_resized(old, lb, extent, type);
    return own(result, type);
  }
  static Datatype& named(MPI_Datatype handle) { return *find_datatype(handle); }
  static void expect_bounds(const Datatype& type, MPI_Count size, MPI_Count lb, MPI_Count extent,
                            MPI_Count true_lb, MPI_Count true_extent) {
    EXPECT_EQ(type.size, size);
    EXPECT_EQ(type.lb, lb);
    EXPECT_EQ(type.extent, extent);
    EXPECT_EQ(type.true_lb, true_lb);
    EXPECT_EQ(type.true_extent, true_extent);
  }
  std::vector<Datatype*> made_;
  std::size_t live_ = 0;
};

TEST_F(Constructors, predefined_pairs_are_laid_out_as_c_structs) {
  struct DoubleInt {
    double value;
    int index;
  };
  struct LongDoubleInt {
    long double value;
    int index;
  };
  EXPECT_EQ(named(MPI_DOUBLE_INT).extent, static_cast<MPI_Count>(sizeof(DoubleInt)));
  EXPECT_EQ(named(MPI_DOUBLE_INT).size, 12);
  EXPECT_EQ(named(MPI_LONG_DOUBLE_INT).extent, static_cast<MPI_Count>(sizeof(LongDoubleInt)));
  EXPECT_EQ(named(MPI_SHORT_INT).size, 6);
  EXPECT_EQ(named(MPI_SHORT_INT).extent, 8);
  EXPECT_TRUE(named(MPI_2INT).contiguous);
  EXPECT_FALSE(named(MPI_DOUBLE_INT).contiguous);
  EXPECT_EQ(named(MPI_FLOAT_INT).element_count, 2);
}

TEST_F(Constructors, packing_a_pair_skips_its_gap) {
  struct Pair {
    double value;
    int index;
    int gap;
  };
  Pair pairs[2] = {{1.5, 7, -1}, {2.5, 8, -1}}, back[2] = {{0, 0, 5}, {0, 0, 5}};
  std::byte packed[24];
  pack({pairs, 2, &named(MPI_DOUBLE_INT)}, 0, packed, 24);
  unpack({back, 2, &named(MPI_DOUBLE_INT)}, 0, packed, 24);
  EXPECT_EQ(back[1].value, 2.5);
  EXPECT_EQ(back[1].index, 8);
  EXPECT_EQ(back[0].gap, 5);
  EXPECT_EQ(back[1].gap, 5);
}

TEST_F(Constructors, a_struct_is_padded_like_a_c_struct) {
  Datatype &integer = named(MPI_INT), &character = named(MPI_CHAR);
  expect_bounds(structure({1, 1}, {0, 4}, {&integer, &character}), 5, 0, 8, 0, 5);
  expect_bounds(structure({1, 1}, {1, 5}, {&integer, &character}), 5, 1, 8, 1, 5);
  expect_bounds(structure({1, 1}, {-5, 0}, {&integer, &character}), 5, -5, 8, -5, 6);
  expect_bounds(structure({1, 1}, {0, 5}, {&integer, &integer}), 8, 0, 12, 0, 9);
  expect_bounds(structure({0, 1}, {0, 4}, {&integer, &character}), 1, 4, 1, 4, 1);
  expect_bounds(structure({0, 0}, {0, 4}, {&integer, &character}), 0, 0, 0, 0, 0);
  expect_bounds(structure({1, 1, 1}, {0, 8, -3}, {&character, &integer, &named(MPI_DOUBLE)}), 13, -3, 16, -3,
                15);
}

TEST_F(Constructors, a_resized_member_takes_part_with_the_bounds_it_was_given) {
  Datatype &integer = named(MPI_INT), &character = named(MPI_CHAR);
  Datatype& member = resized(integer, -2, 3);
  expect_bounds(member, 4, -2, 3, 0, 4);
  expect_bounds(structure({1, 1}, {0, 10}, {&member, &character}), 5, -2, 16, 0, 11);
  expect_bounds(structure({3, 1}, {0, 10}, {&member, &character}), 13, -2, 16, 0, 11);
  expect_bounds(structure({1, 2}, {10, -20}, {&character, &member}), 9, -22, 36, -20, 31);
  expect_bounds(contiguous(3, member), 12, -2, 9, 0, 10);
  expect_bounds(resized(structure({1, 1}, {0, 10}, {&member, &character}), 0, 16), 5, 0, 16, 0, 11);
}

TEST_F(Constructors, a_type_without_data_may_still_have_an_extent) {
  Datatype& nothing = contiguous(0, named(MPI_INT));
  expect_bounds(nothing, 0, 0, 0, 0, 0);
  Datatype& space = resized(nothing, 4, 8);
  expect_bounds(contiguous(3, space), 0, 4, 24, 0, 0);
  expect_bounds(structure({1, 1}, {100, 0}, {&nothing, &named(MPI_INT)}), 4, 0, 4, 0, 4);
  EXPECT_EQ(elements_in(space, 0), 0);
  EXPECT_EQ(bytes_of_elements(space, 3), -1);
  pack({nullptr, 5, &space}, 0, nullptr, 0);
}

TEST_F(Constructors, negative_strides_and_extents_have_bounds) {
  expect_bounds(vector(3, 2, -3, named(MPI_INT)), 24, -24, 32, -24, 32);
  Datatype& backwards = resized(named(MPI_INT), 8, -4);
  expect_bounds(contiguous(3, backwards), 12, 0, 4, -8, 12);
}

TEST_F(Constructors, equal_layouts_become_equal_forms) {
  using Kind = NormalForm::Kind;
  Datatype& integer = named(MPI_INT);
  EXPECT_TRUE(contiguous(5, contiguous(7, integer)).contiguous);
  EXPECT_TRUE(vector(5, 3, 3, integer).contiguous);
  Datatype* type = nullptr;
  Result result = make_indexed(Numbers{2, 2, 2}, Numbers{0, 4, 8}, false, integer, type);
  const NormalForm& indexed = *own(result, type).form.form;
  EXPECT_EQ(indexed.kind, Kind::loop);
  EXPECT_EQ(indexed.stride, 16);
  EXPECT_EQ(indexed.count, 3);
  const NormalForm& nested = *contiguous(3, resized(vector(4, 1, 2, integer), 0, 32)).form.form;
  EXPECT_EQ(nested.kind, Kind::loop);
  EXPECT_EQ(nested.count, 12);
  const NormalForm& members = *structure({1, 1}, {0, 8}, {&integer, &integer}).form.form;
  EXPECT_EQ(members.kind, Kind::loop);
  const NormalForm& joined = *structure({1, 2}, {0, 4}, {&integer, &named(MPI_SHORT)}).form.form;
  EXPECT_EQ(joined.kind, Kind::block);
}

TEST_F(Constructors, indexed_blocks_of_one_length_take_an_offset_each) {
  using Kind = NormalForm::Kind;
  Datatype& integer = named(MPI_INT);
  auto form_of = [&](const Numbers& lengths, const Numbers& at) -> const NormalForm& {
    Datatype* type = nullptr;
    Result result = make_indexed(lengths, at, false, integer, type);
    return *own(result, type).form.form;
  };
  const NormalForm& apart = form_of({2, 2, 2, 2}, {0, 3, 9, 40});
  ASSERT_EQ(apart.kind, Kind::equal);
  EXPECT_EQ(apart.count, 4);
  EXPECT_EQ(apart.child->size, 8);
  EXPECT_TRUE(apart.entries.positions().is_narrow());
  EXPECT_EQ(apart.entries.positions()[3], 160);
  // Some are neighbours: blocks of 1, 2 and 1 would have different lengths.
  const NormalForm& neighbours = form_of({1, 1, 1, 1}, {0, 3, 4, 9});
  ASSERT_EQ(neighbours.kind, Kind::equal);
  EXPECT_EQ(neighbours.count, 4);
  EXPECT_EQ(neighbours.entries.positions()[2], 16);
  // Different lengths with a common part.
  const NormalForm& different = form_of({2, 4, 2}, {0, 3, 9});
  ASSERT_EQ(different.kind, Kind::equal);
  EXPECT_EQ(different.child->size, 8);
  EXPECT_EQ(different.count, 4);
  // Cut up, these would take more memory than they do.
  EXPECT_EQ(form_of({1, 100, 1}, {0, 3, 200}).kind, Kind::blocks);
  // Neighbours all along are one block, and blocks at one distance a loop.
  EXPECT_EQ(form_of({1, 2, 1}, {0, 1, 3}).kind, Kind::block);
  EXPECT_EQ(form_of({1, 1, 1}, {0, 4, 8}).kind, Kind::loop);
}

TEST_F(Constructors, offsets_beyond_32_bits_are_kept) {
  Datatype* type = nullptr;
  const MPI_Count far = MPI_Count{1} << 40;
  Result result = make_indexed_block(1, Numbers{0, 5, far, -far}, true, named(MPI_INT), type);
  const NormalForm& form = *own(result, type).form.form;
  ASSERT_EQ(form.kind, NormalForm::Kind::equal);
  EXPECT_FALSE(form.entries.positions().is_narrow());
  EXPECT_EQ(form.entries.size(), 4u);
  EXPECT_EQ(form.entries.positions()[1], 5);
  EXPECT_EQ(form.entries.positions()[2], far);
  EXPECT_EQ(form.entries.positions()[3], -far);
}

TEST_F(Constructors, what_is_one_grid_is_copied_without_a_walk) {
  Datatype& number = named(MPI_DOUBLE);
  const copy::Grid& plain = vector(5, 2, 7, number).grid;
  EXPECT_EQ(plain.bytes, 16u);
  EXPECT_EQ(plain.count, 5u);
  EXPECT_EQ(plain.stride, 56);
  EXPECT_EQ(plain.rows, 1u);
  Datatype& rows = vector(3, 1, 1000, vector(4, 1, 3, number), true);
  EXPECT_EQ(rows.grid.rows, 3u);
  EXPECT_EQ(rows.grid.row_stride, 1000);
  EXPECT_NE(rows.gather, nullptr);
  EXPECT_NE(rows.scatter, nullptr);
  EXPECT_EQ(vector(2, 1, 90000, rows, true).grid.bytes, 0u);
  EXPECT_EQ(structure({1, 1}, {0, 8}, {&named(MPI_INT), &number}).grid.bytes, 0u);
}

TEST_F(Constructors, what_does_not_fit_is_refused_with_a_sentence) {
  Datatype* type = nullptr;
  Datatype& integer = named(MPI_DOUBLE);
  EXPECT_EQ(make_contiguous(largest, integer, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(make_vector(largest, largest, largest, false, integer, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(make_vector(2, 1, largest, true, integer, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(make_indexed(Numbers{1, 1}, Numbers{0, largest / 4}, false, integer, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(make_indexed(Numbers{1, 1}, Numbers{-largest, largest - 8}, true, integer, type).code(),
            MPI_ERR_ARG);
  EXPECT_EQ(make_indexed(Numbers{-1}, Numbers{0}, true, integer, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(make_resized(integer, largest, 1, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(make_subarray(Numbers{largest, largest}, Numbers{1, 1}, Numbers{0, 0}, MPI_ORDER_C, integer, type)
                .code(),
            MPI_ERR_ARG);
  EXPECT_EQ(make_subarray(Numbers{4}, Numbers{3}, Numbers{2}, MPI_ORDER_C, integer, type).code(),
            MPI_ERR_ARG);
  EXPECT_EQ(make_subarray(Numbers{4}, Numbers{3}, Numbers{0}, 7, integer, type).code(), MPI_ERR_ARG);
  EXPECT_EQ(type, nullptr);
  EXPECT_FALSE(base::failure_text().empty());
  // A stride that is never applied cannot overflow.
  Result result = make_vector(1, 1, largest, false, integer, type);
  own(result, type);
}

TEST_F(Constructors, sizes_beyond_32_bits_are_only_arithmetic) {
  Datatype& large = contiguous(MPI_Count{1} << 40, vector(1 << 20, 1, 2, named(MPI_CHAR)));
  EXPECT_EQ(large.size, MPI_Count{1} << 60);
  EXPECT_EQ(large.element_count, MPI_Count{1} << 60);
  EXPECT_EQ(elements_in(large, (MPI_Count{1} << 60) - 3), (MPI_Count{1} << 60) - 3);
}

TEST_F(Constructors, a_million_blocks_nested_in_vectors_and_structs_are_shared) {
  constexpr std::size_t blocks = 1'000'000;
  Numbers lengths(blocks), at(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    lengths[i] = 1 + static_cast<MPI_Count>(i % 3);
    at[i] = static_cast<MPI_Count>(i * 5);
  }
  Datatype* type = nullptr;
  Result result = make_indexed(lengths, at, false, named(MPI_CHAR), type);
  Datatype& indexed = own(result, type);
  Datatype* level = &indexed;
  for (int depth = 0; depth < 10; ++depth)
    level = &structure({1, 1}, {0, 1 << 25}, {&vector(3, 1, 2, *level), &named(MPI_INT)});
  std::vector<std::byte> memory(1 << 23), out(64);
  // A few bytes far into the type are found by binary search, not by a walk.
  for (int i = 0; i < 100'000; ++i) pack({memory.data(), 1, &indexed}, indexed.size - 64, out.data(), 64);
  EXPECT_GT(level->size, indexed.size * 59'000);
}

TEST_F(Constructors, deep_chains_of_structs_stay_shallow) {
  Datatype* type = object::keep(find_datatype(MPI_CHAR));
  for (int depth = 1; depth <= 3000; ++depth) {
    Datatype* next = nullptr;
    Datatype* members[] = {type, find_datatype(MPI_CHAR)};
    Numbers lengths{1, 1}, at{0, depth * 3};
    if (depth % 3 == 0) std::swap(members[0], members[1]), std::swap(at[0], at[1]);
    ASSERT_TRUE(make_struct(lengths, at, members, next).ok());
    release(type);
    type = next;
  }
  EXPECT_EQ(type->size, 3001);
  EXPECT_LT(type->form.form->depth, 200);
  own({}, type);
}

TEST_F(Constructors, a_million_duplicates_of_duplicates_are_released_without_recursion) {
  Datatype* type = object::keep(find_datatype(MPI_INT));
  for (int i = 0; i < 200'000; ++i) {
    Datatype* next = nullptr;
    ASSERT_TRUE(make_duplicate(*type, next).ok());
    Datatype* old[] = {type};
    record_envelope(*next, MPI_COMBINER_DUP, false, {}, {}, {}, old);
    release(type);
    type = next;
  }
  release(type);
}

TEST_F(Constructors, a_type_outlives_its_handle_while_another_is_made_of_it) {
  Datatype *inner = nullptr, *outer = nullptr;
  ASSERT_TRUE(make_vector(2, 1, 2, false, named(MPI_INT), inner).ok());
  ASSERT_TRUE(make_contiguous(2, *inner, outer).ok());
  Datatype* old[] = {inner};
  record_envelope(*outer, MPI_COMBINER_CONTIGUOUS, false, {2}, {}, {}, old);
  MPI_Datatype handle = public_handle(*inner);
  ASSERT_TRUE(free_type(*inner).ok());
  EXPECT_EQ(find_datatype(handle), nullptr) << "the handle is stale at once";
  // The contents return it under the same handle.
  Datatype* again = give_handle(*outer->envelope.types[0]);
  EXPECT_EQ(public_handle(*again), handle);
  EXPECT_EQ(find_datatype(handle), inner);
  ASSERT_TRUE(free_type(*outer).ok());
  EXPECT_EQ(find_datatype(handle), inner);
  ASSERT_TRUE(free_type(*inner).ok());
}

TEST_F(Constructors, predefined_types_cannot_be_freed_and_commit_twice_is_fine) {
  EXPECT_EQ(free_type(named(MPI_INT)).code(), MPI_ERR_TYPE);
  release(&named(MPI_INT));
  EXPECT_NE(find_datatype(MPI_INT), nullptr);
  Datatype& type = contiguous(2, named(MPI_INT));
  EXPECT_FALSE(type.committed);
  EXPECT_TRUE(commit(type).ok());
  EXPECT_TRUE(commit(type).ok());
  EXPECT_TRUE(type.committed);
}

TEST_F(Constructors, absolute_addresses_from_bottom_are_reached) {
  int here = 42, there = 43;
  Numbers at{reinterpret_cast<MPI_Aint>(&here), reinterpret_cast<MPI_Aint>(&there)};
  Datatype* type = nullptr;
  Result result = make_indexed_block(1, at, true, named(MPI_INT), type);
  int packed[2];
  pack({MPI_BOTTOM, 1, &own(result, type)}, 0, packed, 8);
  EXPECT_EQ(packed[0], 42);
  EXPECT_EQ(packed[1], 43);
}

} // namespace

TEST(PredefinedTypes, every_constant_of_the_abi_has_a_type) {
  ASSERT_TRUE(make_predefined_types().ok());
  ASSERT_TRUE(make_predefined_types().ok());
  int found = 0;
  for (std::uintptr_t bits = 0x200; bits < 0x300; ++bits) {
    Datatype* type = find_datatype(reinterpret_cast<MPI_Datatype>(bits));
    if (type == nullptr) continue;
    ++found;
    EXPECT_TRUE(type->predefined && type->committed);
    EXPECT_EQ(type->name.substr(0, 4), "MPI_");
    EXPECT_GT(type->size, 0);
  }
  EXPECT_EQ(found, 70);
  EXPECT_EQ(find_datatype(MPI_DATATYPE_NULL), nullptr);
  EXPECT_EQ(find_datatype(MPI_LONG_LONG_INT)->name, "MPI_LONG_LONG_INT");
}

TEST(PredefinedTypes, value_and_index_name_a_pair) {
  ASSERT_TRUE(make_predefined_types().ok());
  Datatype* pair = nullptr;
  auto ask = [&](MPI_Datatype value, MPI_Datatype index) {
    EXPECT_TRUE(value_index_type(*find_datatype(value), *find_datatype(index), pair).ok());
    return pair;
  };
  EXPECT_EQ(ask(MPI_FLOAT, MPI_INT), find_datatype(MPI_FLOAT_INT));
  EXPECT_EQ(ask(MPI_INT, MPI_INT), find_datatype(MPI_2INT));
  EXPECT_EQ(ask(MPI_FLOAT, MPI_FLOAT), nullptr);
}

TEST(PredefinedTypes, fortran_kinds_are_found_by_precision_and_kept) {
  ASSERT_TRUE(make_predefined_types().ok());
  Datatype *single = nullptr, *again = nullptr, *wide = nullptr;
  ASSERT_TRUE(fortran_type(MPI_COMBINER_F90_REAL, 6, 30, single).ok());
  ASSERT_TRUE(fortran_type(MPI_COMBINER_F90_REAL, 6, 30, again).ok());
  ASSERT_TRUE(fortran_type(MPI_COMBINER_F90_REAL, 7, MPI_UNDEFINED, wide).ok());
  EXPECT_EQ(single, again);
  EXPECT_EQ(single->size, 4);
  EXPECT_EQ(wide->size, 8);
  EXPECT_EQ(single->envelope.integers, (std::vector<int>{6, 30}));
  EXPECT_EQ(free_type(*single).code(), MPI_ERR_TYPE);
  EXPECT_EQ(fortran_type(MPI_COMBINER_F90_REAL, 60, 30, wide).code(), MPI_ERR_ARG);
  Datatype* sized = nullptr;
  ASSERT_TRUE(match_size(MPI_TYPECLASS_INTEGER, 8, sized).ok());
  EXPECT_EQ(sized->name, "MPI_INTEGER8");
  EXPECT_EQ(match_size(MPI_TYPECLASS_REAL, 3, sized).code(), MPI_ERR_ARG);
}

} // namespace near::datatype
