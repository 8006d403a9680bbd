# Warnings for our own targets only; errors where a preset asks for them, never for consumers.
set(topknot_warning_flags -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers)
add_library(topknot_warnings INTERFACE)
target_compile_options(topknot_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${topknot_warning_flags}>"
  $<$<AND:$<BOOL:${TOPKNOT_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
# GCC's own advice: with sanitizers this warning follows paths that do not exist.
if(TOPKNOT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(topknot_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
