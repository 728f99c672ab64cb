# Registers and shared memory of every kernel, for emulators, which have no ptxas to ask. A script:
#
#   cmake -DREPORTS="a.o.ptxas;b.o.ptxas" -DCSV=out.csv -P cmake/kernel_resources.cmake
#
# The table is of what ptxas reported of the kernels compiled here (see keep_ptxas_report.sh).
cmake_minimum_required(VERSION 3.24)

set(rows)
foreach(report IN LISTS REPORTS)
  file(STRINGS ${report} lines)
  foreach(line IN LISTS lines)
    if(line MATCHES "entry function '(.+)' for 'sm_([0-9]+)")
      set(symbol ${CMAKE_MATCH_1})
      set(architecture ${CMAKE_MATCH_2})
      unset(local)
    elseif(NOT DEFINED local AND line MATCHES "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores")
      set(local ${CMAKE_MATCH_1})  # later ones are of functions that the kernel calls
      set(spilled ${CMAKE_MATCH_2})
    elseif(symbol AND line MATCHES "Used ([0-9]+) registers")
      set(registers ${CMAKE_MATCH_1})
      set(shared 0)
      if(line MATCHES "([0-9]+) bytes smem")
        set(shared ${CMAKE_MATCH_1})
      endif()
      # Compilers name kernels that take lambdas or have internal linkage each in its own way.
      if(symbol MATCHES "^_ZN7ladders" AND NOT symbol MATCHES "^_ZN7ladders6detail|_GLOBAL__N__|^_ZN7ladders[0-9]*__nv_static|UlT?[a-z]*E")
        list(APPEND rows ${symbol},${architecture},${registers},${shared},${local},${spilled})
      endif()
      set(symbol)
    endif()
  endforeach()
endforeach()
list(SORT rows COMPARE NATURAL)
list(REMOVE_DUPLICATES rows)

execute_process(COMMAND git -C ${CMAKE_CURRENT_LIST_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(JOIN rows "\n" text)
file(WRITE ${CSV}
  "# nvcc ${NVCC_VERSION}, commit ${commit}\n"
  "symbol,architecture,registers,static_shared_bytes,local_bytes,spilled_bytes\n${text}\n")
