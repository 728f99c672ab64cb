# The tests of a program as so many tests of CTest's, which run side by side. Were each a process of
# its own, most would spend their time on looking up the program's symbols.
function(add_gtest_shards program prefix count)
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    add_test(NAME ${prefix}.${index} COMMAND ${program} --gtest_brief=1)
    set_tests_properties(${prefix}.${index} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
