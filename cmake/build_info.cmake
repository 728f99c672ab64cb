# build_info.hpp: what a result file says of the build that made it. The commit is looked up at
# every build, the header written only when it changes.
set(build_info_dir ${CMAKE_CURRENT_BINARY_DIR}/build_info)
string(TOUPPER "${CMAKE_BUILD_TYPE}" upper_type)
set(architectures ${CMAKE_CUDA_ARCHITECTURES})
if(architectures STREQUAL native)
  set(architectures ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
endif()
list(JOIN architectures "," architectures)
list(JOIN LADDERS_CUDA_OPTIONS " " options)
string(STRIP "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${upper_type}} ${options} -std=c++20" cuda_flags)
string(APPEND cuda_flags " architectures ${architectures}")
add_custom_target(write_build_info
  COMMAND ${CMAKE_COMMAND}
    -DOUT=${build_info_dir}/build_info.hpp
    -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}
    -DCOMMIT=${LADDERS_COMMIT}
    "-DCOMPILER=nvcc ${CMAKE_CUDA_COMPILER_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "-DFLAGS=${cuda_flags}"
    -DTYPE=${CMAKE_BUILD_TYPE}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_build_info.cmake
  BYPRODUCTS ${build_info_dir}/build_info.hpp
  VERBATIM)
add_library(build_info INTERFACE)
target_include_directories(build_info INTERFACE ${build_info_dir})
add_dependencies(build_info write_build_info)
