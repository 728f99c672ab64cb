# Registers and shared memory of every kernel, from ptxas' report. A script:
#
#   cmake -DNVCC=nvcc "-DARCHITECTURES=75;90a" -DCSV=results/kernel_resources.csv
#         -P cmake/kernel_resources.cmake
#
# Rows of other architectures are taken from the committed table; without NVCC there are no others.
# With HEADER instead of CSV the rows are written as initialisers, for emulator/src/resources.cpp:
# those of SOURCE, a file, with what it includes in DEPFILE, or without one those of the table.
# HOST_COMPILER is nvcc's, where it is not the default one.
#
# A table that was made whole has a hash of the sources and of itself. Where it is right, of this
# nvcc and of these ARCHITECTURES, SOURCE is not compiled: its rows are in the table. With CHECK, the
# name of a table, the script only tells whether it is right.
#
# Kernels are named as a host compiler mangles them, which holds for those in anonymous namespaces,
# not for static functions. Two files with kernels of one name are refused where all are compiled.
cmake_minimum_required(VERSION 3.24)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
list(TRANSFORM ARCHITECTURES REPLACE "-(real|virtual)$" "")
list(TRANSFORM ARCHITECTURES REPLACE "[af]$" "" OUTPUT_VARIABLE numbers)
set(comment)
set(rows)
set(sources)

