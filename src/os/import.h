// The functions that a loaded library imports from others, and the temporary replacement of one of them.
#pragma once

namespace near::os {

/// While this object lives, a library loaded by dlopen() calls `replacement` instead of the
/// function `name` of another library. Other libraries are not affected. Has no effect if
/// the library does not import that function. No other thread may replace the same function.
class ReplacedImport {
public:
  /// `replacement` has the type of the function that it replaces.
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
  void* original_ = nullptr;  ///< the original address
  bool is_protected_ = false; ///< the loader has made this memory read-only
};

} // namespace near::os
