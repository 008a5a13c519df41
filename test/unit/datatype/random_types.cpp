// The normal form compared with the type map, for thousands of random types.
#include "copy/copy.h"
#include "form_check.h"
#include "type_map.h"

#include <gtest/gtest.h>

#include <cstring>

namespace near::datatype::test {
namespace {

/// Memory that holds `count` elements of a type, and where each packed byte lies in it.
struct Arena {
  std::vector<std::byte> memory;
  std::vector<std::size_t> places; ///< index into memory of each packed byte
  Buffer buffer;

  Arena(const Both& both, MPI_Count count, RandomTypes& random) {
    if (random.pick(0, 3) != 0) (void)commit(*both.type); // which may plan what else is walked
    std::vector<MPI_Count> one = both.map.bytes(), all;
    for (MPI_Count i = 0; i < count; ++i)
      for (MPI_Count at : one) all.push_back(at + i * both.map.extent());
    MPI_Count low = 0, high = 1;
    for (MPI_Count at : all) {
      low = std::min(low, at);
      high = std::max(high, at + 1);
    }
    memory.resize(static_cast<std::size_t>(high - low));
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random.pick(0, 255));
    for (MPI_Count at : all) places.push_back(static_cast<std::size_t>(at - low));
    buffer = {memory.data() - low, count, both.type};
  }
  std::vector<std::byte> packed() const {
    std::vector<std::byte> bytes;
    for (std::size_t place : places) bytes.push_back(memory[place]);
    return bytes;
  }
};

struct Range {
  MPI_Count offset, bytes;
};

Range random_range(RandomTypes& random, std::size_t total) {
  MPI_Count offset = random.pick(0, static_cast<MPI_Count>(total));
  return {offset, random.pick(0, static_cast<MPI_Count>(total) - offset)};
}

/// All at once, as most calls have it.
Range all_of(std::size_t total) { return {0, static_cast<MPI_Count>(total)}; }

/// How many elements: sometimes many, if they are small, since elements of few blocks are copied together.
MPI_Count random_count(const Both& both, RandomTypes& random) {
  const bool small = both.map.size() < 300 && std::abs(both.map.extent()) < 3000;
  return small && random.pick(0, 3) == 0 ? random.pick(4, 60) : random.pick(0, 3);
}

void check_bounds(const Both& both) {
  const Datatype& type = *both.type;
  const TypeMap& map = both.map;
  EXPECT_EQ(type.size, map.size());
  EXPECT_EQ(type.lb, map.lb);
  EXPECT_EQ(type.extent, map.extent());
  EXPECT_EQ(type.true_lb, map.true_lb());
  EXPECT_EQ(type.true_extent, map.true_ub() - map.true_lb());
  EXPECT_EQ(type.element_count, static_cast<MPI_Count>(map.entries.size()));
  if (type.size != 0) { EXPECT_STREQ(FormCheck().broken(*type.form.form), nullptr); }
}

void check_pack(const Both& both, RandomTypes& random) {
  Arena arena(both, random_count(both, random), random);
  std::vector<std::byte> expected = arena.packed();
  ASSERT_EQ(arena.buffer.bytes(), static_cast<MPI_Count>(expected.size()));
  for (int trial = 0; trial < 6; ++trial) {
    Range range = trial == 0 ? all_of(expected.size()) : random_range(random, expected.size());
    std::vector<std::byte> out(static_cast<std::size_t>(range.bytes) + 1, std::byte{0x55});
    if (trial == 0)
      pack_whole(arena.buffer.address, arena.buffer.count, *both.type, out.data(), range.bytes);
    else
      pack(arena.buffer, range.offset, out.data(), range.bytes);
    if (range.bytes == 0) continue;
    ASSERT_EQ(std::memcmp(out.data(), expected.data() + range.offset, static_cast<std::size_t>(range.bytes)),
              0)
        << "offset " << range.offset << " bytes " << range.bytes;
    ASSERT_EQ(out.back(), std::byte{0x55});
  }
}

void check_unpack(const Both& both, RandomTypes& random) {
  Arena arena(both, random_count(both, random), random);
  for (int trial = 0; trial < 6; ++trial) {
    Range range = trial == 0 ? all_of(arena.places.size()) : random_range(random, arena.places.size());
    if (trial == 1) range.offset = 0;
    std::vector<std::byte> in(static_cast<std::size_t>(range.bytes));
    for (std::byte& byte : in) byte = static_cast<std::byte>(random.pick(0, 255));
    std::vector<std::byte> expected = arena.memory;
    for (std::size_t i = 0; i < in.size(); ++i)
      expected[arena.places[static_cast<std::size_t>(range.offset) + i]] = in[i];
    if (range.offset == 0)
      unpack_first(arena.buffer.address, arena.buffer.count, *both.type, in.data(), range.bytes);
    else
      unpack(arena.buffer, range.offset, in.data(), range.bytes);
    ASSERT_EQ(arena.memory, expected) << "offset " << range.offset << " bytes " << range.bytes;
  }
}

void check_pieces(const Both& both, RandomTypes& random) {
  Arena arena(both, random.pick(0, 3), random);
  Range range = random_range(random, arena.places.size());
  auto limit = static_cast<std::size_t>(random.pick(1, 20));
  std::vector<Piece> out(2);
  std::vector<std::byte> expected = arena.packed(), got;
  MPI_Count done = 0;
  while (done < range.bytes) {
    std::size_t before = out.size();
    MPI_Count covered = pieces(arena.buffer, range.offset + done, range.bytes - done, out, limit);
    ASSERT_GT(covered, 0);
    ASSERT_LE(out.size() - before, limit);
    for (std::size_t i = before; i < out.size(); ++i)
      got.insert(got.end(), out[i].address, out[i].address + out[i].bytes);
    done += covered;
    ASSERT_EQ(static_cast<MPI_Count>(got.size()), done);
  }
  ASSERT_EQ(done, range.bytes);
  if (done != 0) { ASSERT_EQ(std::memcmp(got.data(), expected.data() + range.offset, got.size()), 0); }
}

void check_copy(const Both& both, RandomTypes& random) {
  MPI_Count count = random.pick(0, 3);
  Arena from(both, count, random), to(both, count, random);
  std::vector<std::byte> packed = from.packed(), expected = to.memory;
  const auto total = static_cast<MPI_Count>(packed.size());
  MPI_Count bytes = random.pick(0, 1) != 0 ? total : random.pick(0, total);
  for (std::size_t i = 0; i < static_cast<std::size_t>(bytes); ++i) expected[to.places[i]] = packed[i];
  copy(from.buffer, to.buffer, bytes);
  ASSERT_EQ(to.memory, expected);
  std::vector<std::byte> flat(packed.size());
  Datatype* byte = find_datatype(MPI_BYTE);
  copy(from.buffer, {flat.data(), static_cast<MPI_Count>(flat.size()), byte}, bytes);
  if (bytes != 0) { ASSERT_EQ(std::memcmp(flat.data(), packed.data(), static_cast<std::size_t>(bytes)), 0); }
}

void check_elements(const Both& both, RandomTypes& random) {
  MPI_Count size = both.map.size();
  if (size == 0) return;
  MPI_Count bytes = random.pick(0, 2 * size), left = bytes, expected = 0;
  for (std::size_t i = 0; left > 0; i = (i + 1) % both.map.entries.size()) {
    left -= both.map.entries[i].basic->size;
    ++expected;
  }
  EXPECT_EQ(elements_in(*both.type, bytes), left == 0 ? expected : MPI_UNDEFINED);
  if (left == 0) { EXPECT_EQ(bytes_of_elements(*both.type, expected), bytes); }
}

void check_contiguous(const Both& both) {
  if (!both.type->contiguous) return;
  std::vector<MPI_Count> bytes = both.map.bytes();
  ASSERT_EQ(both.map.extent(), static_cast<MPI_Count>(bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(bytes[i], both.type->true_lb + static_cast<MPI_Count>(i));
}

/// Odd seeds run without windows, as on processors that have none.
class RandomTypesAgainstTypeMaps : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    ASSERT_TRUE(make_predefined_types().ok());
    for (const copy::Kernel& kernel : copy::kernels())
      if (kernel.runs() && (GetParam() % 2 == 0 || kernel.windows == nullptr)) {
        copy::choose(kernel.name);
        break;
      }
  }
  void TearDown() override { copy::choose(before_); }

private:
  std::string_view before_ = copy::chosen().name;
};

TEST_P(RandomTypesAgainstTypeMaps, every_question_has_the_same_answer) {
  RandomTypes random(static_cast<std::uint64_t>(GetParam()));
  std::size_t live = datatypes().live();
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << GetParam() << ", type " << i);
    Both both = random.make(static_cast<int>(random.pick(0, 5)));
    check_bounds(both);
    check_contiguous(both);
    check_pack(both, random);
    check_unpack(both, random);
    check_pieces(both, random);
    check_copy(both, random);
    check_elements(both, random);
    release(both.type);
    if (HasFailure()) break;
  }
  EXPECT_EQ(datatypes().live(), live);
}

INSTANTIATE_TEST_SUITE_P(seeds, RandomTypesAgainstTypeMaps, testing::Range(1, 13));

} // namespace
} // namespace near::datatype::test
