// Windows of every flavour: their memory, their parts, and queries about them.
#include "check.h"

#include <stdint.h>
#include <string.h>

static int rank, size;
static MPI_Comm machine; // the ranks of this rank's machine: all, unless the job has several
static int rank_here, size_here;

static int is_here(int other) {
  MPI_Group world, here;
  int its = MPI_UNDEFINED;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Comm_group(machine, &here));
  OK(MPI_Group_translate_ranks(world, 1, &other, here, &its));
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&here));
  return its != MPI_UNDEFINED;
}

static long long number(MPI_Win win, int key) {
  void* value = NULL;
  int found = 0;
  OK(MPI_Win_get_attr(win, key, &value, &found));
  CHECK(found);
  if (key == MPI_WIN_SIZE) return *(MPI_Aint*)value;
  return *(int*)value;
}

static void has_attributes(MPI_Win win, void* base, MPI_Aint bytes, int unit, int flavor) {
  void* its = NULL;
  int found = 0;
  OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &its, &found));
  CHECK(found && its == base);
  CHECK(number(win, MPI_WIN_SIZE) == bytes);
  CHECK(number(win, MPI_WIN_DISP_UNIT) == unit);
  CHECK(number(win, MPI_WIN_CREATE_FLAVOR) == flavor);
  CHECK(number(win, MPI_WIN_MODEL) == MPI_WIN_UNIFIED);
}

static int copies, deletes;
static int deleted(MPI_Win win, int key, void* value, void* extra) {
  (void)win, (void)key, (void)extra;
  CHECK(value == &deletes);
  ++deletes;
  return MPI_SUCCESS;
}
static int copied(MPI_Win win, int key, void* extra, void* in, void* out, int* flag) {
  (void)win, (void)key, (void)extra, (void)in, (void)out;
  ++copies;
  *flag = 0;
  return MPI_SUCCESS;
}

static int handled;
static void handle(MPI_Win* win, int* code, ...) {
  (void)win;
  MPI_Error_class(*code, &handled);
}

static void objects_of_a_window(void) {
  int* base = NULL;
  MPI_Win win = MPI_WIN_NULL;
  OK(MPI_Win_allocate(10 * (MPI_Aint)sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  has_attributes(win, base, 10 * (MPI_Aint)sizeof *base, sizeof *base, MPI_WIN_FLAVOR_ALLOCATE);
  for (int i = 0; i < 10; ++i) CHECK(base[i] == 0);

  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  OK(MPI_Win_get_name(win, name, &length));
  CHECK(length == 0);
  OK(MPI_Win_set_name(win, "of ten"));
  OK(MPI_Win_get_name(win, name, &length));
  CHECK(length == 6 && strcmp(name, "of ten") == 0);
  OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
  CHECK(strcmp(name, "MPI_WIN_NULL") == 0);

  MPI_Group own, world;
  int same = -1;
  OK(MPI_Win_get_group(win, &own));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_compare(own, world, &same));
  CHECK(same == MPI_IDENT);
  OK(MPI_Group_free(&own));
  OK(MPI_Group_free(&world));

  int key = MPI_KEYVAL_INVALID, found = 1;
  OK(MPI_Win_create_keyval(copied, deleted, &key, NULL));
  void* value = NULL;
  OK(MPI_Win_get_attr(win, key, &value, &found));
  CHECK(!found);
  OK(MPI_Win_set_attr(win, key, &deletes));
  OK(MPI_Win_get_attr(win, key, &value, &found));
  CHECK(found && value == &deletes);
  OK(MPI_Win_delete_attr(win, key));
  CHECK(deletes == 1);
  OK(MPI_Win_set_attr(win, key, &deletes));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_set_attr(win, MPI_WIN_SIZE, &deletes));

  MPI_Errhandler mine, its;
  OK(MPI_Win_create_errhandler(handle, &mine));
  OK(MPI_Win_set_errhandler(win, mine));
  OK(MPI_Win_get_errhandler(win, &its));
  CHECK(its == mine);
  OK(MPI_Errhandler_free(&its));
  MPI_Win_unlock(0, win);
  CHECK(handled == MPI_ERR_RMA_SYNC);
  OK(MPI_Win_call_errhandler(win, MPI_ERR_TAG));
  CHECK(handled == MPI_ERR_TAG);
  OK(MPI_Errhandler_free(&mine));

  MPI_Win again = MPI_Win_fromint(MPI_Win_toint(win));
  CHECK(again == win);
  OK(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL && deletes == 2 && copies == 0);
  OK(MPI_Win_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
}

static const char* hint(MPI_Win win, const char* key, char value[64]) {
  MPI_Info info;
  int length = 64, found = 0;
  OK(MPI_Win_get_info(win, &info));
  OK(MPI_Info_get_string(info, key, &length, value, &found));
  CHECK(found);
  OK(MPI_Info_free(&info));
  return value;
}

static void hints_of_a_window(void) {
  MPI_Info info;
  MPI_Win win;
  char value[64];
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "no_locks", "true"));
  OK(MPI_Info_set(info, "accumulate_ordering", "rar,waw"));
  OK(MPI_Info_set(info, "accumulate_ops", "nonsense"));
  OK(MPI_Win_create(NULL, 0, 1, info, MPI_COMM_WORLD, &win));
  CHECK(strcmp(hint(win, "no_locks", value), "true") == 0);
  CHECK(strcmp(hint(win, "accumulate_ordering", value), "rar,waw") == 0);
  CHECK(strcmp(hint(win, "accumulate_ops", value), "same_op_no_op") == 0);
  CHECK(strcmp(hint(win, "same_size", value), "false") == 0);
  OK(MPI_Info_set(info, "same_size", "true"));
  OK(MPI_Win_set_info(win, info));
  CHECK(strcmp(hint(win, "same_size", value), "true") == 0);
  OK(MPI_Win_free(&win));
  OK(MPI_Info_free(&info));
}

