# The target chasqui_portable: the server once more, with OpenSSL, zlib and the C++ library inside, so that it needs the
# C library of the machine and nothing else (`make release`). Where there are no archives of them, there is no such target.
#
# chasqui_crypto stands for OpenSSL and zlib: shared, or from archives for targets whose property CHASQUI_SELF_CONTAINED
# is on.
foreach(name IN ITEMS ssl crypto z)
  find_library(CHASQUI_ARCHIVE_${name} NAMES lib${name}.a)
endforeach()
set(inside $<BOOL:$<TARGET_PROPERTY:CHASQUI_SELF_CONTAINED>>)
add_library(chasqui_crypto INTERFACE)
target_link_libraries(chasqui_crypto INTERFACE
  $<IF:${inside},${CHASQUI_ARCHIVE_ssl},OpenSSL::SSL>
  $<IF:${inside},${CHASQUI_ARCHIVE_crypto},OpenSSL::Crypto>
  $<IF:${inside},${CHASQUI_ARCHIVE_z},ZLIB::ZLIB>)

function(chasqui_self_contained target)
  if(NOT CHASQUI_ARCHIVE_ssl OR NOT CHASQUI_ARCHIVE_crypto OR NOT CHASQUI_ARCHIVE_z OR CHASQUI_SANITIZE OR CHASQUI_CUDA)
    return()
  endif()
  add_executable(${target} EXCLUDE_FROM_ALL src/app/main.cpp)
  target_link_libraries(${target} PRIVATE chasqui_app)
  target_compile_options(${target} PRIVATE ${CHASQUI_WARNINGS})
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  set_target_properties(${target} PROPERTIES CHASQUI_SELF_CONTAINED ON OUTPUT_NAME chasqui
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/self_contained)
endfunction()
