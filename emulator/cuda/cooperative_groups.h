// SPDX-License-Identifier: MIT
//
// Cooperative groups on the emulator: blocks, tiles and other lanes of a warp, clusters, grids.
#pragma once

#include "emulator/language.hpp"

namespace emulator {
unsigned cluster_rank() __attribute__((const));
unsigned cluster_size() __attribute__((const));
/// The same place in the shared memory of the cluster's block `rank`.
void* map_shared(void* address, unsigned rank);
/// Those of `bits` that are in `mask`, moved together.
EMULATOR_SUM(unsigned, extract_bits, __popc(mask), 1, (bits >> __fns(mask, 0, i + 1) & 1) << i,
             unsigned bits, unsigned mask)
}  // namespace emulator

namespace cooperative_groups {

#define EMULATOR_GROUP(T, RANK, THREADS)                     \
  EMULATOR_INLINE static T thread_rank() { return RANK; }    \
  EMULATOR_INLINE static T num_threads() { return THREADS; } \
  EMULATOR_INLINE static T size() { return num_threads(); }

class thread_block {
 public:
  EMULATOR_GROUP(unsigned, threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z),
                 blockDim.x* blockDim.y* blockDim.z)
  EMULATOR_INLINE static void sync() { __syncthreads(); }
  EMULATOR_INLINE static dim3 group_index() { return blockIdx; }
  EMULATOR_INLINE static dim3 thread_index() { return threadIdx; }
  EMULATOR_INLINE static dim3 dim_threads() { return blockDim; }
  EMULATOR_INLINE static dim3 group_dim() { return blockDim; }
};
EMULATOR_INLINE thread_block this_thread_block() { return {}; }

/// Lanes of a warp, or 0 for the block: what the other groups of a block convert to.
class thread_group {
 public:
  EMULATOR_INLINE explicit thread_group(unsigned lanes) : lanes_(lanes) {}
  EMULATOR_INLINE thread_group(thread_block) : lanes_(0) {}
  EMULATOR_INLINE unsigned thread_rank() const {
    if (lanes_ == 0) return thread_block::thread_rank();
    return __popc(lanes_ & ((1u << emulator::lane_index()) - 1));
  }
  EMULATOR_INLINE unsigned num_threads() const {
    return lanes_ == 0 ? thread_block::num_threads() : __popc(lanes_);
  }
  EMULATOR_INLINE unsigned size() const { return num_threads(); }
  EMULATOR_INLINE void sync() const { lanes_ == 0 ? __syncthreads() : __syncwarp(lanes_); }

 protected:
  unsigned lanes_;
};

/// The lanes that called coalesced_threads() together, in their order.
class coalesced_group : public thread_group {
 public:
  using thread_group::thread_group;
  template <class T>
  EMULATOR_INLINE T shfl(T value, int rank) const {
    return __shfl_sync(lanes_, value, __fns(lanes_, 0, rank + 1));
  }
  template <class T>
  EMULATOR_INLINE T shfl_up(T value, unsigned ranks) const {
    return shfl(value, thread_rank() - (ranks <= thread_rank() ? ranks : 0));
  }
  template <class T>
  EMULATOR_INLINE T shfl_down(T value, unsigned ranks) const {
    return shfl(value, thread_rank() + (ranks < size() - thread_rank() ? ranks : 0));
  }
  template <class T>
  EMULATOR_INLINE unsigned match_any(T value) const {
    return emulator::extract_bits(__match_any_sync(lanes_, value), lanes_);
  }
  EMULATOR_INLINE unsigned ballot(int predicate) const {
    return emulator::extract_bits(__ballot_sync(lanes_, predicate), lanes_);
  }
  EMULATOR_INLINE int any(int predicate) const { return __any_sync(lanes_, predicate); }
  EMULATOR_INLINE int all(int predicate) const { return __all_sync(lanes_, predicate); }
};
EMULATOR_INLINE coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned Size, class Parent = thread_block>
class thread_block_tile {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile is 1, 2, 4 ... 32 lanes");

