# Joins a small backend in two variants, as join.cmake does with ggml's, and asks a program which one answers:
#   cmake -DCC=cc -DCXX=c++ -DFOLDER=dir -P try_join.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
# The inline function has a copy in each variant, and one in the program.
file(WRITE ${FOLDER}/shared.h "template <class T> __attribute__((noinline)) T copied() { static thread_local T kept = VARIANT; return kept; }\n")
file(WRITE ${FOLDER}/backend.cpp "#include \"shared.h\"
extern \"C\" {
const char *ggml_of_the_program(void);
const char *ggml_called(void) { return VARIANT; }
const char *ggml_called_K(void) { return ggml_called(); }
const char *ggml_variant(void) { return ggml_called_K(); }
const char *ggml_copied(void) { return copied<const char *>(); }
const char *ggml_outside(void) { return ggml_of_the_program(); }
}\n")
file(WRITE ${FOLDER}/program.cpp "#include <cstdio>
#define VARIANT \"program\"
#include \"shared.h\"
extern \"C\" {
const char *ggml_of_the_program(void) { return VARIANT; }
const char *ggml_variant(void);
const char *ggml_copied(void);
const char *ggml_outside(void);
}
int main() { std::printf(\"%s %s %s %s\", ggml_variant(), ggml_copied(), ggml_outside(), copied<const char *>()); }\n")

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
set(plain "")
execute_process(COMMAND ${CXX} --version OUTPUT_VARIABLE said)
if(NOT said MATCHES "clang")
  set(plain -fno-gnu-unique)
endif()
foreach(variant v2 v3)
  run(${CXX} -O1 ${plain} -DVARIANT=\"${variant}\" -c backend.cpp -o ${variant}.backend.o)
  run(ar rcs ${variant}.a ${variant}.backend.o)
endforeach()
run(${CMAKE_COMMAND} -DVARIANTS=v2,v3 -DFOLDER=${FOLDER} -DCC=${CC} -DOUT=${FOLDER}/joined.a
    -P ${CMAKE_CURRENT_LIST_DIR}/join.cmake)
run(${CXX} -O1 program.cpp joined.a -o program)
execute_process(COMMAND nm --extern-only --defined-only joined.a WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE seen)
if(NOT seen MATCHES " T ggml_variant\n" OR seen MATCHES "__v|_Z|chosen")
  message(FATAL_ERROR "the archive shows more than the functions of the backend:\n${seen}")
endif()

function(expect wanted status said)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env CHASQUI_CPU_VARIANT=${wanted} ${FOLDER}/program
                  OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE rc)
  if(NOT rc EQUAL status OR NOT "${out}${err}" MATCHES "${said}")
    message(FATAL_ERROR "CHASQUI_CPU_VARIANT=${wanted}: ${rc}, ${out}${err}; expected were ${status} and ${said}")
  endif()
endfunction()
file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
expect(v2 0 "^v2 v2 program program$")
if(flags MATCHES " avx2 ")
  expect("" 0 "^v3 v3 program program$")
  expect(v3 0 "^v3 v3 program program$")
else()
  expect("" 0 "^v2 v2 program program$")
  expect(v3 2 "this processor lacks what it was compiled for; allowed here are v2\n$")
endif()
expect(v9 2 "CHASQUI_CPU_VARIANT=v9: there is no such variant; allowed here are v2")

# What would run on any processor is refused: a constructor.
file(APPEND ${FOLDER}/backend.cpp "int value(); int begun = value();\n")
run(${CXX} -O1 ${plain} -DVARIANT=\"v2\" -c backend.cpp -o v2.backend.o)
run(ar rcs v2.a v2.backend.o)
execute_process(
  COMMAND ${CMAKE_COMMAND} -DVARIANTS=v2,v3 -DFOLDER=${FOLDER} -DCC=${CC} -DOUT=${FOLDER}/joined.a
          -P ${CMAKE_CURRENT_LIST_DIR}/join.cmake
  ERROR_VARIABLE err RESULT_VARIABLE rc)
if(rc EQUAL 0 OR NOT err MATCHES "it has constructors")
  message(FATAL_ERROR "constructors of a variant are not refused: ${err}")
endif()
