// The contents of MPI_INFO_ENV. Keys whose value is unknown are not set, as the standard requires.
#include "mpi/environment.h"

#include "mpi/process.h"
#include "object/memory_hints.h"
#include "os/files.h"
#include "os/process.h"

#include <cstdlib>
#include <iterator>
#include <unistd.h>

namespace near::mpi {

namespace {

std::vector<std::string> own_command_line() {
  const std::string text = os::read_file("/proc/self/cmdline");
  const auto words = os::split(text, '\0');
  return {words.begin(), words.end()};
}

#if defined(__x86_64__)
constexpr const char* architecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char* architecture = "aarch64";
#else
constexpr const char* architecture = nullptr;
#endif

/// Sets a key, truncating a value longer than an info object may hold.
void set_cut(object::Info& info, std::string_view key, std::string_view value) {
  info.set(key, value.substr(0, MPI_MAX_INFO_VAL - 1));
}

} // namespace

void describe_environment(int argc, char** argv, object::Info& info) {
  std::vector<std::string> words;
  if (argv != nullptr)
    words.assign(argv, argv + argc);
  else
    words = own_command_line();
  if (!words.empty()) {
    std::string rest;
    for (auto word = std::next(words.begin()); word != words.end(); ++word)
      rest += (rest.empty() ? "" : " ") + *word;
    set_cut(info, "command", words.front());
    set_cut(info, "argv", rest);
  }
  // The launcher's variables are available only before MPI_Init.
  std::uint32_t size = process.life == Life::before ? boot::size_of_job(environ) : process.start.size;
  if (size != 0) {
    info.set("maxprocs", std::to_string(size));
    info.set("soft", std::to_string(size));
  }
  info.set("mpi_memory_alloc_kinds", object::memory_kinds);
  set_cut(info, "host", os::machine_name());
  if (architecture != nullptr) info.set("arch", architecture);
  if (char* folder = getcwd(nullptr, 0)) {
    set_cut(info, "wdir", folder);
    std::free(folder);
  }
}

} // namespace near::mpi
