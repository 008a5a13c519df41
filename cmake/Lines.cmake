# near_install_without_lines(<file>): removes debugging information, which contains line numbers, from what was installed as <file>, relative
# to the prefix. Symbols stay. Does nothing in other builds than release builds, or where there is no `strip`.
function(near_install_without_lines file)
  if(CMAKE_BUILD_TYPE STREQUAL Release AND CMAKE_STRIP)
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  endif()
endfunction()
