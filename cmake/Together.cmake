# Release builds, builds with a sanitizer, and clang-tidy compile several files of a layer or of a unit test at once, since headers take
# half of a file's time. CMakeLists.txt has the exceptions. The preset debug compiles each file alone, so there a missing include is an error.
# Names in the anonymous namespaces of a layer, or of its unit tests, must differ.

set(together OFF)
if(NEAR_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Release")
  set(together ON)
endif()
option(NEAR_TOGETHER "Compile several files at once" ${together})

# near_compile_together(<target>): does so with the sources of `target`. Only if NEAR_TOGETHER.
function(near_compile_together target)
  if(NEAR_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12
                          UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
  endif()
endfunction()
