// SPDX-License-Identifier: MIT
//
// Functions of the C and C++ libraries that mean something of their own in kernels: an object of
// its own, which programs take that are linked with --wrap.
//
// memcpy, memmove and memset in kernels. Compilers turn copies of aggregates into calls of these
// too, which only newer ones (clang 15) instrument. Programs whose accesses are seen are linked
// with --wrap, so that all calls in them, the host's included, come here.
#include "block.hpp"

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

// malloc and new in kernels give global memory, a buffer each.
#define ALLOCATE(NAME)                                      \
  void* __real_##NAME(std::size_t bytes);                   \
  void* __wrap_##NAME(std::size_t bytes) {                  \
    if (!current_lane) return __real_##NAME(bytes);         \
    const OutsideLane outside;                              \
    return GlobalMemory::get().allocate(bytes ? bytes : 1); \
  }
#define FREE(NAME, PARAMETERS, ARGUMENTS)              \
  void __real_##NAME PARAMETERS;                       \
  void __wrap_##NAME PARAMETERS {                      \
    if (!current_lane) return __real_##NAME ARGUMENTS; \
    const OutsideLane outside;                         \
    if (data) current_block->free_at_end(data);        \
  }
ALLOCATE(malloc)
ALLOCATE(_Znwm)
ALLOCATE(_Znam)
FREE(free, (void* data), (data))
FREE(_ZdlPv, (void* data), (data))
FREE(_ZdaPv, (void* data), (data))
FREE(_ZdlPvm, (void* data, std::size_t bytes), (data, bytes))
FREE(_ZdaPvm, (void* data, std::size_t bytes), (data, bytes))
}
