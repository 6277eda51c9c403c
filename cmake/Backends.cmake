# Targets backend_NAME: one of ggml's backends as a library that the server loads when it starts (model/llama_backends),
# in the folder of the build where the binary looks for it: docs/backends.md. Not part of any other target.
set(folder ${PROJECT_BINARY_DIR}/lib/chasqui/ggml-${CHASQUI_LLAMA_VERSION})
set(sources ${CHASQUI_CACHE}/src/llama.cpp-${CHASQUI_LLAMA_VERSION})
if(CHASQUI_LLAMA_SOURCE)
  set(sources ${CHASQUI_LLAMA_SOURCE})
endif()
set(CHASQUI_BACKEND_OPTIONS "" CACHE STRING "More options of CMake for backend_…, such as -DCMAKE_CUDA_ARCHITECTURES=86")
separate_arguments(more UNIX_COMMAND "${CHASQUI_BACKEND_OPTIONS}")
foreach(name IN ITEMS blas cuda hip musa opencl sycl vulkan)
  set(work ${PROJECT_BINARY_DIR}/backends/${name})
  add_custom_target(backend_${name}
    COMMAND ${CMAKE_COMMAND} --fresh -S ${PROJECT_SOURCE_DIR}/third_party/ggml_backend -B ${work} -G Ninja
            -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
            -DLLAMA_SOURCE_DIR=${sources} -DBACKEND=${name} ${more}
    COMMAND ${CMAKE_COMMAND} --build ${work}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_COMMAND} -E copy ${work}/lib/libggml-${name}.so ${folder}
    USES_TERMINAL VERBATIM)
endforeach()
install(DIRECTORY ${folder} DESTINATION lib/chasqui OPTIONAL
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
