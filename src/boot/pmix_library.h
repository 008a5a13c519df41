// libpmix, loaded only in a process started by a PMIx launcher, and the part of its interface that NearMPI uses. The interface
// is declared here, so that neither the build nor a program needs libpmix's headers: it is part of the PMIx standard, and the
// same in all versions of libpmix.so.2 (test/net/test_pmix.py compares it with the installed headers).
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>

namespace near::boot::pmix {

using base::Result;

inline constexpr int success = 0;
inline constexpr int lost_connection = -61;            ///< PMIX_ERR_LOST_CONNECTION
inline constexpr int event_handled = -334;             ///< PMIX_EVENT_ACTION_COMPLETE
inline constexpr std::uint32_t all_ranks = 0xfffffffe; ///< PMIX_RANK_WILDCARD
inline constexpr std::uint8_t global = 3;              ///< PMIX_GLOBAL: for processes on any machine

/// pmix_proc_t: a process, or with all_ranks a job.
struct Process {
  char job[256];
  std::uint32_t rank;
};

/// pmix_data_type_t. The same numbers stand for other types of the same form in Value.
enum class Type : std::uint16_t { undefined = 0, flag = 1, text = 3, integer = 6, uint32 = 14 };

/// pmix_value_t.
struct Value {
  Type type;
  union {
    bool flag;
    char* text;
    int integer;
    std::uint32_t uint32;
    std::uint64_t room[3]; ///< for the types that NearMPI does not use
  };
};

/// pmix_info_t.
struct Info {
  char key[512];
  std::uint32_t directives;
  Value value;
};

// Keys of pmix_common.h.
inline constexpr const char* job_size_key = "pmix.job.size";
inline constexpr const char* application_key = "pmix.appnum";
inline constexpr const char* host_key = "pmix.hname";
// Keys of directives.
inline constexpr const char* known_here_key = "pmix.optional"; ///< do not ask the launcher
inline constexpr const char* collect_key = "pmix.collect";     ///< a fence spreads what was put
inline constexpr const char* timeout_key = "pmix.timeout";     ///< in seconds

/// pmix_event_notification_cbfunc_fn_t: a handler's answer.
using Answer = void (*)(int status, Info* results, std::size_t count,
                        void (*when_taken)(int status, void* data), void* data, void* event);
/// pmix_notification_fn_t.
using Handler = void (*)(std::size_t handler, int status, const Process* source, Info* info,
                         std::size_t infos, Info* results, std::size_t count, Answer answer, void* event);

/// The functions, named as in the library but without "PMIx_".
struct Library {
  int (*Init)(Process* self, Info* info, std::size_t infos) = nullptr;
  int (*Finalize)(const Info* info, std::size_t infos) = nullptr;
  int (*Abort)(int status, const char* text, Process* processes, std::size_t count) = nullptr;
  int (*Put)(std::uint8_t scope, const char* key, Value* value) = nullptr;
  int (*Commit)() = nullptr;
  int (*Fence)(const Process* processes, std::size_t count, const Info* info, std::size_t infos) = nullptr;
  int (*Fence_nb)(const Process* processes, std::size_t count, const Info* info, std::size_t infos,
                  void (*when_over)(int status, void* data), void* data) = nullptr;
  /// The value and its text are allocated by malloc().
  int (*Get)(const Process* process, const char* key, const Info* info, std::size_t infos,
             Value** value) = nullptr;
  /// Without `when_registered`, returns when the handler is registered.
  int (*Register_event_handler)(int* statuses, std::size_t count, Info* info, std::size_t infos,
                                Handler handler,
                                void (*when_registered)(int status, std::size_t handler, void* data),
                                void* data) = nullptr;
  const char* (*Error_string)(int status) = nullptr;
};

/// Loads libpmix, once. Fails with Code::unsupported if it is not installed or lacks one of these functions.
Result load_library(const Library*& library);

} // namespace near::boot::pmix