// Every rank checks all parts, writes its own part and reads those of the others.
static void parts_of_a_shared_window(int apart, MPI_Aint each) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win win;
  unsigned char* base = NULL;
  if (apart) {
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
  }
  const MPI_Aint mine = each + rank_here; // sizes differ
  OK(MPI_Win_allocate_shared(mine, 1 + rank_here, info, machine, &base, &win));
  has_attributes(win, base, mine, 1 + rank_here, MPI_WIN_FLAVOR_SHARED);
  for (MPI_Aint i = 0; i < mine; ++i) CHECK(base[i] == 0);
  OK(MPI_Win_fence(0, win));
  if (mine != 0) memset(base, 1 + rank_here, (size_t)mine);
  OK(MPI_Win_fence(0, win));
  unsigned char* behind = NULL;
  for (int other = 0; other < size_here; ++other) {
    unsigned char* its = NULL;
    MPI_Aint bytes = -1;
    int unit = 0;
    OK(MPI_Win_shared_query(win, other, &bytes, &unit, &its));
    CHECK(bytes == each + other && unit == 1 + other);
    if (other == rank_here) CHECK(its == base);
    if (bytes == 0) continue;
    CHECK(its[0] == 1 + other && its[bytes / 2] == 1 + other && its[bytes - 1] == 1 + other);
    if (!apart && behind != NULL) CHECK(its == behind);
    if (apart) CHECK((uintptr_t)its % 4096 == 0);
    behind = its + bytes;
  }
  MPI_Aint bytes = -1;
  int unit = 0;
  unsigned char* first = NULL;
  OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
  int expected = each == 0 ? 1 : 0;
  if (expected < size_here)
    CHECK(bytes == each + expected && unit == 1 + expected && first[bytes - 1] == unit);
  OK(MPI_Win_fence(0, win));
  // Puts and gets access the same memory.
  const int next = (rank_here + 1) % size_here;
  unsigned char *its = NULL, old = 0, fresh = (unsigned char)(100 + next);
  OK(MPI_Win_shared_query(win, next, &bytes, &unit, &its));
  if (bytes != 0) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    OK(MPI_Get(&old, 1, MPI_BYTE, next, 0, 1, MPI_BYTE, win));
    CHECK(old == 1 + next);
    OK(MPI_Put(&fresh, 1, MPI_BYTE, next, 0, 1, MPI_BYTE, win));
    OK(MPI_Win_unlock(next, win));
    CHECK(its[0] == fresh);
  }
  OK(MPI_Win_free(&win));
  if (apart) OK(MPI_Info_free(&info));
}

static void other_flavours_can_be_asked_too(void) {
  char own[64], *its = own;
  MPI_Win win;
  MPI_Aint bytes = -1;
  int unit = -1;
  OK(MPI_Win_create(own, sizeof own, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  has_attributes(win, own, sizeof own, 4, MPI_WIN_FLAVOR_CREATE);
  OK(MPI_Win_shared_query(win, rank, &bytes, &unit, &its));
  CHECK(bytes == sizeof own && unit == 4 && its == own);
  OK(MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &its));
  if (size > 1) CHECK(bytes == 0 && its == NULL); // another's private memory cannot be loaded
  OK(MPI_Win_free(&win));

  OK(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &its, &win));
  *its = (char)rank;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &its));
  if (is_here((rank + 1) % size))
    CHECK(bytes == 100 && *its == (rank + 1) % size);
  else
    CHECK(bytes == 0 && its == NULL);
  OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &its)); // rank 0's
  CHECK(is_here(0) ? bytes == 100 && *its == 0 : bytes == 0);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_shared_query(win, rank, &bytes, &unit, &its));
  FAILS(MPI_ERR_BASE, MPI_Free_mem(its)); // it belongs to the window
  OK(MPI_Win_free(&win));

  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(win, 0, &bytes, &unit, &its));
  OK(MPI_Win_free(&win));
}

static void many_come_and_go(void) {
  for (int i = 0; i < 300; ++i) {
    char* base = NULL;
    MPI_Win one, other;
    OK(MPI_Win_allocate(rank == i % size ? 0 : 5000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &one));
    OK(MPI_Win_allocate_shared(i, 1, MPI_INFO_NULL, machine, &base, &other));
    OK(MPI_Win_free(i % 2 == 0 ? &one : &other));
    OK(MPI_Win_free(i % 2 == 0 ? &other : &one));
  }
}

static void too_much_memory_fails_everywhere(void) {
  char* base = NULL;
  MPI_Win win;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const MPI_Aint far_too_much = (MPI_Aint)1 << 60;
  MPI_Aint mine = rank == size - 1 ? far_too_much : 100;
  FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  const int several = size_here != size;
  FAILS(several ? MPI_ERR_RMA_SHARED : MPI_ERR_NO_MEM,
        MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); // handles the failure of MPI_Free_mem
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine));
  OK(MPI_Comm_rank(machine, &rank_here));
  OK(MPI_Comm_size(machine, &size_here));
  objects_of_a_window();
  hints_of_a_window();
  for (int apart = 0; apart < 2; ++apart) {
    parts_of_a_shared_window(apart, 0);
    parts_of_a_shared_window(apart, 100);
    parts_of_a_shared_window(apart, 4096 - 1);
    parts_of_a_shared_window(apart, 3 << 20);
  }
  other_flavours_can_be_asked_too();
  many_come_and_go();
  too_much_memory_fails_everywhere();
  OK(MPI_Comm_free(&machine));
  OK(MPI_Finalize());
  return 0;
}
