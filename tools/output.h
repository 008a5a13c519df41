// A file for what a command writes.
#pragma once

#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <string>

namespace near::tools {

/// A file that is closed at the end. It is opened before anything is measured, so that a wrong path costs nobody any time.
class File {
public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (file_ != nullptr) std::fclose(file_);
  }
  base::Result open(const std::string& path) {
    path_ = path;
    file_ = std::fopen(path.c_str(), "we");
    return file_ != nullptr ? base::Result{} : base::fail_system("fopen", errno, path);
  }
  base::Result write(const std::string& text) {
    if (std::fputs(text.c_str(), file_) >= 0 && std::fflush(file_) == 0) return {};
    return base::fail_system("write", errno, path_);
  }

private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

} // namespace near::tools
