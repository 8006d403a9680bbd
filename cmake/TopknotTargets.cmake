# One folder, one target: topknot_<name>, alias topknot::<name>. Tests stand beside the code.

# topknot_library(NAME <name> SOURCES ... [DEPENDS public targets ...] [PRIVATE_DEPENDS ...])
function(topknot_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(topknot_${ARG_NAME} STATIC ${ARG_SOURCES})
  add_library(topknot::${ARG_NAME} ALIAS topknot_${ARG_NAME})
  target_include_directories(topknot_${ARG_NAME} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(topknot_${ARG_NAME} PUBLIC ${ARG_DEPENDS}
    PRIVATE ${ARG_PRIVATE_DEPENDS} $<BUILD_INTERFACE:topknot_warnings>)
  set_property(GLOBAL APPEND PROPERTY TOPKNOT_LIBRARIES topknot_${ARG_NAME})
endfunction()

# topknot_test(NAME <name> SOURCES ... [DEPENDS ...] [LABEL fast|slow|device|multi]
#              [TIMEOUT seconds])
# One executable; every TEST in it is a CTest test of that label.
function(topknot_test)
  cmake_parse_arguments(ARG "" "NAME;LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT TOPKNOT_TESTS)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} GTest::gmock_main topknot_warnings)
  target_compile_definitions(${ARG_NAME} PRIVATE TOPKNOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${ARG_NAME} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# The Python of the tests: the environment scripts/test.sh makes, else any python3. Not used by the
# build.
if(TOPKNOT_TESTS)
  if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
    set(TOPKNOT_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
  else()
    find_program(TOPKNOT_SYSTEM_PYTHON python3 REQUIRED)
    set(TOPKNOT_PYTHON ${TOPKNOT_SYSTEM_PYTHON})
  endif()
endif()

# topknot_python_test(NAME <name> COMMAND <script or -m module> [arguments ...]
#                     [LABEL fast|slow|device|multi] [TIMEOUT seconds])
# Exit code 77 skips the test; the script prints what it lacked.
function(topknot_python_test)
  cmake_parse_arguments(ARG "" "NAME;LABEL;TIMEOUT" "COMMAND" ${ARGN})
  if(NOT TOPKNOT_TESTS)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${TOPKNOT_PYTHON} ${ARG_COMMAND}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    SKIP_RETURN_CODE 77 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()

# topknot_fuzzer(NAME <name> SOURCES ... DEPENDS ... CORPUS <dir>)
# Preset `fuzz` (clang): a libFuzzer program. Elsewhere: a program that runs each file of its corpus
# once, as a test, so that every input that ever crashed stays tested.
function(topknot_fuzzer)
  cmake_parse_arguments(ARG "" "NAME;CORPUS" "SOURCES;DEPENDS" ${ARGN})
  if(TOPKNOT_FUZZ)
    add_executable(${ARG_NAME} ${ARG_SOURCES})
    target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
  elseif(TOPKNOT_TESTS)
    add_executable(${ARG_NAME} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/fuzz/run_corpus.cc)
    add_test(NAME ${ARG_NAME}.corpus COMMAND ${ARG_NAME} ${ARG_CORPUS})
    set_tests_properties(${ARG_NAME}.corpus PROPERTIES LABELS fast)
  else()
    return()
  endif()
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS} topknot_warnings)
endfunction()
