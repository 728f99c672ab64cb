// SPDX-License-Identifier: MIT
//
// A CUDA event and a CUDA graph, each destroyed with its C++ object.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>

#include "measure/meter.hpp"
#include "model/cuda_check.hpp"

namespace ladders {

/// An event that records a time. Throws CudaError.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Several launches, which the host starts with one call.
class Graph {
 public:
  /// Captures `launches` calls of `launch` on `stream`, which may not be the default stream: CUDA
  /// cannot capture that one. Throws CudaError, and std::runtime_error if `launch` enqueues nothing
  /// on the stream that it is given.
  Graph(cudaStream_t stream, const Launch& launch, int launches) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph capture");
    try {
      for (int i = 0; i < launches; ++i) launch(stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);  // or the stream stays in capture mode
      cudaGraphDestroy(graph_);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph_), "graph capture");
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph_, nullptr, &nodes), "cudaGraphGetNodes");
    if (nodes == 0) throw std::runtime_error("graph capture: nothing was launched on the stream");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  ~Graph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }

  /// Enqueues the launches on the default stream. Throws CudaError.
  void replay() { check(cudaGraphLaunch(executable_, nullptr), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace ladders
