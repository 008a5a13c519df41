// Attributes through the C interface: predefined attributes, callbacks at dup and free, errors, the
// deprecated names.
#include "check.h"

static int copies, deletes, delete_fails, copy_fails;
static MPI_Comm copied_from;

static int copy_plus_one(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)key;
  CHECK(extra == &copies);
  copied_from = comm;
  ++copies;
  if (copy_fails) return MPI_ERR_INTERN;
  *(void**)out = (char*)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

static int count_delete(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++deletes;
  return delete_fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int type_copies;
static int copy_type(MPI_Datatype type, int key, void* extra, void* in, void* out, int* flag) {
  (void)type, (void)key, (void)extra;
  ++type_copies;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static char place[16];

static void predefined(void) {
  int *value, flag, size;
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
  CHECK(flag && *value >= 32767);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
  CHECK(flag && *value == MPI_ANY_SOURCE);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
  CHECK(!flag || *value >= size);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
  CHECK(!flag || *value == 0);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
  CHECK(flag && (*value == 0 || *value == 1));
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
  CHECK(flag && *value >= MPI_ERR_LASTCODE);
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, place));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value, &flag));
}

static void callbacks(void) {
  int key, duplicated, dropped, flag;
  char* value;
  MPI_Comm comm, copy, failed = MPI_COMM_NULL;
  OK(MPI_Comm_create_keyval(copy_plus_one, count_delete, &key, &copies));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &duplicated, NULL));
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_delete, &dropped, NULL));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_get_attr(comm, key, &value, &flag));
  CHECK(!flag);
  OK(MPI_Comm_set_attr(comm, key, place));
  OK(MPI_Comm_set_attr(comm, duplicated, place + 8));
  OK(MPI_Comm_set_attr(comm, dropped, place));
  OK(MPI_Comm_dup(comm, &copy));
  CHECK(copies == 1 && copied_from == comm);
  OK(MPI_Comm_get_attr(copy, key, &value, &flag));
  CHECK(flag && value == place + 1);
  OK(MPI_Comm_get_attr(copy, duplicated, &value, &flag));
  CHECK(flag && value == place + 8);
  OK(MPI_Comm_get_attr(copy, dropped, &value, &flag));
  CHECK(!flag);
  OK(MPI_Comm_free(&copy));
  CHECK(deletes == 1);
  // If a copy callback fails, the dup fails, here on every process, and the copied attributes are deleted.
  copy_fails = 1;
  CHECK(MPI_Comm_dup(comm, &failed) != MPI_SUCCESS);
  CHECK(failed == MPI_COMM_NULL);
  copy_fails = 0;
  // If a delete callback fails, the attribute and the communicator remain.
  delete_fails = 1;
  CHECK(MPI_Comm_delete_attr(comm, key) != MPI_SUCCESS);
  CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS && comm != MPI_COMM_NULL);
  delete_fails = 0;
  OK(MPI_Comm_get_attr(comm, key, &value, &flag));
  CHECK(flag && value == place);
  // A freed key remains valid for objects that still have its attribute.
  int still = key;
  OK(MPI_Comm_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
  OK(MPI_Comm_delete_attr(comm, still));
  deletes = 0;
  OK(MPI_Comm_free(&comm));
  CHECK(deletes == 1);
  OK(MPI_Comm_free_keyval(&duplicated));
  OK(MPI_Comm_free_keyval(&dropped));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, still, place));
}

static void types_and_old_names(void) {
  int key, flag;
  char* value;
  MPI_Datatype type, copy;
  OK(MPI_Type_create_keyval(copy_type, MPI_TYPE_NULL_DELETE_FN, &key, NULL));
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  OK(MPI_Type_set_attr(type, key, place));
  OK(MPI_Type_dup(type, &copy));
  CHECK(type_copies == 1);
  OK(MPI_Type_get_attr(copy, key, &value, &flag));
  CHECK(flag && value == place);
  OK(MPI_Type_delete_attr(copy, key));
  OK(MPI_Type_get_attr(copy, key, &value, &flag));
  CHECK(!flag);
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, key, place));
  OK(MPI_Type_free(&copy));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_free_keyval(&key));

  OK(MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, NULL));
  OK(MPI_Attr_put(MPI_COMM_WORLD, key, place));
  OK(MPI_Attr_get(MPI_COMM_WORLD, key, &value, &flag));
  CHECK(flag && value == place);
  OK(MPI_Attr_delete(MPI_COMM_WORLD, key));
  OK(MPI_Keyval_free(&key));
}

static int finalized_too_early;
static int look_at_finalize(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  MPI_Finalized(&finalized_too_early);
  ++deletes;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  predefined();
  callbacks();
  types_and_old_names();
  // MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF.
  int key;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, look_at_finalize, &key, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, place));
  deletes = 0;
  OK(MPI_Finalize());
  return deletes == 1 && !finalized_too_early ? 0 : 1;
}
