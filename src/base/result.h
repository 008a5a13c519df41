// How a call reports failure: by a code, and by a message for the user.
//
// A Result is one integer, so success costs a register. The message is written on the cold path into a
// thread-local text, which is valid until the next failure in the same thread.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace near::base {

/// Failure codes of the layers below MPI. They are above every code that a higher layer uses, so that one
/// integer carries either.
enum class Code : int {
  ok = 0,
  invalid = 0x100001, ///< An argument is outside what the call accepts.
  no_memory,          ///< Memory is exhausted; the text names the limit.
  limit,              ///< Another limit is reached; the text names it.
  refused,            ///< The kernel or a policy forbids it.
  unsupported,        ///< This machine or this version cannot do it.
  gone,               ///< The other process has ended.
  system,             ///< A system call failed; the text has its name and errno.
  internal,           ///< A defect of NearMPI.
};

class [[nodiscard]] Result {
public:
  constexpr Result() = default;
  constexpr explicit Result(int code) : code_(code) {}
  constexpr explicit Result(Code code) : code_(static_cast<int>(code)) {}
  constexpr bool ok() const { return code_ == 0; }
  constexpr int code() const { return code_; }
  constexpr bool is(Code code) const { return code_ == static_cast<int>(code); }

private:
  int code_ = 0;
};

/// The message of this thread's latest failure.
std::string_view failure_text();
/// Copies that message, or a short one if there is no memory for it.
void keep_failure_text(std::string& into) noexcept;

/// Replaces the message of this thread's latest failure.
void set_failure_text(std::string text);

/// Formats a string; the only instantiation of fmt's formatting is in text.cpp.
std::string format_text(fmt::string_view form, fmt::format_args arguments);

template <class... A>
std::string format(fmt::format_string<A...> form, A&&... arguments) {
  return format_text(form, fmt::make_format_args(arguments...));
}

Result vfail(int code, fmt::string_view form, fmt::format_args arguments);

/// Records the message and returns the failing Result.
template <class... A>
[[gnu::cold]] [[gnu::noinline]] Result fail(int code, fmt::format_string<A...> form, A&&... arguments) {
  return vfail(code, form, fmt::make_format_args(arguments...));
}
template <class... A>
[[gnu::cold]] [[gnu::noinline]] Result fail(Code code, fmt::format_string<A...> form, A&&... arguments) {
  return vfail(static_cast<int>(code), form, fmt::make_format_args(arguments...));
}

/// Records "<call>: <strerror(error)>" and what was attempted.
[[gnu::cold]] Result fail_system(std::string_view call, int error, std::string_view what_was_tried = {});

} // namespace near::base

/// Returns from the enclosing function if the expression failed.
#define NEAR_TRY(expression)                                                                                 \
  do {                                                                                                       \
    if (::near::base::Result near_try_result = (expression); !near_try_result.ok()) [[unlikely]]             \
      return near_try_result;                                                                                \
  } while (false)
