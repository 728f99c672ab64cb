# Does what docs/emulator.md tells newcomers to do, with its own text: the program and the
# CMakeLists.txt of "A kernel of your own" must build and print what stands there; and the program
# must say what is wrong with a kernel that is.
cmake_minimum_required(VERSION 3.24)

file(READ ${ROOT}/docs/emulator.md page)
string(FIND "${page}" "\n## A kernel of your own\n" start)
string(SUBSTRING "${page}" ${start} -1 page)

# The section's first block of code in that language.
function(take_block language out)
  string(FIND "${page}" "\n```${language}\n" start)
  if(start EQUAL -1)
    message(FATAL_ERROR "docs/emulator.md shows no ${language}")
  endif()
  string(LENGTH "\n```${language}\n" fence)
  math(EXPR start "${start} + ${fence}")
  string(SUBSTRING "${page}" ${start} -1 rest)
  string(FIND "${rest}" "\n```\n" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  set(${out} "${block}\n" PARENT_SCOPE)
endfunction()

take_block(cpp program)
take_block(cmake project)
take_block(text expected)
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
file(WRITE ${SCRATCH}/mine.cpp "${program}")
file(WRITE ${SCRATCH}/CMakeLists.txt "${project}")
file(CREATE_LINK ${ROOT} ${SCRATCH}/cuda-ladders SYMBOLIC)

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${SCRATCH}
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${said}")
  endif()
endfunction()
run(${CMAKE_COMMAND} -S . -B build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build build)
execute_process(COMMAND ${SCRATCH}/build/mine
  OUTPUT_VARIABLE printed RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "it ended with ${status} and printed\n${printed}instead of\n${expected}")
endif()

# The program with `right` replaced, and `first` done first, must end with 1 and that complaint.
function(expect_fault right wrong first complaint)
  string(REPLACE "${right}" "${wrong}" faulty "${program}")
  if(faulty STREQUAL program)
    message(FATAL_ERROR "the program has no ${right}")
  endif()
  string(REPLACE "int main() {\n" "int main() {\n  ${first}\n" faulty "${faulty}")
  file(WRITE ${SCRATCH}/mine.cpp "${faulty}")
  run(${CMAKE_COMMAND} --build build)
  execute_process(COMMAND ${SCRATCH}/build/mine
    OUTPUT_VARIABLE printed ERROR_VARIABLE said RESULT_VARIABLE status)
  if(NOT status EQUAL 1 OR NOT printed STREQUAL "" OR NOT said MATCHES "${complaint}")
    message(FATAL_ERROR "it ended with ${status}, printed\n${printed}and said\n${said}"
      "instead of\n${complaint}")
  endif()
endfunction()
set(who "mine.cpp:[0-9]+, block .0, 0, 0. thread .[0-9]+, [0-9]+, 0.\n$")
expect_fault("in[" "in[1 + " ""
  "^out-of-bounds global load.*kernel transpose.* at ${who}")
expect_fault("__syncthreads();" "" "emulator::options().check = true;"
  "^shared-memory race .* of tile .byte [0-9]+. with thread .*kernel transpose.* at ${who}")

# What is not emulated must not compile, and the compiler must name all of it.
function(expect_errors calls)
  string(REPLACE "__syncthreads();" "${calls};" faulty "${program}")
  file(WRITE ${SCRATCH}/mine.cpp "#include <cooperative_groups.h>\n${faulty}")
  execute_process(COMMAND ${CMAKE_COMMAND} --build build WORKING_DIRECTORY ${SCRATCH}
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
  foreach(complaint IN LISTS ARGN)
    if(status EQUAL 0 OR NOT said MATCHES "${complaint}")
      message(FATAL_ERROR
        "building it ended with ${status} and said\n${said}instead of\n${complaint}")
    endif()
  endforeach()
endfunction()
expect_errors("__nv_tanhf(1.0f); __vmaxs4(1, 2); cudaTextureObject_t image; tex2D<float>(image, 1, 2); cudaMemAdvise(tile, 4, cudaMemAdviseSetReadMostly, 0); cuInit(0)"
  "error: [^\n]*__nv_tanhf"
  "error: [^\n]*__vmaxs4[^\n]*not emulated: docs/emulator-cuda.md lists what is"
  "error: [^\n]*cudaTextureObject_t[^\n]*not emulated: docs/emulator-cuda.md lists what is"
  "error: [^\n]*tex2D[^\n]*not emulated: docs/emulator-cuda.md lists what is"
  "error: [^\n]*cudaMemAdviseSetReadMostly[^\n]*not emulated: docs/emulator-cuda.md lists what is"
  "error: [^\n]*cuInit[^\n]*not emulated: docs/emulator-cuda.md lists what is")
