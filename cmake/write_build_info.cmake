set(dirty unknown)
if(COMMIT STREQUAL "")
  set(COMMIT unknown)
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(COMMIT ${head})
    execute_process(COMMAND git -C ${SOURCE} status --porcelain -- kernels benchmarks cmake CMakeLists.txt
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes STREQUAL "")
      set(dirty false)
    else()
      set(dirty true)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#pragma once
namespace ladders {
inline constexpr char kGitCommit[] = "@COMMIT@";
inline constexpr char kGitDirty[] = "@dirty@";
inline constexpr char kCompiler[] = R"(@COMPILER@)";
inline constexpr char kCudaFlags[] = R"(@FLAGS@)";
inline constexpr char kBuildType[] = "@TYPE@";
}  // namespace ladders
]])