 public:
  EMULATOR_GROUP(constexpr unsigned, emulator::lane_index() % Size, Size)
  EMULATOR_INLINE static unsigned meta_group_rank() { return Parent::thread_rank() / Size; }
  EMULATOR_INLINE static unsigned meta_group_size() {
    return (Parent::num_threads() + Size - 1) / Size;
  }
  EMULATOR_INLINE static void sync() { __syncwarp(mask()); }
#define EMULATOR_TILE_SHUFFLE(NAME, A)                     \
  template <class T>                                       \
  EMULATOR_INLINE static T NAME(T value, A argument) {     \
    return __##NAME##_sync(mask(), value, argument, Size); \
  }
  EMULATOR_TILE_SHUFFLE(shfl, int)
  EMULATOR_TILE_SHUFFLE(shfl_up, unsigned)
  EMULATOR_TILE_SHUFFLE(shfl_down, unsigned)
  EMULATOR_TILE_SHUFFLE(shfl_xor, int)
  EMULATOR_INLINE static unsigned ballot(int predicate) {
    return __ballot_sync(mask(), predicate) >> (emulator::lane_index() / Size * Size);
  }
  template <class T>
  EMULATOR_INLINE static unsigned match_any(T value) {
    return __match_any_sync(mask(), value) >> (emulator::lane_index() / Size * Size);
  }
  EMULATOR_INLINE static int any(int predicate) { return __any_sync(mask(), predicate); }
  EMULATOR_INLINE static int all(int predicate) { return __all_sync(mask(), predicate); }
  EMULATOR_INLINE operator thread_group() const { return thread_group(mask()); }

 private:
  EMULATOR_INLINE static unsigned mask() {
    return (0xFFFFFFFFu >> (32 - Size)) << (emulator::lane_index() / Size * Size);
  }
};
template <unsigned Size, class Parent>
EMULATOR_INLINE thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}
/// Tiles of a size known when the kernel runs: 1, 2, 4 ... 32 lanes.
EMULATOR_INLINE thread_group tiled_partition(const thread_block&, unsigned size) {
  return thread_group(0xFFFFFFFFu >> (32 - size) << (emulator::lane_index() / size * size));
}

class grid_group {
 public:
  EMULATOR_GROUP(unsigned long long,
                 block_rank() * thread_block::size() + thread_block::thread_rank(),
                 num_blocks() * thread_block::size())
  EMULATOR_INLINE static unsigned long long block_rank() {
    return blockIdx.x + gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
  }
  EMULATOR_INLINE static unsigned long long num_blocks() {
    return 1ull * gridDim.x * gridDim.y * gridDim.z;
  }
  EMULATOR_INLINE static dim3 block_index() { return blockIdx; }
  EMULATOR_INLINE static dim3 dim_blocks() { return gridDim; }
  EMULATOR_INLINE static dim3 group_dim() { return gridDim; }
  EMULATOR_INLINE static bool is_valid() { return emulator::is_cooperative(); }
  EMULATOR_INLINE static void sync() {
    using emulator::Strength;
    __syncthreads();
    emulator::check_grid_sync();
    if (thread_block::thread_rank() == 0) {
      const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
      const unsigned before = emulator::strong_add(&emulator::grid_arrivals, 1, Strength::both);
      const unsigned turn = before / blocks + 1;
      if (before % blocks == blocks - 1)
        emulator::strong_store(&emulator::grid_release, &turn, 4, Strength::release);
      emulator::wait_uncounted(&emulator::grid_release, turn);
      for (unsigned now = 0; now != turn;)
        emulator::strong_load(&emulator::grid_release, &now, 4, Strength::acquire);
    }
    __syncthreads();
  }
};
EMULATOR_INLINE grid_group this_grid() { return {}; }

class cluster_group {
 public:
  EMULATOR_INLINE static void sync() { emulator::cluster_barrier(); }
  EMULATOR_INLINE static unsigned block_rank() { return emulator::cluster_rank(); }
  EMULATOR_INLINE static unsigned num_blocks() { return emulator::cluster_size(); }
  EMULATOR_INLINE static dim3 dim_blocks() { return dim3(emulator::cluster_size()); }
  EMULATOR_GROUP(unsigned, block_rank() * thread_block::size() + thread_block::thread_rank(),
                 num_blocks() * thread_block::size())
  template <class T>
  EMULATOR_INLINE static T* map_shared_rank(T* address, unsigned rank) {
    return static_cast<T*>(emulator::map_shared(const_cast<std::remove_cv_t<T>*>(address), rank));
  }
};
EMULATOR_INLINE cluster_group this_cluster() { return {}; }

EMULATOR_INLINE void sync(const thread_group& group) { group.sync(); }
EMULATOR_INLINE void sync(const cluster_group&) { cluster_group::sync(); }
EMULATOR_INLINE void sync(const grid_group&) { grid_group::sync(); }
EMULATOR_INLINE auto thread_rank(const auto& group) { return group.thread_rank(); }
EMULATOR_INLINE auto group_size(const auto& group) { return group.size(); }

}  // namespace cooperative_groups
