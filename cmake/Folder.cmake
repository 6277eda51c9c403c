# chasqui_folder(NAME [NESTED] [COLD] [LONG_TESTS] [FOLDER folder] LINKS other…): one folder of src/ as a static library
# chasqui_NAME from its *.cpp, and, beside it, the test program test_NAME from its *_test.cpp. main.cpp is left to the
# executable. The folder is called like the library unless FOLDER says where it is; NESTED: with the folders in it; COLD:
# no request waits for it, so it is compiled with -O1; LONG_TESTS: its tests compute much themselves, so they are, too.
set(CHASQUI_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND CHASQUI_WARNINGS -Wno-restrict)   # false alarms on std::string operator+ (GCC PR 105651)
endif()
if(CHASQUI_WERROR)
  list(APPEND CHASQUI_WARNINGS -Werror)
endif()

set(CHASQUI_SANITIZE_FLAGS "")
if(CHASQUI_SANITIZE)
  # Instrumented, g++ no longer sees that a std::variant, or a state of std::regex, is looked into only where it is set,
  # nor, where it inlines Asio's operator new of a coroutine's frame and not its delete, that the two belong together.
  # -g1: reports name lines, and it compiles in two thirds of the time that -g takes.
  set(CHASQUI_SANITIZE_FLAGS -fsanitize=${CHASQUI_SANITIZE} -fno-omit-frame-pointer -g1 -Wno-maybe-uninitialized
      -Wno-mismatched-new-delete)
  if(CHASQUI_SANITIZE MATCHES "thread")
    # g++ cannot model the fences of Asio's fenced_block; Asio without them is what TSan sees right.
    list(APPEND CHASQUI_SANITIZE_FLAGS -DBOOST_ASIO_DISABLE_FENCED_BLOCK -Wno-tsan)
  endif()
  add_link_options(-fsanitize=${CHASQUI_SANITIZE})
endif()

# For what is compiled soon. With -O1 g++ 12 sees copies beyond the ends of std::string (as above), and what it sees when
# it instruments.
set(CHASQUI_SOON $<$<CONFIG:Release>:-O1> -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-maybe-uninitialized -Wno-mismatched-new-delete)

# A batch of sources that reads its headers once takes a third of the compiler's time. Names in the anonymous namespaces
# of a folder therefore differ. Without it, each file has to include what it uses, and a change compiles one file.
option(CHASQUI_UNITY "Compile the sources of a folder in batches, and the header of gtest once" ON)
set(CHASQUI_BATCH_MOST 60)   # sources; the compiler takes up to 2 GB for a batch

function(chasqui_folder name)
  cmake_parse_arguments(arg "NESTED;COLD;LONG_TESTS" "FOLDER" "LINKS" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  set(patterns ${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/*.cpp)
  if(arg_NESTED)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/*/*.cpp)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$|/main\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  set(links "")
  foreach(link IN LISTS arg_LINKS)
    if(TARGET chasqui_${link})
      list(APPEND links chasqui_${link})
    else()
      list(APPEND links ${link})
    endif()
  endforeach()

  if(sources)
    add_library(chasqui_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(chasqui_${name} PRIVATE ${CHASQUI_WARNINGS} PUBLIC ${CHASQUI_SANITIZE_FLAGS})
    if(arg_COLD)
      target_compile_options(chasqui_${name} PRIVATE ${CHASQUI_SOON})
    endif()
    if(CHASQUI_UNITY)
      # Two batches, for two cores, where a folder is large: what they both need is then read twice, not five times.
      list(LENGTH sources count)
      math(EXPR batches "(${count} + ${CHASQUI_BATCH_MOST} - 1) / ${CHASQUI_BATCH_MOST}")
      math(EXPR batch "(${count} + ${batches} - 1) / ${batches}")
      set_target_properties(chasqui_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
      # In a batch a source is an included file, and a coroutine that keeps a lambda then looks like a type of a header.
      target_compile_options(chasqui_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
  else()
    add_library(chasqui_${name} INTERFACE)   # headers only
    set(scope INTERFACE)
  endif()
  target_compile_features(chasqui_${name} ${scope} cxx_std_20)
  target_include_directories(chasqui_${name} ${scope} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(chasqui_${name} ${scope} ${links})

  if(CHASQUI_TESTS AND tests)
    add_executable(test_${name} ${tests})
    # Most tests compile for longer than they run: half of that would be optimising them.
    target_compile_options(test_${name} PRIVATE ${CHASQUI_WARNINGS})
    if(arg_LONG_TESTS)
      target_compile_options(test_${name} PRIVATE ${CHASQUI_SOON})
    else()
      target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    endif()
    if(CHASQUI_UNITY)
      target_precompile_headers(test_${name} PRIVATE <gtest/gtest.h>)
      list(LENGTH tests count)
      math(EXPR batches "(${count} + 15) / 16")
      math(EXPR batch "(${count} + ${batches} - 1) / ${batches}")
      set_target_properties(test_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
      target_compile_options(test_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
    target_link_libraries(test_${name} PRIVATE chasqui_${name} GTest::gtest GTest::gtest_main)
    target_compile_definitions(test_${name} PRIVATE
      CHASQUI_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CHASQUI_BINARY_DIR="${PROJECT_BINARY_DIR}")
    add_test(NAME unit.${name} COMMAND test_${name})
  endif()
endfunction()
