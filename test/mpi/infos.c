// Info objects: order, replacement, lengths, wrong keys; use before MPI_Init and after MPI_Finalize.
#include "check.h"

#include <string.h>

static char value[MPI_MAX_INFO_VAL];

int main(int argc, char** argv) {
  MPI_Info info, copy, environment;
  int flag, n, length;
  char key[MPI_MAX_INFO_KEY], longest_key[MPI_MAX_INFO_KEY + 1], longest_value[MPI_MAX_INFO_VAL + 1];
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "zebra", "1"));
  OK(MPI_Info_set(info, "ant", "two"));
  OK(MPI_Info_set(info, "zebra", "three"));

  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Info_get_nkeys(info, &n));
  CHECK(n == 2);
  OK(MPI_Info_get_nthkey(info, 0, key));
  CHECK(strcmp(key, "zebra") == 0);
  OK(MPI_Info_get(info, "zebra", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(flag && strcmp(value, "three") == 0);
  OK(MPI_Info_get(info, "zebra", 2, value, &flag));
  CHECK(flag && strcmp(value, "th") == 0);
  OK(MPI_Info_get_valuelen(info, "ant", &length, &flag));
  CHECK(flag && length == 3);
  length = 0;
  OK(MPI_Info_get_string(info, "zebra", &length, NULL, &flag));
  CHECK(flag && length == 6);
  length = 3;
  OK(MPI_Info_get_string(info, "zebra", &length, value, &flag));
  CHECK(flag && length == 6 && strcmp(value, "th") == 0);
  length = 9;
  OK(MPI_Info_get_string(info, "bee", &length, value, &flag));
  CHECK(!flag && length == 9);

  OK(MPI_Info_dup(info, &copy));
  OK(MPI_Info_delete(info, "zebra"));
  FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "zebra"));
  OK(MPI_Info_get_nkeys(copy, &n));
  CHECK(n == 2);

  memset(longest_key, 'k', sizeof longest_key);
  memset(longest_value, 'v', sizeof longest_value);
  longest_key[MPI_MAX_INFO_KEY] = longest_value[MPI_MAX_INFO_VAL] = '\0';
  FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, longest_key, "x"));
  FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "x"));
  FAILS(MPI_ERR_INFO_VALUE, MPI_Info_set(info, "x", longest_value));
  OK(MPI_Info_set(info, longest_key + 1, longest_value + 1));
  OK(MPI_Info_get(info, longest_key + 1, MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(flag && strcmp(value, longest_value + 1) == 0);
  FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, 2, key));
  FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));

  OK(MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(flag && strstr(value, "infos") != NULL);
  OK(MPI_Info_get(MPI_INFO_ENV, "mpi_memory_alloc_kinds", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(flag && strcmp(value, "mpi,system") == 0);
  for (int known = 1; known >= 0; --known) { // an unknown value does not replace a known one
    MPI_Info hints;
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "mpi_assert_memory_alloc_kinds", known ? "system,mpi:alloc_mem" : "system,cuda"));
    OK(MPI_Comm_set_info(MPI_COMM_SELF, hints));
    OK(MPI_Info_free(&hints));
    OK(MPI_Comm_get_info(MPI_COMM_SELF, &hints));
    OK(MPI_Info_get(hints, "mpi_assert_memory_alloc_kinds", MPI_MAX_INFO_VAL - 1, value, &flag));
    CHECK(flag && strcmp(value, "system,mpi:alloc_mem") == 0);
    OK(MPI_Info_free(&hints));
  }
  char* words[] = {"program", "one", "two", NULL};
  OK(MPI_Info_create_env(3, words, &environment));
  OK(MPI_Info_get(environment, "argv", MPI_MAX_INFO_VAL - 1, value, &flag));
  CHECK(!flag || strcmp(value, "one two") == 0);
  OK(MPI_Info_free(&environment));
  CHECK(environment == MPI_INFO_NULL);
  MPI_Info stale = info;
  OK(MPI_Info_free(&info));
  FAILS(MPI_ERR_INFO, MPI_Info_free(&stale));
  OK(MPI_Finalize());
  OK(MPI_Info_free(&copy));
  return 0;
}
