// SPDX-License-Identifier: MIT
//
// Cooperative groups on the emulator: blocks, tiles of a warp, clusters.
#pragma once

#include "emulator/language.hpp"

namespace emulator {
unsigned cluster_rank() __attribute__((const));
unsigned cluster_size() __attribute__((const));
/// The same place in the shared memory of the cluster's block `rank`.
void* map_shared(void* address, unsigned rank);
}  // namespace emulator

namespace cooperative_groups {

class thread_block {
 public:
  EMULATOR_INLINE static void sync(EMULATOR_HERE) {
    emulator::block_barrier(emulator::Vote::none, 0, file, line);
  }
  EMULATOR_INLINE static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  EMULATOR_INLINE static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  EMULATOR_INLINE static unsigned size() { return num_threads(); }
  EMULATOR_INLINE static dim3 group_index() { return blockIdx; }
  EMULATOR_INLINE static dim3 thread_index() { return threadIdx; }
  EMULATOR_INLINE static dim3 dim_threads() { return blockDim; }
};
EMULATOR_INLINE thread_block this_thread_block() { return {}; }

template <unsigned Size, class Parent = void>
class thread_block_tile {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile is 1, 2, 4 ... 32 lanes");

 public:
  EMULATOR_INLINE static unsigned thread_rank() { return emulator::lane_index() % Size; }
  EMULATOR_INLINE static constexpr unsigned num_threads() { return Size; }
  EMULATOR_INLINE static constexpr unsigned size() { return Size; }
  EMULATOR_INLINE static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
  EMULATOR_INLINE static unsigned meta_group_size() {
    return (thread_block::num_threads() + Size - 1) / Size;
  }
  EMULATOR_INLINE static void sync() { __syncwarp(mask()); }
  template <class T>
  EMULATOR_INLINE static T shfl(T value, int lane) {
    return __shfl_sync(mask(), value, lane, Size);
  }
  template <class T>
  EMULATOR_INLINE static T shfl_up(T value, unsigned distance) {
    return __shfl_up_sync(mask(), value, distance, Size);
  }
  template <class T>
  EMULATOR_INLINE static T shfl_down(T value, unsigned distance) {
    return __shfl_down_sync(mask(), value, distance, Size);
  }
  template <class T>
  EMULATOR_INLINE static T shfl_xor(T value, unsigned lane_mask) {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lane_mask), Size);
  }
  EMULATOR_INLINE static unsigned ballot(int predicate) {
    return (__ballot_sync(mask(), predicate) & mask()) >> (emulator::lane_index() / Size * Size);
  }
  EMULATOR_INLINE static int any(int predicate) { return __any_sync(mask(), predicate); }
  EMULATOR_INLINE static int all(int predicate) { return __all_sync(mask(), predicate); }

 private:
  EMULATOR_INLINE static unsigned mask() {
    return (0xFFFFFFFFu >> (32 - Size)) << (emulator::lane_index() / Size * Size);
  }
};
template <unsigned Size>
EMULATOR_INLINE thread_block_tile<Size> tiled_partition(const thread_block&) {
  return {};
}

class cluster_group {
 public:
  EMULATOR_INLINE static void sync(EMULATOR_HERE) { emulator::cluster_barrier(file, line); }
  EMULATOR_INLINE static unsigned block_rank() { return emulator::cluster_rank(); }
  EMULATOR_INLINE static unsigned num_blocks() { return emulator::cluster_size(); }
  EMULATOR_INLINE static dim3 dim_blocks() { return dim3(emulator::cluster_size()); }
  EMULATOR_INLINE static unsigned thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  EMULATOR_INLINE static unsigned num_threads() {
    return num_blocks() * thread_block::num_threads();
  }
  template <class T>
  EMULATOR_INLINE static T* map_shared_rank(T* address, unsigned rank) {
    return static_cast<T*>(emulator::map_shared(const_cast<std::remove_cv_t<T>*>(address), rank));
  }
};
EMULATOR_INLINE cluster_group this_cluster() { return {}; }

EMULATOR_INLINE void sync(const thread_block&, EMULATOR_HERE) { thread_block::sync(file, line); }
EMULATOR_INLINE void sync(const cluster_group&, EMULATOR_HERE) { cluster_group::sync(file, line); }
template <unsigned Size, class Parent>
EMULATOR_INLINE void sync(const thread_block_tile<Size, Parent>&) {
  thread_block_tile<Size, Parent>::sync();
}

}  // namespace cooperative_groups
