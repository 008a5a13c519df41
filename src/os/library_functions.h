// Functions of libraries that are loaded while a program runs.
#pragma once

#include <dlfcn.h>

namespace near::os {

/// Finds a function of a library that dlopen() has loaded. Returns false, and dlerror() says why, if there is none of this name.
template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

} // namespace near::os
