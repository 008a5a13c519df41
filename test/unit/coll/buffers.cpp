#include "buffers.h"

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

} // namespace near::coll::test
