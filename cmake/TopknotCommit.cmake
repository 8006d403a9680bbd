# Run at every build (cmake -P): writes the commit to OUTPUT, and touches that file only when the
# commit changed, so that nothing else is compiled again. Without git, or from a tarball, it is
# "unknown".
#   SOURCE_DIR  the tree    OUTPUT  the header to write
set(commit "unknown")
# A tarball unpacked inside somebody else's repository must not report that repository's commit.
if(EXISTS "${SOURCE_DIR}/.git")
  find_program(GIT_PROGRAM git)
  if(GIT_PROGRAM)
    execute_process(COMMAND "${GIT_PROGRAM}" describe --always --dirty --exclude=* --abbrev=10
      WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE described RESULT_VARIABLE status
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(status EQUAL 0)
      set(commit "${described}")
    endif()
  endif()
endif()

set(text "#pragma once\n#define TOPKNOT_COMMIT \"${commit}\"\n")
set(written "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" written)
endif()
if(NOT written STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
