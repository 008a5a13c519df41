#include "buffers.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace near::coll::test {
namespace {

Datatype* cell_types[3] = {};

Datatype* committed(Datatype* type) {
  EXPECT_TRUE(datatype::commit(*type).ok());
  return type;
}

} // namespace

void make_types() {
  if (cell_types[0] != nullptr) return;
  ASSERT_TRUE(datatype::make_predefined_types().ok());
  ASSERT_TRUE(datatype::make_predefined_operations().ok());
  Datatype& integer = *datatype::find_datatype(MPI_INT);
  cell_types[2] = &integer;
  Datatype *plain = nullptr, *pair = nullptr, *gaps = nullptr;
  ASSERT_TRUE(datatype::make_contiguous(2, integer, plain).ok());
  cell_types[0] = committed(plain);
  const MPI_Count lengths[] = {1, 1}, displacements[] = {-4, 8};
  ASSERT_TRUE(datatype::make_indexed(lengths, displacements, true, integer, pair).ok());
  ASSERT_TRUE(datatype::make_resized(*pair, -8, 24, gaps).ok());
  cell_types[1] = committed(gaps);
}

Datatype& type_of(Layout layout) { return *cell_types[static_cast<int>(layout)]; }

std::size_t TestBuffer::place(MPI_Count at, bool first) const {
  const std::ptrdiff_t offset = layout_ == Layout::gaps ? (first ? -4 : 8) : (first ? 0 : 4);
  return guard + static_cast<std::size_t>(at) * stride() + static_cast<std::size_t>(offset);
}

void TestBuffer::set(MPI_Count at, Cell value) {
  std::memcpy(&bytes_[place(at, true)], &value.a, 4);
  std::memcpy(&bytes_[place(at, false)], &value.b, 4);
}

Cell TestBuffer::get(MPI_Count at) const {
  Cell value;
  std::memcpy(&value.a, &bytes_[place(at, true)], 4);
  std::memcpy(&value.b, &bytes_[place(at, false)], 4);
  return value;
}

void TestBuffer::fill(int call, int rank, MPI_Count first, MPI_Count cells) {
  for (MPI_Count i = 0; i < cells; ++i) set(first + i, cell(call, rank, i));
}

MPI_Count TestBuffer::first_wrong(int call, int rank, MPI_Count first, MPI_Count cells) const {
  for (MPI_Count i = 0; i < cells; ++i)
    if (get(first + i) != cell(call, rank, i)) return i;
  return -1;
}

bool TestBuffer::holes_untouched() const {
  std::vector<std::uint8_t> copy = bytes_;
  for (MPI_Count i = 0; i < cells_; ++i)
    for (const bool first : {true, false}) std::memset(&copy[place(i, first)], untouched, 4);
  return std::all_of(copy.begin(), copy.end(), [](std::uint8_t byte) { return byte == untouched; });
}

namespace {

std::int64_t term(int rank, std::size_t place) {
  return (rank + 1) * 1'000'000 + static_cast<std::int64_t>(place);
}

} // namespace

void fill_terms(std::span<std::int64_t> terms, int rank) {
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = term(rank, i);
}

std::ptrdiff_t first_wrong_sum(std::span<const std::int64_t> sums, int last, std::size_t first) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::int64_t sum = 0;
    for (int rank = 0; rank <= last; ++rank) sum += term(rank, first + i);
    if (sums[i] != sum) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

} // namespace near::coll::test
