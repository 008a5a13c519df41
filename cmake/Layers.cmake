# Reads src/layers.txt and makes one static library per layer, `near_<layer>`, whose include roots hold only what
# the layer may see: an include of anything else is "file not found", not a matter for review.

include(${CMAKE_CURRENT_LIST_DIR}/Together.cmake)

set(NEAR_LAYER_ROOTS ${CMAKE_BINARY_DIR}/roots)

# near_read_layers(): sets NEAR_LAYERS (in file order), and for each of them NEAR_LAYER_<name>_NUMBER, _FOLDER and
# _OWNER, the program that it belongs to ("" for a layer of the library).
function(near_read_layers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/layers.txt)
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/layers.txt rows REGEX "^[0-9]")
  set(names)
  foreach(row IN LISTS rows)
    string(REGEX MATCH "^([0-9]+) *[|] *(([a-z]+)/)?([a-z0-9]+) *[|]" _ "${row}")
    set(name ${CMAKE_MATCH_4})
    set(owner ${CMAKE_MATCH_3})
    list(APPEND names ${name})
    set(NEAR_LAYER_${name}_NUMBER ${CMAKE_MATCH_1} PARENT_SCOPE)
    set(NEAR_LAYER_${name}_OWNER "${owner}" PARENT_SCOPE)
    if(owner)
      set(NEAR_LAYER_${name}_FOLDER ${PROJECT_SOURCE_DIR}/${owner}/${name} PARENT_SCOPE)
    else()
      set(NEAR_LAYER_${name}_FOLDER ${PROJECT_SOURCE_DIR}/src/${name} PARENT_SCOPE)
    endif()
  endforeach()
  set(NEAR_LAYERS ${names} PARENT_SCOPE)
endfunction()

# near_layer_visible(<result> <layer>): the lower layers that exist as targets, without those of other programs.
function(near_layer_visible result layer)
  set(visible)
  foreach(other IN LISTS NEAR_LAYERS)
    set(owner "${NEAR_LAYER_${other}_OWNER}")
    if(owner AND NOT owner STREQUAL "${NEAR_LAYER_${layer}_OWNER}")
      continue()
    endif()
    if(NEAR_LAYER_${other}_NUMBER LESS NEAR_LAYER_${layer}_NUMBER AND TARGET near_${other})
      list(APPEND visible near_${other})
    endif()
  endforeach()
  set(${result} ${visible} PARENT_SCOPE)
endfunction()

# near_compile_unoptimised(<target>): without optimisation where the address sanitizer checks every access, since optimising the checks takes up
# to half of the compiler's time, and otherwise like other targets. For code that does little while a job runs.
function(near_compile_unoptimised target)
  if(NEAR_SANITIZE MATCHES "address")
    target_compile_options(${target} PRIVATE -O0)
  endif()
  get_target_property(type ${target} TYPE)
  if(NEAR_PRECOMPILE AND NOT type STREQUAL EXECUTABLE) # programs are compiled with other options
    if(NEAR_SANITIZE MATCHES "address")
      near_precompile(${target} near_precompiled_unoptimised)
    else()
      near_precompile(${target} near_precompiled)
    endif()
  endif()
endfunction()

# Layers that prepare a job, report on it, or pass calls on to others.
set(NEAR_PREPARING topo boot profile planning machines place calibrate pattern model comm mpi)

