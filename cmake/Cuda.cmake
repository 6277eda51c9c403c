# CHASQUI_CUDA: libllama with its CUDA backend (`make cuda`, docs/cuda.md). Nothing here is looked at without it, so that
# builds for the CPU neither need nor notice a CUDA toolkit.
option(CHASQUI_CUDA "Build libllama with its CUDA backend; needs NVIDIA's compiler, nvcc" OFF)
set(CHASQUI_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to compile for, as CMAKE_CUDA_ARCHITECTURES; empty: the one in this machine, or all if there is none")

# What libllama is configured with, and what its key is made of beside the CPU's options:
#   options    NAME=ON|OFF of ggml
#   arguments  for CMake
#   key        the compiler and the GPUs
function(chasqui_cuda_options options arguments key)
  set(${options} "" PARENT_SCOPE)
  set(${arguments} "" PARENT_SCOPE)
  set(${key} "" PARENT_SCOPE)
  if(NOT CHASQUI_CUDA)
    return()
  endif()
  find_program(CHASQUI_NVCC nvcc HINTS "$ENV{CUDACXX}" ENV CUDA_PATH ENV CUDA_HOME PATH_SUFFIXES bin
               PATHS /usr/local/cuda/bin /opt/cuda/bin)
  if(DEFINED ENV{CUDACXX} AND EXISTS "$ENV{CUDACXX}")
    set(nvcc "$ENV{CUDACXX}")
  else()
    set(nvcc "${CHASQUI_NVCC}")
  endif()
  if(NOT nvcc)
    message(FATAL_ERROR
      "A CUDA build needs NVIDIA's compiler, and there is no nvcc on the PATH, in $CUDA_PATH/bin, /usr/local/cuda/bin or "
      "/opt/cuda/bin. Install the CUDA toolkit (12 or 13; no driver is needed to build), or name the compiler with "
      "CUDACXX=/path/to/nvcc. The build for the CPU is `make`. See docs/cuda.md.")
  endif()
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE said RESULT_VARIABLE failed ERROR_QUIET)
  if(failed OR NOT said MATCHES "release ([0-9]+)\\.([0-9]+), V([0-9.]+)")
    message(FATAL_ERROR "${nvcc} --version says nothing that looks like a CUDA compiler: is it one?")
  endif()
  set(version "${CMAKE_MATCH_3}")
  if(CMAKE_MATCH_1 LESS 12)
    message(FATAL_ERROR "${nvcc} is of CUDA ${version}; CUDA 12 or newer is needed.")
  endif()

  set(architectures "${CHASQUI_CUDA_ARCHITECTURES}")
  if(NOT architectures)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE found
                    RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${found}")
    if(found AND NOT failed)
      string(REPLACE "." "" architectures "${found}")
      list(REMOVE_DUPLICATES architectures)
      list(TRANSFORM architectures APPEND "-real")
    endif()
  endif()

  # Without a driver's library, or the toolkit's stand-in for it, virtual memory of GPUs cannot be linked.
  execute_process(COMMAND ${nvcc} -v __none__ OUTPUT_VARIABLE said ERROR_VARIABLE said)   # it may be a script elsewhere
  if(said MATCHES "TOP=([^\r\n]+)")
    get_filename_component(root "${CMAKE_MATCH_1}" REALPATH)
  else()
    get_filename_component(root "${nvcc}" REALPATH)
    get_filename_component(root "${root}" DIRECTORY)
    get_filename_component(root "${root}" DIRECTORY)
  endif()
  set(CUDAToolkit_ROOT "${root}" CACHE PATH "" FORCE)
  find_library(CHASQUI_CUDA_DRIVER cuda HINTS ${root}/lib64/stubs ${root}/lib/stubs ${root}/lib64)
  set(no_vmm OFF)
  if(NOT CHASQUI_CUDA_DRIVER)
    set(no_vmm ON)
  endif()

  set(ggml GGML_CUDA=ON GGML_CUDA_NCCL=OFF GGML_CUDA_NO_VMM=${no_vmm})
  set(${options} "${ggml}" PARENT_SCOPE)
  set(passed -DCMAKE_CUDA_COMPILER=${nvcc} -DCUDAToolkit_ROOT=${root})
  if(architectures)
    string(REPLACE ";" "\\;" escaped "${architectures}")
    list(APPEND passed "-DCMAKE_CUDA_ARCHITECTURES=${escaped}")
    message(STATUS "CUDA ${version} for ${architectures}")
  else()
    message(STATUS "CUDA ${version} for all GPUs, since there is none here; name some with CHASQUI_CUDA_ARCHITECTURES=90")
  endif()
  set(${arguments} "${passed}" PARENT_SCOPE)
  set(${key} "CUDA ${version} ${architectures}" PARENT_SCOPE)
endfunction()

# ggml's archive out of libllama's build folder into its prefix.
function(chasqui_collect_cuda work prefix)
  if(NOT CHASQUI_CUDA)
    return()
  endif()
  file(GLOB_RECURSE archive ${work}/libggml-cuda.a)
  if(NOT archive)
    message(FATAL_ERROR "libllama was built without libggml-cuda.a; its build folder is ${work}")
  endif()
  file(COPY ${archive} DESTINATION ${prefix}/lib)
endfunction()

# What to link beside the archive: the runtime into the binary, cuBLAS and the driver's library from where it runs.
function(chasqui_cuda_links out)
  set(${out} "" PARENT_SCOPE)
  if(NOT CHASQUI_CUDA)
    return()
  endif()
  find_package(CUDAToolkit 12 REQUIRED)
  set(links CUDA::cudart_static CUDA::cublas)
  if(CHASQUI_CUDA_DRIVER)
    list(APPEND links ${CHASQUI_CUDA_DRIVER})
  endif()
  set(${out} "${links}" PARENT_SCOPE)
endfunction()
