# What strangers' machines get: a tar.gz that runs wherever it is unpacked, with the shared
# libraries that a bare system lacks; a .deb, whose dependencies apt brings; and the target
# device-bundle, the program and those libraries in one folder. Included after
# TopknotInstall.cmake.
#
#   cpack -G TGZ    cpack -G DEB    cmake --build . --target device-bundle

# Libraries that every Debian 12 or newer system has, or that must be its own: the C and C++
# runtimes (libraries of that system may be loaded beside ours and need its newer ones) and the
# GPU's driver.
set(system_libraries "^ld-linux" "^linux-vdso" "^libcuda\\.so" "^libnvidia-"
  "^lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\\+\\+)\\.so")

# topknot_install_needs(COMPONENT <name> DESTINATION <folder>): the other libraries that the program
# and libtopknot.so need, found when it is installed.
function(topknot_install_needs)
  cmake_parse_arguments(ARG "" "COMPONENT;DESTINATION" "" ${ARGN})
  install(RUNTIME_DEPENDENCY_SET topknot_needs
    PRE_EXCLUDE_REGEXES ${system_libraries}
    LIBRARY DESTINATION ${ARG_DESTINATION} COMPONENT ${ARG_COMPONENT} EXCLUDE_FROM_ALL)
endfunction()

# Left out of `cmake --install`, which is for this system.
topknot_install_needs(COMPONENT needs DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The licences of what is compiled in or comes along, as Debian states them for each package.
set(TOPKNOT_LICENSES "/usr/share/doc" CACHE PATH
  "Folder of PACKAGE/copyright for the libraries that packages contain")
foreach(package libcli11-dev libfmt-dev libpcre2-dev libspdlog-dev nlohmann-json3-dev)
  install(FILES ${TOPKNOT_LICENSES}/${package}/copyright
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses RENAME ${package}.txt
    COMPONENT licenses EXCLUDE_FROM_ALL)
endforeach()

# One folder for a machine that has a GPU and nothing else.
install(TARGETS topknot RUNTIME DESTINATION . COMPONENT device-bundle EXCLUDE_FROM_ALL)
topknot_install_needs(COMPONENT device-bundle DESTINATION lib)
topknot_install_data(DESTINATION share/topknot COMPONENT device-bundle EXCLUDE_FROM_ALL)
set(bundle ${PROJECT_BINARY_DIR}/device-bundle)
add_custom_target(device-bundle
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${bundle}
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${bundle} --strip
          --component device-bundle
  COMMENT "Copying the program and its libraries to ${bundle}" VERBATIM)
add_dependencies(device-bundle product)

string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" system)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME topknot)
set(CPACK_PACKAGE_VENDOR "Topknot")
set(CPACK_PACKAGE_CONTACT "Topknot maintainers")
set(CPACK_PACKAGE_FILE_NAME "topknot-${PROJECT_VERSION}-${system}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/TopknotPackageContent.cmake)
set(CPACK_PACKAGE_DESCRIPTION
"Runs sparse-attention mixture-of-experts models (GLM-5, DeepSeek-V3.2) and
their dense relatives from GGUF files. Attention reads only the tokens that
the model's own indexer selects. Contains the program topknot, the library
libtopknot.so and its C++20 headers.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Brings the trigger that makes the loader find libtopknot.so.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
if(PROJECT_IS_TOP_LEVEL)
  include(CPack)
endif()
