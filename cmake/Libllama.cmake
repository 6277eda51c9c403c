# Provides the target chasqui::libllama (libllama + llama-common + ggml, static) from the pinned source.
# The built libraries live outside the build tree, in ${CHASQUI_CACHE}/libllama/<key>, where the key is a hash of
# version, compiler, options and recipe: a clean checkout on the same machine does not compile them again.
include(${CMAKE_CURRENT_LIST_DIR}/CpuFeatures.cmake)

set(CHASQUI_LLAMA_VERSION "0.5.0")
set(CHASQUI_LLAMA_COMMIT "de3ff815ea7d559ee917f063901b8986f038abc6")

if(DEFINED ENV{CHASQUI_CACHE})
  set(default_cache "$ENV{CHASQUI_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(default_cache "$ENV{XDG_CACHE_HOME}/chasqui")
else()
  set(default_cache "$ENV{HOME}/.cache/chasqui")
endif()
set(CHASQUI_CACHE "${default_cache}" CACHE PATH "Where the libllama source and its built libraries are kept")
set(CHASQUI_LLAMA_SOURCE "" CACHE PATH "A llama.cpp checkout to build instead of the pinned one")

function(chasqui_libllama_source out)
  if(CHASQUI_LLAMA_SOURCE)
    set(${out} "${CHASQUI_LLAMA_SOURCE}" PARENT_SCOPE)
    return()
  endif()
  set(source "${CHASQUI_CACHE}/src/llama.cpp-${CHASQUI_LLAMA_VERSION}")
  if(NOT EXISTS "${source}/include/llama.h")
    message(STATUS "Fetching the libllama ${CHASQUI_LLAMA_VERSION} source")
    execute_process(
      COMMAND ${PROJECT_SOURCE_DIR}/tools/fetch_libllama.sh "${source}"
      RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "No libllama source. Name a checkout with -DCHASQUI_LLAMA_SOURCE=DIR "
                          "(llama.cpp ${CHASQUI_LLAMA_VERSION}, commit ${CHASQUI_LLAMA_COMMIT}).")
    endif()
  endif()
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

function(chasqui_build_libllama source prefix options)
  message(STATUS "Building libllama ${CHASQUI_LLAMA_VERSION} into ${prefix} (once per machine, about 5 minutes on two cores)")
  set(work "${prefix}.build")
  # A list does not survive the command line: one that arrives with its separators escaped is a single item.
  string(REPLACE ";" "," options_line "${options}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/third_party/libllama -B ${work} -G Ninja
            -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
            -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DLLAMA_SOURCE_DIR=${source}
            -DCHASQUI_PREFIX=${prefix} -DCHASQUI_GGML_OPTIONS=${options_line}
    OUTPUT_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${work} --target collect RESULT_VARIABLE failed)
  endif()
  if(failed)
    message(FATAL_ERROR "Building libllama failed; its build folder is ${work}")
  endif()
  file(GLOB public_headers ${source}/include/*.h ${source}/ggml/include/*.h)
  file(COPY ${public_headers} DESTINATION ${prefix}/include)
  file(COPY ${source}/common/ DESTINATION ${prefix}/include/common FILES_MATCHING PATTERN "*.h")
  file(COPY ${source}/vendor/nlohmann DESTINATION ${prefix}/include)
  file(WRITE ${prefix}/complete "${CHASQUI_LLAMA_COMMIT}\n${options}\n")
  file(REMOVE_RECURSE ${work})
endfunction()

function(chasqui_provide_libllama)
  chasqui_ggml_cpu_options(options)
  set(recipe "")
  file(GLOB recipe_files ${PROJECT_SOURCE_DIR}/third_party/libllama/*)
  foreach(file IN LISTS recipe_files)
    file(SHA256 ${file} hash)
    string(APPEND recipe " ${hash}")
  endforeach()
  string(SHA256 key "${CHASQUI_LLAMA_COMMIT} ${CHASQUI_LLAMA_SOURCE} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${options} ${recipe}")
  string(SUBSTRING ${key} 0 12 key)
  string(TOLOWER "${CMAKE_CXX_COMPILER_ID}" compiler)
  set(prefix "${CHASQUI_CACHE}/libllama/${CHASQUI_LLAMA_VERSION}-${compiler}${CMAKE_CXX_COMPILER_VERSION}-${CHASQUI_CPU}-${key}")
  if(NOT EXISTS "${prefix}/complete")
    chasqui_libllama_source(source)
    chasqui_build_libllama("${source}" "${prefix}" "${options}")
  endif()
  message(STATUS "libllama: ${prefix}")

  find_package(Threads REQUIRED)
  add_library(chasqui_libllama INTERFACE)
  add_library(chasqui::libllama ALIAS chasqui_libllama)
  target_include_directories(chasqui_libllama SYSTEM INTERFACE ${prefix}/include ${prefix}/include/common)
  set(archives "")
  foreach(name llama-common llama-common-base llama ggml ggml-cpu ggml-base cpp-httplib)
    list(APPEND archives ${prefix}/lib/lib${name}.a)
  endforeach()
  target_link_libraries(chasqui_libllama INTERFACE
    -Wl,--start-group ${archives} -Wl,--end-group Threads::Threads ${CMAKE_DL_LIBS})
  set(CHASQUI_LLAMA_PREFIX "${prefix}" PARENT_SCOPE)
  set(CHASQUI_GGML_OPTIONS "${options}" PARENT_SCOPE)
endfunction()
