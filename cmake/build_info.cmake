# build_info.hpp: what a result file says of the build that made it. The commit is looked up at
# every build, the header written only when it changes. One for each of the two programs, whose
# compilers differ.
function(add_build_info name compiler flags)
  set(directory ${PROJECT_BINARY_DIR}/${name})
  add_custom_target(write_${name}
    COMMAND ${CMAKE_COMMAND}
      -DOUT=${directory}/build_info.hpp
      -DSOURCE=${PROJECT_SOURCE_DIR}
      -DCOMMIT=${LADDERS_COMMIT}
      "-DCOMPILER=${compiler}"
      "-DFLAGS=${flags}"
      -DTYPE=${CMAKE_BUILD_TYPE}
      -P ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake
    BYPRODUCTS ${directory}/build_info.hpp
    VERBATIM)
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE ${directory})
  add_dependencies(${name} write_${name})
endfunction()

string(TOUPPER "${CMAKE_BUILD_TYPE}" upper_type)
set(host_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
if(LADDERS_CUDA)
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  if(architectures STREQUAL native)
    set(architectures ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  endif()
  list(JOIN architectures "," architectures)
  list(JOIN LADDERS_CUDA_OPTIONS " " options)
  set(flags "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${upper_type}} ${options} -std=c++20")
  string(STRIP "${flags} architectures ${architectures}" flags)
  add_build_info(build_info "nvcc ${CMAKE_CUDA_COMPILER_VERSION}, ${host_compiler}" "${flags}")
endif()
if(LADDERS_EMULATED)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${upper_type}} -std=c++20" flags)
  add_build_info(build_info_emulated "${host_compiler}" "${flags}")
endif()
