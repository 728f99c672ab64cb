// SPDX-License-Identifier: MIT
//
// A CUDA event and a CUDA graph, each destroyed with its C++ object.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

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
      end_capture(stream);  // or the stream stays in capture mode
      cudaGetLastError();   // the caller has an error already
      throw;
    }
    check(end_capture(stream), "graph capture");
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph_.get(), nullptr, &nodes), "cudaGraphGetNodes");
    if (nodes == 0) throw std::runtime_error("graph capture: nothing was launched on the stream");
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph_.get(), 0), "cudaGraphInstantiate");
    executable_.reset(executable);
  }

  /// Enqueues the launches on the default stream. Throws CudaError.
  void replay() { check(cudaGraphLaunch(executable_.get(), nullptr), "cudaGraphLaunch"); }

 private:
  struct Destroy {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t executable) const { cudaGraphExecDestroy(executable); }
  };

  cudaError_t end_capture(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream, &graph);
    graph_.reset(graph);
    return status;
  }

  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy> graph_;
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> executable_;
};

}  // namespace ladders
