// SPDX-License-Identifier: MIT
//
// memcpy, memmove and memset in kernels. Compilers turn copies of aggregates into calls of these
// too, which only newer ones (clang 15) instrument. Programs whose accesses are seen are linked
// with --wrap, so that all calls in them, the host's included, come here.
#include <cstddef>

#include "record.hpp"

using namespace emulator;

extern "C" {
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __real_memset(void* to, int value, std::size_t bytes);

#define COPY(NAME, FUNCTION)                                  \
  void* NAME(void* to, const void* from, std::size_t bytes) { \
    record_range(from, bytes, Event::load, RETURN_ADDRESS);   \
    record_range(to, bytes, Event::store, RETURN_ADDRESS);    \
    return __real_##FUNCTION(to, from, bytes);                \
  }
#define FILL(NAME)                                         \
  void* NAME(void* to, int value, std::size_t bytes) {     \
    record_range(to, bytes, Event::store, RETURN_ADDRESS); \
    return __real_memset(to, value, bytes);                \
  }
COPY(__wrap_memcpy, memcpy)
COPY(__tsan_memcpy, memcpy)
COPY(__wrap_memmove, memmove)
COPY(__tsan_memmove, memmove)
FILL(__wrap_memset)
FILL(__tsan_memset)
}
