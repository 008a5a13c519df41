// Compares src/boot/pmix_library.h with the headers of libpmix. It is compiled only (test_pmix.py).
#include "boot/pmix_library.h"

#include <pmix.h>

#include <string_view>
#include <type_traits>

namespace near::boot::pmix {

// The forms.
static_assert(sizeof(Process) == sizeof(pmix_proc_t));
static_assert(offsetof(Process, job) == offsetof(pmix_proc_t, nspace));
static_assert(offsetof(Process, rank) == offsetof(pmix_proc_t, rank));
static_assert(sizeof(Process::job) == sizeof(pmix_nspace_t));
static_assert(sizeof(Value) == sizeof(pmix_value_t));
static_assert(sizeof(Type) == sizeof(pmix_data_type_t));
static_assert(offsetof(Value, type) == offsetof(pmix_value_t, type));
static_assert(offsetof(Value, flag) == offsetof(pmix_value_t, data.flag));
static_assert(offsetof(Value, text) == offsetof(pmix_value_t, data.string));
static_assert(offsetof(Value, integer) == offsetof(pmix_value_t, data.integer));
static_assert(offsetof(Value, uint32) == offsetof(pmix_value_t, data.uint32));
static_assert(sizeof(Info) == sizeof(pmix_info_t));
static_assert(sizeof(Info::key) == sizeof(pmix_key_t));
static_assert(offsetof(Info, directives) == offsetof(pmix_info_t, flags));
static_assert(offsetof(Info, value) == offsetof(pmix_info_t, value));

// The numbers and keys.
static_assert(success == PMIX_SUCCESS);
static_assert(lost_connection == PMIX_ERR_LOST_CONNECTION);
static_assert(event_handled == PMIX_EVENT_ACTION_COMPLETE);
static_assert(all_ranks == (PMIX_RANK_WILDCARD));
static_assert(global == PMIX_GLOBAL);
static_assert(static_cast<int>(Type::flag) == PMIX_BOOL);
static_assert(static_cast<int>(Type::text) == PMIX_STRING);
static_assert(static_cast<int>(Type::integer) == PMIX_INT);
static_assert(static_cast<int>(Type::uint32) == PMIX_UINT32);
static_assert(std::string_view(job_size_key) == PMIX_JOB_SIZE);
static_assert(std::string_view(application_key) == PMIX_APPNUM);
static_assert(std::string_view(host_key) == PMIX_HOSTNAME);
static_assert(std::string_view(known_here_key) == PMIX_OPTIONAL);
static_assert(std::string_view(collect_key) == PMIX_COLLECT_DATA);
static_assert(std::string_view(timeout_key) == PMIX_TIMEOUT);

// The functions: what they return and take, pointers as such.
template <class T>
using Bare = std::conditional_t<std::is_pointer_v<T>, void*, T>;
template <class R, class... A>
constexpr auto bare(R (*)(A...)) -> Bare<R> (*)(Bare<A>...) {
  return nullptr;
}
static_assert(std::is_same_v<decltype(bare(Handler{})), decltype(bare(pmix_notification_fn_t{}))>);
static_assert(
    std::is_same_v<decltype(bare(Answer{})), decltype(bare(pmix_event_notification_cbfunc_fn_t{}))>);
template <class Function>
constexpr auto declared(Function Library::*) {
  return bare(Function{});
}
#define SAME(name)                                                                                           \
  static_assert(std::is_same_v<decltype(declared(&Library::name)), decltype(bare(&PMIx_##name))>)
SAME(Init);
SAME(Finalize);
SAME(Abort);
SAME(Put);
SAME(Commit);
SAME(Fence);
SAME(Fence_nb);
SAME(Get);
SAME(Register_event_handler);
SAME(Error_string);

} // namespace near::boot::pmix
