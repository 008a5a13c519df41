# near_embed(<target> <file> <header> <namespace> <name>): compiles the text of <file> into <target> as the
# std::string_view near::<namespace>::<name>, which <header> declares. This file is also the script that writes the
# C++ source, at build time, whenever <file> changes.

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} text)
  string(FIND "${text}" ")embedded\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${INPUT} contains the delimiter of the string literal that it is written into")
  endif()
  file(WRITE ${OUTPUT} "// Made from ${INPUT}.
#include \"${HEADER}\"

namespace near::${NAMESPACE} {

extern constexpr std::string_view ${NAME} = R\"embedded(${text})embedded\";

} // namespace near::${NAMESPACE}
")
  return()
endif()

function(near_embed target file header namespace name)
  set(output ${CMAKE_BINARY_DIR}/embedded/${header}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DHEADER=${header} -DNAMESPACE=${namespace}
            -DNAME=${name} -P ${script}
    DEPENDS ${file} ${script}
    COMMENT "Embedding ${file}"
    VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON) # clang-tidy looks at all sources before it exists
  target_sources(${target} PRIVATE ${output})
endfunction()
