// The functions that a loaded library imports from others, and replacing one of them for a while.
#pragma once

namespace near::os {

/// While it lives, a library that dlopen() has loaded calls `replacement` instead of the function `name` of another library. Other
/// libraries are not affected. Does nothing if the library does not import that function. No other thread may replace the same one.
class ReplacedImport {
public:
  /// `replacement`: has the type of the function that it replaces.
  template <class Function>
  ReplacedImport(void* library, const char* name, Function* replacement) {
    replace(library, name, reinterpret_cast<void*>(replacement));
  }
  ~ReplacedImport();
  ReplacedImport(const ReplacedImport&) = delete;
  ReplacedImport& operator=(const ReplacedImport&) = delete;

  /// Whether the library imports the function.
  bool is_found() const { return place_ != nullptr; }

private:
  void replace(void* library, const char* name, void* replacement);
  bool write(void* function);

  void** place_ = nullptr;    ///< where the library keeps the function's address
  void* original_ = nullptr;  ///< what was there
  bool is_protected_ = false; ///< the loader has made the place read-only
};

} // namespace near::os
