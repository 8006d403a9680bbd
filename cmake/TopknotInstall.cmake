# What users get: the program, libtopknot.so with all layers inside, the public headers, and a
# package for find_package(topknot). Included after src/, when every layer is known.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY TOPKNOT_LIBRARIES)
set(objects "")
foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()

# The target is called libtopknot because the program is called topknot; to the outside it is
# topknot::topknot. The layers' objects are taken whole: nothing in the library itself calls its
# API, so the linker would leave them out of an archive. Linking the archives too brings their
# dependencies.
add_library(libtopknot SHARED ${objects})
add_library(topknot::topknot ALIAS libtopknot)
target_link_libraries(libtopknot PRIVATE ${layers})
target_include_directories(libtopknot INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(libtopknot INTERFACE cxx_std_20)
set_target_properties(libtopknot PROPERTIES
  OUTPUT_NAME topknot EXPORT_NAME topknot LINKER_LANGUAGE CXX
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# What the scripts build: all that is installed, and no tests.
add_custom_target(product DEPENDS libtopknot)

add_dependencies(product topknot)
# Libraries that came along stand in lib/ beside bin/, or beneath the program's own folder in a
# device-bundle (TopknotPackage.cmake). DT_RPATH, not DT_RUNPATH: it also holds for what those
# libraries need themselves.
set_target_properties(topknot PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/lib")
set_target_properties(libtopknot PROPERTIES INSTALL_RPATH "$ORIGIN")
set(symbol_map ${PROJECT_SOURCE_DIR}/cmake/libtopknot.map)
target_link_options(libtopknot PRIVATE LINKER:--version-script=${symbol_map})
set_property(TARGET libtopknot APPEND PROPERTY LINK_DEPENDS ${symbol_map})
foreach(target topknot libtopknot)
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endforeach()
install(TARGETS topknot RUNTIME_DEPENDENCY_SET topknot_needs RUNTIME)
if(TARGET topknot_kernels)
  add_dependencies(product topknot_kernels)
  target_link_options(topknot_kernels PRIVATE LINKER:--disable-new-dtags)
  install(TARGETS topknot_kernels RUNTIME_DEPENDENCY_SET topknot_needs LIBRARY)
endif()
install(TARGETS libtopknot EXPORT topknotTargets RUNTIME_DEPENDENCY_SET topknot_needs LIBRARY)
# Data files found by name beside the program (base/data_files.h): facts of machines, and what other
# engines accept. The build tree looks like the install tree.
set(data_kinds devices catalog)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/topknot)
foreach(kind IN LISTS data_kinds)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/docs/${kind} ${PROJECT_BINARY_DIR}/share/topknot/${kind}
    SYMBOLIC)
endforeach()
# topknot_install_data(<arguments of install(DIRECTORY)>)
function(topknot_install_data)
  foreach(kind IN LISTS data_kinds)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/${kind} ${ARGN} FILES_MATCHING PATTERN "*.json")
  endforeach()
endfunction()
topknot_install_data(DESTINATION ${CMAKE_INSTALL_DATADIR}/topknot)
# The codebooks carry the licence of their source, which goes with every copy of them.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/src/tensor/codebooks.txt
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/topknot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/topknot)
install(EXPORT topknotTargets NAMESPACE topknot:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/topknotConfig.cmake.in
  ${PROJECT_BINARY_DIR}/topknotConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may break the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/topknotConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/topknotConfig.cmake ${PROJECT_BINARY_DIR}/topknotConfigVersion.cmake
  DESTINATION ${package_folder})
