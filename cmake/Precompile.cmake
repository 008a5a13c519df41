# Builds with sanitizers are made in every test run, and two fifths of their time was the standard headers. They parse these
# once for all layers, and once with GoogleTest for all tests. All other builds parse them themselves.

set(NEAR_PRECOMPILE OFF)
if(NEAR_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(NEAR_PRECOMPILE ON)
endif()

# near_add_precompiled(<target> <header> ...): headers for near_precompile. Set compile options on the target: the
# same as those of the targets that use the headers.
function(near_add_precompiled target)
  set(empty ${CMAKE_BINARY_DIR}/${target}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${target} OBJECT ${empty})
  target_link_libraries(${target} PUBLIC near_flags)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  # What ccache needs to keep objects made with them.
  target_compile_options(${target} PUBLIC -fpch-preprocess)
endfunction()

# near_precompile(<target> <from>): `target` uses the headers of `from`. Only if NEAR_PRECOMPILE.
function(near_precompile target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

if(NEAR_PRECOMPILE)
  set(near_headers <algorithm> <array> <charconv> <cstdint> <cstring> <functional> <map> <memory> <optional> <span> <string>
                   <string_view> <utility> <vector>)
  near_add_precompiled(near_precompiled ${near_headers})
  if(NEAR_SANITIZE MATCHES "address")
    near_add_precompiled(near_precompiled_unoptimised ${near_headers})
    target_compile_options(near_precompiled_unoptimised PRIVATE -O0)
  endif()
  find_package(GTest REQUIRED)
  near_add_precompiled(near_precompiled_test ${near_headers} <gtest/gtest.h>)
  target_link_libraries(near_precompiled_test PUBLIC GTest::gtest)
  target_compile_options(near_precompiled_test PRIVATE ${NEAR_TEST_OPTIONS} -fPIE) # as programs
  set_target_properties(near_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endif()
