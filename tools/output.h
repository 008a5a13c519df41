// The destination of a command's results.
#pragma once

#include "base/result.h"
#include "os/descriptor.h"

#include <cerrno>
#include <cstdio>
#include <string>

namespace near::tools {

constexpr const char* clear_screen = "\033[H\033[J";

/// Standard output, or a file, which is closed at the end. It is opened before anything is measured, so that a wrong path wastes no
/// time.
class Output {
public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (file_ != stdout) std::fclose(file_);
  }
  /// Writes to this file from now on. `mode` is as for fopen().
  base::Result open(const std::string& path, const char* mode = "we") {
    std::FILE* made = std::fopen(path.c_str(), mode);
    if (made == nullptr) return base::fail_system("fopen", errno, path);
    file_ = made;
    path_ = path;
    return {};
  }
  base::Result write(const std::string& text) {
    if (std::fputs(text.c_str(), file_) >= 0 && std::fflush(file_) == 0) return {};
    return base::fail_system("write", errno, path_);
  }
  bool is_terminal() const { return file_ == stdout && os::is_terminal(1); }

private:
  std::FILE* file_ = stdout;
  std::string path_ = "standard output";
};

/// Writes a file so that no reader ever finds half of it. If the path is not a regular file (but a link, a device or a pipe),
/// writes to it instead of replacing it.
base::Result replace_file(const std::string& path, const std::string& text);

} // namespace near::tools
