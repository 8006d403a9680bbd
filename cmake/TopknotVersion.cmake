# topknot_version_sources(<target>): what version.cc needs to know about this build.
function(topknot_version_sources target)
  set(generated ${PROJECT_BINARY_DIR}/generated)
  add_custom_target(topknot_commit
    COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR}
            -D OUTPUT=${generated}/topknot_commit.h
            -P ${PROJECT_SOURCE_DIR}/cmake/TopknotCommit.cmake
    BYPRODUCTS ${generated}/topknot_commit.h
    COMMENT "" VERBATIM)
  add_dependencies(${target} topknot_commit)
  set(architectures "")
  if(TOPKNOT_CUDA)
    string(REPLACE ";" " " architectures "${TOPKNOT_CUDA_ARCHITECTURES}")
  endif()
  set(build_type "${CMAKE_BUILD_TYPE}")
  if(TOPKNOT_SANITIZE)
    string(APPEND build_type " (${TOPKNOT_SANITIZE})")
  endif()
  set_property(SOURCE version.cc APPEND PROPERTY INCLUDE_DIRECTORIES ${generated})
  set_property(SOURCE version.cc APPEND PROPERTY COMPILE_DEFINITIONS
    "TOPKNOT_VERSION=\"${PROJECT_VERSION}\"" "TOPKNOT_BUILD_TYPE=\"${build_type}\""
    "TOPKNOT_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\""
    "TOPKNOT_BUILT_ARCHITECTURES=\"${architectures}\"")
endfunction()
