// Functions of libraries that are loaded at run time.
#pragma once

#include <dlfcn.h>

namespace near::os {

/// Finds a function of a library loaded by dlopen(). Returns false if there is none of this name; dlerror() then says why.
template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

} // namespace near::os