# near_add_layer(<layer>): the target near_<layer> from the sources in its folder, if the folder exists.
function(near_add_layer layer)
  set(folder ${NEAR_LAYER_${layer}_FOLDER})
  if(NOT IS_DIRECTORY ${folder})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*/*.cpp)
  set(root ${NEAR_LAYER_ROOTS}/${layer})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${folder} ${root}/${layer} SYMBOLIC)
  near_layer_visible(visible ${layer})
  if(sources)
    add_library(near_${layer} STATIC ${sources})
    target_include_directories(near_${layer} PUBLIC ${root})
    target_link_libraries(near_${layer} PUBLIC near_flags ${visible})
    near_compile_together(near_${layer})
    if(layer IN_LIST NEAR_PREPARING)
      near_compile_unoptimised(near_${layer})
    elseif(NEAR_PRECOMPILE)
      near_precompile(near_${layer} near_precompiled)
    endif()
  else()
    add_library(near_${layer} INTERFACE)
    target_include_directories(near_${layer} INTERFACE ${root})
    target_link_libraries(near_${layer} INTERFACE near_flags ${visible})
  endif()
endfunction()

# EXPECT_* is an if-else: a condition before it would need braces that say nothing.
set(NEAR_TEST_OPTIONS -Wno-dangling-else)
# With the checks of these sanitizers, optimising the tests takes as long as everything else in compiling them. The layers under test
# are optimised.
if(NEAR_SANITIZE MATCHES "address")
  list(APPEND NEAR_TEST_OPTIONS -O0)
endif()

# near_add_layer_test(<layer>): unit_<layer> from test/unit/<layer>/*.cpp.
function(near_add_layer_test layer)
  near_add_test(unit_${layer} unit.${layer}. ${layer} ${PROJECT_SOURCE_DIR}/test/unit/${layer})
endfunction()

# near_add_test(<target> <prefix> <layer> <source or folder> ...): a test program from these sources and from the *.cpp
# of these folders, linked with that layer and what it may use, nothing else. The layer is linked whole, so a call to
# something that it may not use fails this link even if no test reaches it.
function(near_add_test target prefix layer)
  set(sources)
  foreach(from IN LISTS ARGN)
    if(IS_DIRECTORY ${from})
      file(GLOB from CONFIGURE_DEPENDS ${from}/*.cpp)
    elseif(NOT EXISTS ${from})
      continue()
    endif()
    list(APPEND sources ${from})
  endforeach()
  if(NOT sources OR NOT TARGET near_${layer})
    return()
  endif()
  add_executable(${target} ${sources})
  get_target_property(type near_${layer} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    target_link_libraries(${target} PRIVATE -Wl,--whole-archive near_${layer} -Wl,--no-whole-archive)
  else()
    target_link_libraries(${target} PRIVATE near_${layer})
  endif()
  # stdc++ stands here so that GoogleTest's calls into std::string are not answered by a weak copy in some lower
  # layer's member, which would come along and collide with a test's fake of that layer.
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main stdc++)
  target_compile_options(${target} PRIVATE ${NEAR_TEST_OPTIONS})
  near_compile_together(${target})
  if(NEAR_PRECOMPILE)
    near_precompile(${target} near_precompiled_test)
  endif()
  gtest_discover_tests(${target} TEST_PREFIX ${prefix} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endfunction()

# near_add_conformance_tests(): what every implementation of a concept must pass, one program for each set of them that
# can be linked together.
function(near_add_conformance_tests)
  set(folder ${PROJECT_SOURCE_DIR}/test/conformance/transport)
  add_library(conformance_suite OBJECT ${folder}/suite.cpp ${folder}/memory.cpp ${folder}/waiting.cpp
              ${folder}/long_series.cpp ${folder}/longest_eager.cpp ${folder}/waiting_eager.cpp)
  target_link_libraries(conformance_suite PUBLIC near_transport PRIVATE GTest::gtest)
  target_compile_options(conformance_suite PRIVATE ${NEAR_TEST_OPTIONS} -fPIE) # as programs
  set_target_properties(conformance_suite PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  near_compile_together(conformance_suite)
  if(NEAR_PRECOMPILE)
    near_precompile(conformance_suite near_precompiled_test)
  endif()
  near_add_test(conformance_transport conformance. shm ${folder}/kinds.cpp ${folder}/shm_kind.cpp ${folder}/socket_kind.cpp
                ${folder}/socket_memory.cpp ${folder}/socket_transport.cpp)
  near_add_test(conformance_ofi conformance. ofi ${folder}/ofi_kind.cpp)
  # The fake stands in for functions of the transport layer, so it is a program of its own.
  set(fake ${PROJECT_SOURCE_DIR}/test/unit/p2p)
  near_add_test(conformance_fake conformance. p2p ${folder}/fake_kind.cpp ${fake}/fake_transport.cpp)
  target_include_directories(conformance_fake PRIVATE ${fake})
  foreach(program conformance_transport conformance_ofi conformance_fake)
    target_link_libraries(${program} PRIVATE conformance_suite)
  endforeach()
endfunction()

# near_add_model_test(): model_queue, the scenarios of test/model on the headers of src/queue.
function(near_add_model_test)
  near_add_test(model_queue model. queue ${PROJECT_SOURCE_DIR}/test/model)
  # Millions of executions: optimised in every preset, and without checks of the headers' memory, which unit_queue has.
  if(TARGET model_queue)
    target_compile_options(model_queue PRIVATE -O2 -fno-sanitize=all)
    set_target_properties(model_queue PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    target_compile_definitions(model_queue PRIVATE NEAR_SOURCE_ROOT="${PROJECT_SOURCE_DIR}")
  endif()
endfunction()

# near_add_link_check(<layer>): links_<layer>, an empty program with the whole layer and what it may use: a call to
# anything else, however it is declared, is an undefined symbol.
function(near_add_link_check layer)
  if(NOT TARGET near_${layer})
    return()
  endif()
  get_target_property(type near_${layer} TYPE)
  if(NOT type STREQUAL STATIC_LIBRARY)
    return()
  endif()
  set(empty ${CMAKE_BINARY_DIR}/links_main.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "int main() { return 0; }\n")
  add_executable(links_${layer} ${empty})
  target_link_libraries(links_${layer} PRIVATE -Wl,--whole-archive near_${layer} -Wl,--no-whole-archive)
endfunction()
