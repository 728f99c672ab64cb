# nvcc, if there is one. Without it LADDERS_CUDA is off from here on.
include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)  # it may have been installed since
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "no nvcc: only ladder_bench_emulated is built")
  set(LADDERS_CUDA OFF)
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # Not `native`, which fails without a GPU and leaves out what only 90a has.
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
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # unknown to CMake 3.25.1
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
# nvcc says that it ignores the `inline` of kernels (20050), by which tests can include them too.
# Loops of the host are aligned: where one crosses a line of the cache, it takes up to 1.5 times as long.
set(LADDERS_CUDA_OPTIONS --extended-lambda -lineinfo -diag-suppress=20050 -Xcompiler=-falign-loops=64)
find_package(CUDAToolkit 12.6 REQUIRED)

# Hardware counters need CUPTI's range profiler.
find_path(LADDERS_CUPTI_INCLUDE cupti_range_profiler.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_ROOT}/extras/CUPTI/include)
