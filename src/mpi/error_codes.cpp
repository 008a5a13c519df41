// Error classes, codes and texts: the standard's, and those that the program adds.
// Source: MPI 5.0, sections 9.4 and 9.5.
#include "mpi/error.h"
#include "mpi/impl.h"

#include <algorithm>
#include <map>

namespace near::mpi {

using object::Result;

namespace {

struct ErrorClass {
  int code;
  const char* name;
  const char* text;
};

#define NEAR_CLASS(name, text) {name, #name, text}
constexpr ErrorClass standard_classes[] = {
    NEAR_CLASS(MPI_SUCCESS, "no error"),
    NEAR_CLASS(MPI_ERR_BUFFER, "a buffer's address is not valid"),
    NEAR_CLASS(MPI_ERR_COUNT, "a count is not valid"),
    NEAR_CLASS(MPI_ERR_TYPE, "a datatype is not valid, or not committed"),
    NEAR_CLASS(MPI_ERR_TAG, "a tag is not valid"),
    NEAR_CLASS(MPI_ERR_COMM, "a communicator is not valid"),
    NEAR_CLASS(MPI_ERR_RANK, "a rank is not valid"),
    NEAR_CLASS(MPI_ERR_REQUEST, "a request is not valid"),
    NEAR_CLASS(MPI_ERR_ROOT, "a root is not valid"),
    NEAR_CLASS(MPI_ERR_GROUP, "a group is not valid"),
    NEAR_CLASS(MPI_ERR_OP, "an operation is not valid, or not defined for the datatype"),
    NEAR_CLASS(MPI_ERR_TOPOLOGY, "the communicator has no such topology"),
    NEAR_CLASS(MPI_ERR_DIMS, "dimensions are not valid"),
    NEAR_CLASS(MPI_ERR_ARG, "an argument is not valid"),
    NEAR_CLASS(MPI_ERR_UNKNOWN, "an unknown error"),
    NEAR_CLASS(MPI_ERR_TRUNCATE, "a message was longer than the receive buffer"),
    NEAR_CLASS(MPI_ERR_OTHER, "an error of another kind"),
    NEAR_CLASS(MPI_ERR_INTERN, "a defect of NearMPI"),
    NEAR_CLASS(MPI_ERR_PENDING, "the operation has neither failed nor completed yet"),
    NEAR_CLASS(MPI_ERR_IN_STATUS, "the error codes are in the statuses"),
    NEAR_CLASS(MPI_ERR_ACCESS, "permission denied"),
    NEAR_CLASS(MPI_ERR_AMODE, "an access mode is not valid, or not the same on all processes"),
    NEAR_CLASS(MPI_ERR_ASSERT, "an assertion is not valid"),
    NEAR_CLASS(MPI_ERR_BAD_FILE, "a file name is not valid"),
    NEAR_CLASS(MPI_ERR_BASE, "the address was not made by MPI_Alloc_mem"),
    NEAR_CLASS(MPI_ERR_CONVERSION, "a data representation's conversion failed"),
    NEAR_CLASS(MPI_ERR_DISP, "a displacement is not valid"),
    NEAR_CLASS(MPI_ERR_DUP_DATAREP, "a data representation of this name is registered already"),
    NEAR_CLASS(MPI_ERR_FILE_EXISTS, "the file exists"),
    NEAR_CLASS(MPI_ERR_FILE_IN_USE, "the file is in use"),
    NEAR_CLASS(MPI_ERR_FILE, "a file handle is not valid"),
    NEAR_CLASS(MPI_ERR_INFO_KEY, "an info key is too long or empty"),
    NEAR_CLASS(MPI_ERR_INFO_NOKEY, "an info object has no such key"),
    NEAR_CLASS(MPI_ERR_INFO_VALUE, "an info value is too long"),
    NEAR_CLASS(MPI_ERR_INFO, "an info object is not valid"),
    NEAR_CLASS(MPI_ERR_IO, "input or output failed"),
    NEAR_CLASS(MPI_ERR_KEYVAL, "an attribute key is not valid"),
    NEAR_CLASS(MPI_ERR_LOCKTYPE, "a lock type is not valid"),
    NEAR_CLASS(MPI_ERR_NAME, "no such service name is published"),
    NEAR_CLASS(MPI_ERR_NO_MEM, "memory is used up"),
    NEAR_CLASS(MPI_ERR_NOT_SAME, "an argument is not the same on all processes"),
    NEAR_CLASS(MPI_ERR_NO_SPACE, "space is used up"),
    NEAR_CLASS(MPI_ERR_NO_SUCH_FILE, "the file does not exist"),
    NEAR_CLASS(MPI_ERR_PORT, "a port name is not valid"),
    NEAR_CLASS(MPI_ERR_QUOTA, "a quota is used up"),
    NEAR_CLASS(MPI_ERR_READ_ONLY, "the file or file system is read-only"),
    NEAR_CLASS(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    NEAR_CLASS(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    NEAR_CLASS(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    NEAR_CLASS(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    NEAR_CLASS(MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    NEAR_CLASS(MPI_ERR_SERVICE, "the service name is not published"),
    NEAR_CLASS(MPI_ERR_SIZE, "a size is not valid"),
    NEAR_CLASS(MPI_ERR_SPAWN, "processes could not be started"),
    NEAR_CLASS(MPI_ERR_UNSUPPORTED_DATAREP, "the data representation is not supported"),
    NEAR_CLASS(MPI_ERR_UNSUPPORTED_OPERATION, "the operation is not supported"),
    NEAR_CLASS(MPI_ERR_WIN, "a window is not valid"),
    NEAR_CLASS(MPI_ERR_RMA_FLAVOR, "the window is of the wrong flavour"),
    NEAR_CLASS(MPI_ERR_PROC_ABORTED, "another process has ended"),
    NEAR_CLASS(MPI_ERR_VALUE_TOO_LARGE, "a value does not fit the type that it is returned in"),
    NEAR_CLASS(MPI_ERR_SESSION, "a session is not valid"),
    NEAR_CLASS(MPI_ERR_ERRHANDLER, "an error handler is not valid"),
    NEAR_CLASS(MPI_ERR_ABI, "the Fortran part of the ABI cannot be set like this"),
    NEAR_CLASS(MPI_T_ERR_CANNOT_INIT, "the tools interface cannot be initialised"),
    NEAR_CLASS(MPI_T_ERR_NOT_ACCESSIBLE, "the tools interface's item is not accessible"),
    NEAR_CLASS(MPI_T_ERR_NOT_INITIALIZED, "the tools interface is not initialised"),
    NEAR_CLASS(MPI_T_ERR_NOT_SUPPORTED, "the tools interface does not support this"),
    NEAR_CLASS(MPI_T_ERR_MEMORY, "the tools interface has no memory left"),
    NEAR_CLASS(MPI_T_ERR_INVALID, "wrong use of the tools interface"),
    NEAR_CLASS(MPI_T_ERR_INVALID_INDEX, "the index does not exist"),
    NEAR_CLASS(MPI_T_ERR_INVALID_ITEM, "the item does not exist"),
    NEAR_CLASS(MPI_T_ERR_INVALID_SESSION, "the session does not exist"),
    NEAR_CLASS(MPI_T_ERR_INVALID_HANDLE, "the handle does not exist"),
    NEAR_CLASS(MPI_T_ERR_INVALID_NAME, "the name does not exist"),
    NEAR_CLASS(MPI_T_ERR_OUT_OF_HANDLES, "no handles are left"),
    NEAR_CLASS(MPI_T_ERR_OUT_OF_SESSIONS, "no sessions are left"),
    NEAR_CLASS(MPI_T_ERR_CVAR_SET_NOT_NOW, "the variable cannot be set now"),
    NEAR_CLASS(MPI_T_ERR_CVAR_SET_NEVER, "the variable can never be set"),
    NEAR_CLASS(MPI_T_ERR_PVAR_NO_WRITE, "the variable cannot be written"),
    NEAR_CLASS(MPI_T_ERR_PVAR_NO_STARTSTOP, "the variable cannot be started or stopped"),
    NEAR_CLASS(MPI_T_ERR_PVAR_NO_ATOMIC, "the variable cannot be read and written at once"),
    NEAR_CLASS(MPI_ERR_LASTCODE, "the last code of the standard's classes"),
};
#undef NEAR_CLASS

const ErrorClass* find_standard(int code) {
  for (const ErrorClass& row : standard_classes)
    if (row.code == code) return &row;
  return nullptr;
}

/// A class or code that the program made.
struct UserCode {
  int error_class; ///< the class of a code; for a class, the class itself
  std::string text;
};

/// Sorted by code. Never destroyed, because MPI_Error_string may be called until the process ends.
std::map<int, UserCode>& user_codes() {
  static auto& codes = *new std::map<int, UserCode>;
  return codes;
}

int highest_used = MPI_ERR_LASTCODE;

void refresh_highest() {
  highest_used = user_codes().empty() ? MPI_ERR_LASTCODE : user_codes().rbegin()->first;
}

/// Codes are not reused, so that the use of a removed code is detected.
int next_code() {
  static int next = MPI_ERR_LASTCODE;
  return ++next;
}

UserCode* find_user(int code) {
  auto found = user_codes().find(code);
  return found != user_codes().end() ? &found->second : nullptr;
}

bool is_class(int code) {
  const UserCode* user = find_user(code);
  return user != nullptr ? user->error_class == code
                         : find_standard(code) != nullptr && code != MPI_ERR_LASTCODE;
}

Result no_such_code(int code) { return base::fail(MPI_ERR_ARG, "error code {} does not exist", code); }

Result not_yours(int code) {
  return base::fail(MPI_ERR_ARG,
                    "{} is the standard's, not made by MPI_Add_error_class or MPI_Add_error_code",
                    error_name(code));
}

} // namespace

std::string error_name(int code) {
  if (const ErrorClass* row = find_standard(code)) return row->name;
  return base::format("error code {}", code);
}

int class_of(int code) {
  if (const UserCode* user = find_user(code)) return user->error_class;
  return find_standard(code) != nullptr ? code : MPI_ERR_UNKNOWN;
}

int* last_used_code_address() { return &highest_used; }

namespace impl {

Result Error_class(int errorcode, int* errorclass) {
  if (find_user(errorcode) == nullptr && find_standard(errorcode) == nullptr) return no_such_code(errorcode);
  *errorclass = class_of(errorcode);
  return {};
}

Result Error_string(int errorcode, char* string, int* resultlen) {
  std::string text;
  if (const UserCode* user = find_user(errorcode)) {
    text = user->text;
  } else if (const ErrorClass* row = find_standard(errorcode)) {
    text = base::format("{}: {}", row->name, row->text);
    if (std::string_view newest = last_failure(errorcode); !newest.empty() && errorcode != MPI_SUCCESS)
      text += base::format(" ({})", newest);
  } else {
    return no_such_code(errorcode);
  }
  text.resize(std::min<std::size_t>(text.size(), MPI_MAX_ERROR_STRING - 1));
  std::copy(text.begin(), text.end(), string);
  string[text.size()] = '\0';
  *resultlen = static_cast<int>(text.size());
  return {};
}

Result Add_error_class(int* errorclass) {
  int code = next_code();
  user_codes()[code] = {code, {}};
  refresh_highest();
  *errorclass = code;
  return {};
}

Result Add_error_code(int errorclass, int* errorcode) {
  if (!is_class(errorclass))
    return base::fail(MPI_ERR_ARG, "errorclass is {}, which is not an error class", errorclass);
  int code = next_code();
  user_codes()[code] = {errorclass, {}};
  refresh_highest();
  *errorcode = code;
  return {};
}

Result Add_error_string(int errorcode, const char* string) {
  UserCode* user = find_user(errorcode);
  if (user == nullptr)
    return find_standard(errorcode) != nullptr ? not_yours(errorcode) : no_such_code(errorcode);
  std::string_view text(string);
  if (text.size() >= MPI_MAX_ERROR_STRING)
    return base::fail(MPI_ERR_ARG,
                      "string has {} characters, but MPI_MAX_ERROR_STRING is {} with its terminator",
                      text.size(), MPI_MAX_ERROR_STRING);
  user->text = text;
  return {};
}

Result Remove_error_class(int errorclass) {
  UserCode* user = find_user(errorclass);
  if (user == nullptr || user->error_class != errorclass)
    return find_standard(errorclass) != nullptr ? not_yours(errorclass) : no_such_code(errorclass);
  for (const auto& [code, row] : user_codes())
    if (code != errorclass && row.error_class == errorclass)
      return base::fail(MPI_ERR_OTHER, "error class {} still has error code {}", errorclass, code);
  if (!user->text.empty()) return base::fail(MPI_ERR_OTHER, "error class {} still has a string", errorclass);
  user_codes().erase(errorclass);
  refresh_highest();
  return {};
}

Result Remove_error_code(int errorcode) {
  UserCode* user = find_user(errorcode);
  if (user == nullptr || user->error_class == errorcode)
    return find_standard(errorcode) != nullptr ? not_yours(errorcode) : no_such_code(errorcode);
  if (!user->text.empty()) return base::fail(MPI_ERR_OTHER, "error code {} still has a string", errorcode);
  user_codes().erase(errorcode);
  refresh_highest();
  return {};
}

Result Remove_error_string(int errorcode) {
  UserCode* user = find_user(errorcode);
  if (user == nullptr)
    return find_standard(errorcode) != nullptr ? not_yours(errorcode) : no_such_code(errorcode);
  if (user->text.empty()) return base::fail(MPI_ERR_OTHER, "error code {} has no string", errorcode);
  user->text.clear();
  return {};
}

} // namespace impl
} // namespace near::mpi
