# nvcc, if there is one. Without it LADDERS_CUDA is off from here on.
include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)  # one may have been installed since it was not found
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "no nvcc: only ladder_bench_emulated is built")
  set(LADDERS_CUDA OFF)
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # The GPUs that are here, or Hopper where there are none. Not `native`, which fails without one and
  # leaves out what only Hopper has.
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE status)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]" gpus "${gpus}")
  if(NOT status EQUAL 0 OR NOT gpus)
    set(gpus 9.0)
  endif()
  list(TRANSFORM gpus REPLACE "\\." "")
  list(TRANSFORM gpus REPLACE "^90$" 90a)
  list(REMOVE_DUPLICATES gpus)
  set(CMAKE_CUDA_ARCHITECTURES ${gpus})
endif()
enable_language(CUDA)

set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1, Debian 12's, has not heard of it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(LADDERS_CUDA_OPTIONS --extended-lambda -lineinfo)
find_package(CUDAToolkit 12.6 REQUIRED)

# The range profiler that reads hardware counters; without it they are not there to be read.
find_path(LADDERS_CUPTI_INCLUDE cupti_range_profiler.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_ROOT}/extras/CUPTI/include)
