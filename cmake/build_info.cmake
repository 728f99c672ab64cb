# build_info.hpp: what a result file says of the build that made it, one per program, and of its
# counters. This file defines the targets that write it at every build; as their script, it looks up
# the commit.
if(CMAKE_SCRIPT_MODE_FILE)
  set(dirty unknown)
  if(COMMIT STREQUAL "")
    execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
      OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND git -C ${SOURCE} status --porcelain -- kernels benchmarks cmake emulator CMakeLists.txt
      ":(glob)results/*/tuning.toml"
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(COMMIT STREQUAL "")
      set(COMMIT unknown)
    elseif(changes STREQUAL "")
      set(dirty false)
    else()
      set(dirty true)
    endif()
  endif()
  file(READ ${SOURCE}/scripts/ladder/model/counters.csv counters)
  file(GLOB files ${SOURCE}/results/*/tuning.toml)
  set(tunings "")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    file(RELATIVE_PATH name ${SOURCE} ${file})
    string(APPEND tunings "{\"${name}\", R\"toml(${text})toml\"}, ")
  endforeach()
  file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#pragma once
#include <utility>
#include <vector>
namespace ladders {
inline constexpr char kGitCommit[] = "@COMMIT@";
inline constexpr char kGitDirty[] = "@dirty@";
inline constexpr char kCompiler[] = R"(@COMPILER@)";
inline constexpr char kCudaFlags[] = R"(@FLAGS@)";
inline constexpr char kBuildType[] = "@TYPE@";
inline constexpr char kCounters[] = R"(@counters@)";
inline const std::vector<std::pair<const char*, const char*>> kTunings = {@tunings@};
}  // namespace ladders
]])
  return()
endif()

function(add_build_info name compiler flags)
  set(directory ${PROJECT_BINARY_DIR}/${name})
  add_custom_target(write_${name}
    COMMAND ${CMAKE_COMMAND} -DOUT=${directory}/build_info.hpp -DSOURCE=${PROJECT_SOURCE_DIR}
      -DCOMMIT=${LADDERS_COMMIT} "-DCOMPILER=${compiler}" "-DFLAGS=${flags}"
      -DTYPE=${CMAKE_BUILD_TYPE} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    BYPRODUCTS ${directory}/build_info.hpp
    COMMENT "Writing ${name}.hpp"
    VERBATIM)
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE ${directory})
  add_dependencies(${name} write_${name})
endfunction()

string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
set(host_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
if(LADDERS_CUDA)
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  if(architectures STREQUAL native)
    set(architectures ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  endif()
  string(REPLACE ";" "," architectures "${architectures}")
  string(REPLACE ";" " " options "${CMAKE_CUDA_FLAGS_${type}} ${LADDERS_CUDA_OPTIONS}")
  string(STRIP "${CMAKE_CUDA_FLAGS} ${options} -std=c++20 architectures ${architectures}" flags)
  add_build_info(build_info "nvcc ${CMAKE_CUDA_COMPILER_VERSION}, ${host_compiler}" "${flags}")
endif()
if(LADDERS_EMULATED)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} -std=c++20" flags)
  add_build_info(build_info_emulated "${host_compiler}" "${flags}")
endif()
