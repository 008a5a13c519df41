// What works before MPI_Init, and what does not exist yet: sessions, whose error handler is an argument of
// MPI_Session_init, tools, and files, whose errors return unless the program sets another handler.
//
//   before_init works | session_return | session_handler | session_fatal | session_use | files
#include "check.h"

#include <stdarg.h>
#include <string.h>

static int calls;
static void session_error(MPI_Session* session, int* code, ...) {
  CHECK(*session == MPI_SESSION_NULL && *code == MPI_ERR_UNSUPPORTED_OPERATION);
  ++calls;
}
static void file_error(MPI_File* file, int* code, ...) {
  CHECK(*file == MPI_FILE_NULL && *code == MPI_ERR_UNSUPPORTED_OPERATION);
  ++calls;
}

static void session_of(MPI_Errhandler handler) {
  MPI_Session session = (MPI_Session)&calls;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Session_init(MPI_INFO_NULL, handler, &session));
  CHECK(session == MPI_SESSION_NULL);
  OK(MPI_Error_string(MPI_ERR_UNSUPPORTED_OPERATION, text, &length));
  CHECK(strstr(text, "MPI_Session_init: sessions are not part of NearMPI") != NULL);
}

/// Compares two info objects about the environment, made before, between or after MPI_Init and MPI_Finalize.
static void same_environment(MPI_Info first, MPI_Info second) {
  int keys, more;
  OK(MPI_Info_get_nkeys(first, &keys));
  OK(MPI_Info_get_nkeys(second, &more));
  CHECK(keys == more);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY], one[MPI_MAX_INFO_VAL], other[MPI_MAX_INFO_VAL];
    int flag, length = sizeof one;
    OK(MPI_Info_get_nthkey(first, i, key));
    OK(MPI_Info_get_string(first, key, &length, one, &flag));
    length = sizeof other;
    OK(MPI_Info_get_string(second, key, &length, other, &flag));
    CHECK(flag && strcmp(one, other) == 0);
  }
}

static void works(int argc, char** argv) {
  int flag, code, class, length, version;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Info info, before, after;
  MPI_Errhandler handler;
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  OK(MPI_Get_version(&version, &flag));
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "key", "value"));
  OK(MPI_Info_free(&info));
  OK(MPI_Session_create_errhandler(session_error, &handler));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Add_error_class(&class));
  OK(MPI_Add_error_code(class, &code));
  OK(MPI_Add_error_string(code, "ours"));
  OK(MPI_Error_class(code, &flag));
  CHECK(flag == class);
  OK(MPI_Error_string(code, text, &length));
  CHECK(strcmp(text, "ours") == 0);
  CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &flag) == MPI_ERR_UNSUPPORTED_OPERATION);
  OK(MPI_Info_create_env(argc, argv, &before));
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &flag));
  snprintf(text, sizeof text, "%d", flag);
  char said[MPI_MAX_INFO_VAL] = "";
  length = sizeof said;
  OK(MPI_Info_get_string(before, "maxprocs", &length, said, &flag));
  CHECK(flag && strcmp(said, text) == 0);
  OK(MPI_Info_create_env(argc, argv, &after));
  same_environment(before, after);
  same_environment(before, MPI_INFO_ENV);
  OK(MPI_Info_free(&after));
  OK(MPI_Finalize());
  OK(MPI_Info_create_env(argc, argv, &after));
  same_environment(before, after);
  OK(MPI_Info_free(&after));
  OK(MPI_Info_free(&before));
}

static void session_handler(void) {
  MPI_Errhandler handler;
  OK(MPI_Session_create_errhandler(session_error, &handler));
  session_of(handler);
  CHECK(calls == 1);
  OK(MPI_Errhandler_free(&handler));
}

/// The handler of MPI_COMM_WORLD, which is fatal here, does not apply to files.
static void files(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Errhandler handler;
  MPI_File file = (MPI_File)&calls;
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
  CHECK(handler == MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
        MPI_File_open(MPI_COMM_WORLD, "no-such-file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(file == MPI_FILE_NULL);
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_delete("no-such-file", MPI_INFO_NULL));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_close(&file));
  FAILS(MPI_ERR_ERRHANDLER, MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRHANDLER_NULL));
  OK(MPI_File_create_errhandler(file_error, &handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
        MPI_File_open(MPI_COMM_SELF, "no-such-file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(calls == 1);
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  OK(MPI_Finalize());
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "works";
  if (strcmp(what, "works") == 0)
    works(argc, argv);
  else if (strcmp(what, "session_return") == 0)
    session_of(MPI_ERRORS_RETURN);
  else if (strcmp(what, "session_handler") == 0)
    session_handler();
  else if (strcmp(what, "session_fatal") == 0)
    session_of(MPI_ERRORS_ARE_FATAL);
  else if (strcmp(what, "session_use") == 0)
    MPI_Session_finalize(&(MPI_Session){MPI_SESSION_NULL});
  else if (strcmp(what, "files") == 0)
    files(argc, argv);
  else
    return 1;
  return 0;
}
