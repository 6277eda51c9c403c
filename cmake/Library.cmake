# CHASQUI_LIBRARY: libchasqui.so, the engine behind src/capi/chasqui.h (`make library`, docs/library.md). It needs all
# objects, libllama's too, compiled for a shared library, so it has a build folder of its own (preset `library`).
option(CHASQUI_LIBRARY "Build libchasqui.so, with CMAKE_POSITION_INDEPENDENT_CODE" OFF)
if(NOT CHASQUI_LIBRARY)
  return()
endif()
if(CHASQUI_SANITIZE)
  message(FATAL_ERROR "CHASQUI_LIBRARY has no build with sanitizers: the unit tests of src/capi have")
endif()

# Boost's archive is not made for shared libraries; its sources are in its headers.
add_library(chasqui_shared SHARED ${PROJECT_SOURCE_DIR}/third_party/boost_json/boost_json.cpp)
target_compile_features(chasqui_shared PRIVATE cxx_std_20)
set(exports ${PROJECT_SOURCE_DIR}/src/capi/exports.map)
target_link_libraries(chasqui_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,chasqui_capi>)
# Programs see what the header has, and nothing of what is inside; it is never unloaded, since compute threads may be
# somewhere in it. The C++ library is inside, too.
target_link_options(chasqui_shared PRIVATE -static-libstdc++ -static-libgcc LINKER:--version-script=${exports}
  LINKER:-z,defs LINKER:-z,nodelete LINKER:--as-needed)
set_target_properties(chasqui_shared PROPERTIES OUTPUT_NAME chasqui VERSION ${PROJECT_VERSION} SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${exports})

include(GNUInstallDirs)
install(TARGETS chasqui_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/src/capi/chasqui.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libchasqui COMPONENT library
  EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses/texts/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libchasqui/licenses
  COMPONENT library EXCLUDE_FROM_ALL)
configure_file(${PROJECT_SOURCE_DIR}/cmake/chasqui.pc.in ${PROJECT_BINARY_DIR}/chasqui.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/chasqui.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library
  EXCLUDE_FROM_ALL)
