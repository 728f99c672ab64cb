# Installed packages win; otherwise pinned releases are fetched.
include(FetchContent)
set(BENCHMARK_ENABLE_TESTING OFF CACHE INTERNAL "")
set(BENCHMARK_ENABLE_WERROR OFF CACHE INTERNAL "")
set(INSTALL_GTEST OFF CACHE INTERNAL "")
FetchContent_Declare(benchmark
  URL https://github.com/google/benchmark/archive/refs/tags/v1.9.4.tar.gz
  URL_HASH SHA256=b334658edd35efcf06a99d9be21e4e93e092bd5f95074c1673d5c8705d95c104
  DOWNLOAD_EXTRACT_TIMESTAMP ON
  FIND_PACKAGE_ARGS 1.7.1)
FetchContent_MakeAvailable(benchmark)

FetchContent_Declare(tomlplusplus
  URL https://github.com/marzer/tomlplusplus/archive/v3.0.1.tar.gz
  URL_HASH SHA256=e05b2814b891e223d7546aa2408d6cba0628164a84ac453205c7743cb667b9cf
  DOWNLOAD_EXTRACT_TIMESTAMP ON
  FIND_PACKAGE_ARGS)
FetchContent_MakeAvailable(tomlplusplus)
# Its headers alone, so that programs need no library of it where they run.
get_target_property(toml_include tomlplusplus::tomlplusplus INTERFACE_INCLUDE_DIRECTORIES)

if(LADDERS_TESTS)
  FetchContent_Declare(GTest
    URL https://github.com/google/googletest/archive/refs/tags/v1.17.0.tar.gz
    URL_HASH SHA256=65fab701d9829d38cb77c14acdc431d2108bfdbf8979e40eb8ae567edf10b27c
    DOWNLOAD_EXTRACT_TIMESTAMP ON
    FIND_PACKAGE_ARGS 1.12)
  FetchContent_MakeAvailable(GTest)
endif()
