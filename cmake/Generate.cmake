# The generated half of the surface (gen/generate.py): entry points, what they call, the function table.
# Runs at build time, whenever api/, gen/ or src/mpi/*.cpp change; files whose text stays the same keep their time,
# so only what really changed is compiled again.
#
#   near_generated   the custom target that everything which includes a generated file depends on
#   near_surface     the function table, for the library, the launcher and the tools: "surface/functions.h"

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(NEAR_GENERATED ${CMAKE_BINARY_DIR}/generated)

file(GLOB near_generator CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gen/*.py ${PROJECT_SOURCE_DIR}/api/*.json)
file(GLOB near_bindings CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${near_generator})
set(near_generate ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/gen/generate.py build ${NEAR_GENERATED})
execute_process(COMMAND ${near_generate} --list OUTPUT_VARIABLE NEAR_GENERATED_FILES
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE near_status)
if(NOT near_status EQUAL 0)
  message(FATAL_ERROR "gen/generate.py failed")
endif()
string(REPLACE "\n" ";" NEAR_GENERATED_FILES "${NEAR_GENERATED_FILES}")
set(NEAR_ENTRY_FILES ${NEAR_GENERATED_FILES})
list(FILTER NEAR_ENTRY_FILES INCLUDE REGEX "/entries/")

add_custom_command(
  OUTPUT ${NEAR_GENERATED}/stamp
  BYPRODUCTS ${NEAR_GENERATED_FILES}
  COMMAND ${near_generate}
  COMMAND ${CMAKE_COMMAND} -E touch ${NEAR_GENERATED}/stamp
  DEPENDS ${near_generator} ${near_bindings}
  COMMENT "Generating the surface")
add_custom_target(near_generated DEPENDS ${NEAR_GENERATED}/stamp)

add_library(near_surface STATIC ${NEAR_GENERATED}/surface_root/surface/functions.cpp)
target_include_directories(near_surface PUBLIC ${NEAR_GENERATED}/surface_root)
add_dependencies(near_surface near_generated)
