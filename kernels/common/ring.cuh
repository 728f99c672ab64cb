// SPDX-License-Identifier: MIT
//
// A ring of stages in shared memory, which some warps fill and others read.
#pragma once

#include "common/device.cuh"
#include "common/mbarrier.cuh"

namespace ladders {
/// The next stage of a ring, and the parity of the phase of its barrier to wait for.
template <int stages>
struct PipelineState {
  int stage = 0;
  uint32_t parity = 0;  ///< 1 for those who fill the ring: all stages are empty at first

  __device__ __forceinline__ void next() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

/// A stage is full once all producers and their bytes have arrived, and empty once all consumers
/// have.
template <int stages>
struct Ring {
  MBarrier *full, *empty;

  /// With addresses that are kept in registers: see in_register().
  static __device__ __forceinline__ Ring in_registers(MBarrier (&barriers)[2 * stages]) {
    MBarrier* first = in_register(barriers);
    return {first, first + stages};
  }

  /// By one thread, before a barrier of the block.
  __device__ __forceinline__ void initialize(int producers, int consumers) const {
    for (int s = 0; s < stages; ++s) {
      mbarrier_init(full[s], producers);
      mbarrier_init(empty[s], consumers);
    }
  }

  /// By all threads, where bulk copies fill the ring.
  __device__ __forceinline__ void start(int producers, int consumers) const {
    if (threadIdx.x == 0) {
      initialize(producers, consumers);
      fence_mbarrier_init();
    }
    __syncthreads();
  }
};

}  // namespace ladders
