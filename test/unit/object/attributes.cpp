// Attribute keys and callbacks: order, errors, re-entrance. Source: MPI 5.0, section 7.7.
#include "object/attribute.h"
#include "object/communicator.h"

#include <gtest/gtest.h>

namespace {

using namespace near::object;

struct Log {
  std::vector<std::string> lines;
  int delete_returns = MPI_SUCCESS;
  int copy_returns = MPI_SUCCESS;
  int copy_flag = 1;
};

int copy_up(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
  auto& log = *static_cast<Log*>(extra);
  auto value = reinterpret_cast<std::intptr_t>(in);
  log.lines.push_back("copy " + std::to_string(value));
  *static_cast<void**>(out) = reinterpret_cast<void*>(value + 100);
  *flag = log.copy_flag;
  return log.copy_returns;
}

int note_delete(MPI_Comm, int, void* value, void* extra) {
  auto& log = *static_cast<Log*>(extra);
  log.lines.push_back("delete " + std::to_string(reinterpret_cast<std::intptr_t>(value)));
  return log.delete_returns;
}

void* number(std::intptr_t n) { return reinterpret_cast<void*>(n); }

struct Attributes : testing::Test {
  Log log;
  Communicator a, b;
  std::vector<int> made;
  ~Attributes() override {
    log.delete_returns = MPI_SUCCESS;
    EXPECT_TRUE(a.attributes.remove_all(a).ok());
    EXPECT_TRUE(b.attributes.remove_all(b).ok());
    for (int key : made) (void)free_attribute_key(Kind::communicator, key);
  }
  int key(void* copy, void* remove) {
    int value = MPI_KEYVAL_INVALID;
    EXPECT_TRUE(make_attribute_key(Kind::communicator, copy, remove, &log, value).ok());
    made.push_back(value);
    return value;
  }
  int logging_key() { return key(reinterpret_cast<void*>(copy_up), reinterpret_cast<void*>(note_delete)); }
  static std::intptr_t value_of(const Communicator& of, int with_key) {
    void* value = nullptr;
    bool found = false;
    EXPECT_TRUE(of.attributes.get(with_key, value, found).ok());
    return found ? reinterpret_cast<std::intptr_t>(value) : -1;
  }
};

using Lines = std::vector<std::string>;

TEST_F(Attributes, are_copied_in_the_order_set_and_deleted_last_first) {
  int first = logging_key(), second = logging_key();
  ASSERT_TRUE(a.attributes.set(a, second, number(2)).ok());
  ASSERT_TRUE(a.attributes.set(a, first, number(1)).ok());
  ASSERT_TRUE(b.attributes.copy_all(a, a.attributes, b).ok());
  EXPECT_EQ(log.lines, (Lines{"copy 2", "copy 1"}));
  EXPECT_EQ(value_of(b, first), 101);
  EXPECT_EQ(value_of(b, second), 102);
  log.lines.clear();
  ASSERT_TRUE(b.attributes.remove_all(b).ok());
  EXPECT_EQ(log.lines, (Lines{"delete 101", "delete 102"}));
  EXPECT_TRUE(b.attributes.empty());
}

TEST_F(Attributes, the_predefined_callbacks_are_never_called) {
  int dup = key(reinterpret_cast<void*>(MPI_COMM_DUP_FN), reinterpret_cast<void*>(MPI_COMM_NULL_DELETE_FN));
  int null =
      key(reinterpret_cast<void*>(MPI_COMM_NULL_COPY_FN), reinterpret_cast<void*>(MPI_COMM_NULL_DELETE_FN));
  ASSERT_TRUE(a.attributes.set(a, dup, number(7)).ok());
  ASSERT_TRUE(a.attributes.set(a, null, number(8)).ok());
  ASSERT_TRUE(b.attributes.copy_all(a, a.attributes, b).ok());
  EXPECT_EQ(value_of(b, dup), 7);
  EXPECT_EQ(value_of(b, null), -1);
}

TEST_F(Attributes, setting_again_deletes_the_old_value_first) {
  int k = logging_key();
  ASSERT_TRUE(a.attributes.set(a, k, number(1)).ok());
  ASSERT_TRUE(a.attributes.set(a, k, number(2)).ok());
  EXPECT_EQ(log.lines, Lines{"delete 1"});
  log.delete_returns = 17;
  EXPECT_EQ(a.attributes.set(a, k, number(3)).code(), 17);
  EXPECT_EQ(value_of(a, k), 2);
}

TEST_F(Attributes, a_failing_delete_keeps_the_attribute_and_its_code_is_returned) {
  int k = logging_key();
  ASSERT_TRUE(a.attributes.set(a, k, number(1)).ok());
  log.delete_returns = 42;
  EXPECT_EQ(a.attributes.remove(a, k).code(), 42);
  EXPECT_EQ(a.attributes.remove_all(a).code(), 42);
  EXPECT_EQ(value_of(a, k), 1);
  log.delete_returns = MPI_SUCCESS;
  EXPECT_TRUE(a.attributes.remove(a, k).ok());
  EXPECT_EQ(a.attributes.remove(a, k).code(), MPI_ERR_KEYVAL);
}

TEST_F(Attributes, a_failing_copy_stops_and_a_copy_may_decline) {
  int first = logging_key(), second = logging_key();
  ASSERT_TRUE(a.attributes.set(a, first, number(1)).ok());
  ASSERT_TRUE(a.attributes.set(a, second, number(2)).ok());
  log.copy_flag = 0;
  ASSERT_TRUE(b.attributes.copy_all(a, a.attributes, b).ok());
  EXPECT_TRUE(b.attributes.empty());
  log.lines.clear();
  log.copy_returns = 5;
  EXPECT_EQ(b.attributes.copy_all(a, a.attributes, b).code(), 5);
  EXPECT_EQ(log.lines, Lines{"copy 1"});
}

TEST_F(Attributes, a_callback_code_that_looks_like_ours_becomes_other) {
  int k = logging_key();
  ASSERT_TRUE(a.attributes.set(a, k, number(1)).ok());
  log.delete_returns = -3;
  EXPECT_EQ(a.attributes.remove(a, k).code(), MPI_ERR_OTHER);
  log.delete_returns = 0x100003;
  EXPECT_EQ(a.attributes.remove(a, k).code(), MPI_ERR_OTHER);
}

TEST_F(Attributes, a_freed_key_works_until_its_last_attribute_is_gone) {
  int k = logging_key();
  ASSERT_TRUE(a.attributes.set(a, k, number(1)).ok());
  ASSERT_TRUE(free_attribute_key(Kind::communicator, k).ok());
  EXPECT_TRUE(free_attribute_key(Kind::communicator, k).ok()) << "again, while an attribute holds it";
  EXPECT_NE(find_attribute_key(Kind::communicator, k), nullptr);
  ASSERT_TRUE(a.attributes.remove(a, k).ok());
  EXPECT_EQ(find_attribute_key(Kind::communicator, k), nullptr);
  EXPECT_EQ(free_attribute_key(Kind::communicator, k).code(), MPI_ERR_KEYVAL);
}

TEST_F(Attributes, a_key_is_of_one_kind) {
  int k = logging_key();
  EXPECT_EQ(find_attribute_key(Kind::datatype, k), nullptr);
  EXPECT_EQ(free_attribute_key(Kind::window, k).code(), MPI_ERR_KEYVAL);
  EXPECT_EQ(find_attribute_key(Kind::communicator, MPI_KEYVAL_INVALID), nullptr);
  EXPECT_EQ(find_attribute_key(Kind::communicator, MPI_TAG_UB), nullptr);
}

struct Reentrant {
  Communicator* on;
  int other;
  int self_delete = MPI_SUCCESS;
};

int delete_the_other(MPI_Comm, int key, void*, void* extra) {
  auto& state = *static_cast<Reentrant*>(extra);
  (void)state.on->attributes.remove(*state.on, state.other);
  state.self_delete = state.on->attributes.remove(*state.on, key).code();
  int fresh = 0;
  (void)make_attribute_key(Kind::communicator, nullptr, nullptr, nullptr, fresh);
  return free_attribute_key(Kind::communicator, fresh).code();
}

TEST_F(Attributes, a_delete_callback_may_delete_others_but_not_itself_again) {
  Reentrant state{&a, logging_key()};
  int k = MPI_KEYVAL_INVALID;
  ASSERT_TRUE(
      make_attribute_key(Kind::communicator, nullptr, reinterpret_cast<void*>(delete_the_other), &state, k)
          .ok());
  made.push_back(k);
  ASSERT_TRUE(a.attributes.set(a, state.other, number(1)).ok());
  ASSERT_TRUE(a.attributes.set(a, k, number(2)).ok());
  ASSERT_TRUE(a.attributes.remove_all(a).ok());
  EXPECT_EQ(log.lines, Lines{"delete 1"});
  EXPECT_EQ(state.self_delete, MPI_ERR_KEYVAL);
}

} // namespace
