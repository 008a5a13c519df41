# near_install_without_lines(<file>): removes debugging information, which contains line numbers, from what is installed as <file>, a path
# that is absolute or relative to the prefix. Symbols stay. Release builds alone have line numbers, and nothing happens where
# there is no `strip`. Not for mpiexec: debuggers need its types (launch/debugger.cpp).
function(near_install_without_lines file)
  if(NOT CMAKE_STRIP)
    return()
  endif()
  if(NOT IS_ABSOLUTE ${file})
    set(file "\${CMAKE_INSTALL_PREFIX}/${file}")
  endif()
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"\$ENV{DESTDIR}${file}\" COMMAND_ERROR_IS_FATAL ANY)"
          CONFIGURATIONS Release)
endfunction()
