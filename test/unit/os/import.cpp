// The program itself serves as the library whose import is replaced.
#include "os/import.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace near::os {
namespace {

constexpr pid_t somebody = 4711;

pid_t nobody() { return somebody; }
long uncalled() { return 0; }

TEST(ReplacedImport, lasts_as_long_as_itself) {
  void* program = dlopen(nullptr, RTLD_NOW);
  const pid_t parent = getppid();
  {
    const ReplacedImport replaced(program, "getppid", &nobody);
    EXPECT_TRUE(replaced.is_found());
    EXPECT_EQ(getppid(), somebody);
  }
  EXPECT_EQ(getppid(), parent);
}

TEST(ReplacedImport, can_be_repeated) {
  void* program = dlopen(nullptr, RTLD_NOW);
  for (int i = 0; i < 2; ++i) {
    const ReplacedImport replaced(program, "getppid", &nobody);
    EXPECT_EQ(getppid(), somebody);
  }
  EXPECT_NE(getppid(), somebody);
}

TEST(ReplacedImport, replaces_nothing_that_is_not_imported) {
  const ReplacedImport replaced(dlopen(nullptr, RTLD_NOW), "no_library_has_this", &uncalled);
  EXPECT_FALSE(replaced.is_found());
}

TEST(ReplacedImport, leaves_other_libraries_alone) {
  void* other = dlopen("libm.so.6", RTLD_NOW);
  ASSERT_NE(other, nullptr) << dlerror();
  const pid_t parent = getppid();
  const ReplacedImport replaced(other, "getppid", &nobody);
  EXPECT_EQ(getppid(), parent);
}

} // namespace
} // namespace near::os