# Kernels, and what they include.
file(GLOB found LIST_DIRECTORIES false ${root}/kernels/*)
set(hashed ${CMAKE_CURRENT_LIST_FILE})
while(found)
  list(APPEND hashed ${found})
  set(included)
  foreach(file IN LISTS found)
    file(STRINGS ${file} lines REGEX "^#include \"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "${root}/benchmarks/\\1")
    list(APPEND included ${lines})
  endforeach()
  set(found)
  foreach(file IN LISTS included)
    if(EXISTS ${file} AND NOT file IN_LIST hashed AND NOT file IN_LIST found)
      list(APPEND found ${file})
    endif()
  endforeach()
endwhile()
list(SORT hashed)
foreach(file IN LISTS hashed)
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
set(table ${root}/results/kernel_resources.csv)
if(CHECK)
  set(table ${CHECK})
endif()
set(right FALSE)
if(EXISTS ${table})
  file(READ ${table} text)
  string(REGEX REPLACE "\n# hash ([0-9a-f]+)\n" "\n" text "${text}")
  set(said "${CMAKE_MATCH_1}")
  string(SHA256 hash "${hashes}${text}")
  if(hash STREQUAL said)
    set(right TRUE)
  endif()
endif()
if(CHECK)
  if(NOT right)
    message(FATAL_ERROR "${CHECK} is of other sources")
  endif()
  return()
endif()

if(NOT SOURCE AND EXISTS ${table})
  file(STRINGS ${table} lines)
  foreach(line IN LISTS lines)
    if(line MATCHES "^[^,]+,([0-9]+)," AND NOT CMAKE_MATCH_1 IN_LIST numbers)
      list(APPEND rows ${line})
    endif()
  endforeach()
  if(rows)
    list(FILTER lines INCLUDE REGEX "^# nvcc")
    list(JOIN lines "\n" comment)
    string(APPEND comment "\n")
  endif()
endif()

if(NVCC)
  execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "V([0-9.]+)" version "${version}")
  set(version ${CMAKE_MATCH_1})
  list(JOIN ARCHITECTURES " " text)
  if(NOT comment)
    set(whole TRUE)
  endif()
  string(PREPEND comment "# nvcc ${version}: ${text}\n")
  # What generates code as in a release build.
  set(flags -std=c++20 --extended-lambda -O3 -DNDEBUG -I${root}/benchmarks -I${root}/kernels)
  if(HOST_COMPILER)
    list(APPEND flags -ccbin ${HOST_COMPILER})
  endif()
  list(TRANSFORM ARCHITECTURES REPLACE "(.+)" "-gencode=arch=compute_\\1,code=sm_\\1"
    OUTPUT_VARIABLE targets)
  set(sources ${SOURCE})
  if(NOT SOURCE)
    file(GLOB sources ${root}/kernels/*.cu)
  endif()
  set(depend)
  if(DEPFILE)
    list(APPEND flags -MF ${DEPFILE} -MT ${HEADER})
    set(depend -MD)
  endif()
  set(scratch ${CSV}${HEADER}.fatbin)
  if(SOURCE AND right)
    file(STRINGS ${table} line LIMIT_COUNT 1)
    string(REGEX MATCHALL "[^ ]+" words "${line}")  # "# nvcc 13.0.88: 75 80"
    set(missing ${version}: ${ARCHITECTURES})
    list(REMOVE_ITEM missing ${words})
    if(NOT missing)
      execute_process(COMMAND ${NVCC} ${flags} ${targets} -M ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
      file(WRITE ${HEADER} "")
      return()
    endif()
  endif()
endif()

foreach(source IN LISTS sources)
  # nvcc keeps the reports of compilations that run side by side apart.
  execute_process(
    COMMAND ${NVCC} ${flags} ${targets} --threads 0 -fatbin -Xptxas -v -o ${scratch} ${depend}
            ${source}
    OUTPUT_VARIABLE report ERROR_VARIABLE report RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${source}:\n${report}")
  endif()
  # Up to the constant memory, whose brackets CMake would take for a list's.
  string(REGEX MATCHALL
    "entry function '[^']+' for 'sm_[0-9]+|[0-9]+ bytes stack[^\n]*|Used [0-9]+ registers[^[\n]*"
    report "${report}")
  set(symbol)
  foreach(line IN LISTS report)
    if(line MATCHES "entry function '(.+)' for 'sm_(.+)")
      set(symbol ${CMAKE_MATCH_1})
      set(architecture ${CMAKE_MATCH_2})
      # Host compilers call every anonymous namespace the same, nvcc names it for the file: after
      # the length, _GLOBAL__N__3347dc97_12_transpose_cu_aea5329f.
      while(symbol MATCHES "^(.*[^0-9])([0-9]+)(_GLOBAL__N__.*)$")
        string(SUBSTRING ${CMAKE_MATCH_3} ${CMAKE_MATCH_2} -1 rest)
        set(symbol ${CMAKE_MATCH_1}12_GLOBAL__N_1${rest})
      endwhile()
      unset(local)
    elseif(line MATCHES "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores")
      if(NOT DEFINED local)  # later ones are of functions that the kernel calls
        set(local ${CMAKE_MATCH_1})
        set(spilled ${CMAKE_MATCH_2})
      endif()
    elseif(symbol)
      string(REGEX REPLACE "Used ([0-9]+) .*" "\\1" registers "${line}")
      set(shared 0)
      if(line MATCHES "([0-9]+) bytes smem")
        set(shared ${CMAKE_MATCH_1})
      endif()
      # The harness's own kernels take lambdas, which host compilers number in their own ways.
      if(NOT symbol MATCHES "^_ZN7ladders6detail")
        if(DEFINED seen_${symbol} AND NOT seen_${symbol} STREQUAL source)
          message(FATAL_ERROR
            "${symbol} is a kernel of ${seen_${symbol}} and of ${source}: rename one of them")
        endif()
        set(seen_${symbol} ${source})
        list(APPEND rows ${symbol},${architecture},${registers},${shared},${local},${spilled})
      endif()
      set(symbol)
    endif()
  endforeach()
endforeach()

if(NVCC)
  file(REMOVE ${scratch})
endif()
list(SORT rows COMPARE NATURAL)
if(CSV)
  if(NOT rows)
    message(FATAL_ERROR "no kernels found")
  endif()
  list(JOIN rows "\n" text)
  string(PREPEND text
    "symbol,architecture,registers,static_shared_bytes,local_bytes,spilled_bytes\n")
  if(whole)
    string(SHA256 hash "${hashes}${comment}${text}\n")
    string(APPEND comment "# hash ${hash}\n")
  endif()
  file(WRITE ${CSV} "${comment}${text}\n")
endif()
if(HEADER)
  list(TRANSFORM rows REPLACE "([^,]+),([^,]+),(.+)" "{\"\\1\", \\2, {\\3}},\n")
  list(JOIN rows "" text)
  file(WRITE ${HEADER} "${text}")
endif()
