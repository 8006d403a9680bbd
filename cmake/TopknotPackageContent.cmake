# Read by cpack for each kind of package: which components it holds beside what is installed.
list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
set(components licenses)
if(CPACK_GENERATOR STREQUAL "TGZ")
  list(APPEND components needs)
endif()
foreach(component IN LISTS components)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS "${build}" topknot "${component}" /)
endforeach()
