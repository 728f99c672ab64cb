// SPDX-License-Identifier: MIT
//
// What CUDA programs are likely to use and the emulator lacks: the compiler's error points to the
// list of what there is. Names that are not here do not compile either.
#pragma once

#include "emulator/runtime_api.hpp"

#define EMULATOR_LACKING \
  __attribute__((unavailable("not emulated: docs/emulator.md lists what is")))
#define EMULATOR_LACKS_TYPE(NAME) \
  typedef struct {                \
  } NAME EMULATOR_LACKING;
// A function of the program's own by this name is taken instead.
#define EMULATOR_LACKS(NAME) \
  template <class...>        \
  EMULATOR_LACKING cudaError_t NAME(...);

// clang-format off: a table
EMULATOR_LACKS_TYPE(cudaGraph_t) EMULATOR_LACKS_TYPE(cudaGraphExec_t)
EMULATOR_LACKS_TYPE(cudaGraphNode_t) EMULATOR_LACKS_TYPE(cudaMemPool_t)
EMULATOR_LACKS_TYPE(cudaArray_t) EMULATOR_LACKS_TYPE(cudaTextureObject_t)
EMULATOR_LACKS_TYPE(cudaSurfaceObject_t) EMULATOR_LACKS_TYPE(cudaResourceDesc)
EMULATOR_LACKS_TYPE(cudaTextureDesc) EMULATOR_LACKS_TYPE(cudaChannelFormatDesc)
EMULATOR_LACKS_TYPE(cudaPointerAttributes) EMULATOR_LACKS_TYPE(cudaIpcMemHandle_t)
EMULATOR_LACKS_TYPE(cudaExtent) EMULATOR_LACKS_TYPE(cudaPitchedPtr)
EMULATOR_LACKS_TYPE(__half) EMULATOR_LACKS_TYPE(__half2) EMULATOR_LACKS_TYPE(__nv_bfloat16)
// graphs, pools, several devices
EMULATOR_LACKS(cudaGraphCreate) EMULATOR_LACKS(cudaGraphInstantiate) EMULATOR_LACKS(cudaGraphLaunch)
EMULATOR_LACKS(cudaGraphAddKernelNode) EMULATOR_LACKS(cudaGraphExecDestroy)
EMULATOR_LACKS(cudaGraphDestroy) EMULATOR_LACKS(cudaStreamBeginCapture)
EMULATOR_LACKS(cudaStreamEndCapture) EMULATOR_LACKS(cudaMemPoolCreate)
EMULATOR_LACKS(cudaMallocFromPoolAsync) EMULATOR_LACKS(cudaDeviceCanAccessPeer)
EMULATOR_LACKS(cudaDeviceEnablePeerAccess) EMULATOR_LACKS(cudaMemcpyPeer)
EMULATOR_LACKS(cudaMemcpyPeerAsync) EMULATOR_LACKS(cudaIpcGetMemHandle)
EMULATOR_LACKS(cudaIpcOpenMemHandle) EMULATOR_LACKS(cudaChooseDevice)
// memory that the host registers or advises on; limits; attributes
EMULATOR_LACKS(cudaHostRegister) EMULATOR_LACKS(cudaHostUnregister) EMULATOR_LACKS(cudaMemAdvise)
EMULATOR_LACKS(cudaStreamAttachMemAsync) EMULATOR_LACKS(cudaPointerGetAttributes)
EMULATOR_LACKS(cudaDeviceSetLimit) EMULATOR_LACKS(cudaDeviceGetLimit)
EMULATOR_LACKS(cudaDeviceSetSharedMemConfig) EMULATOR_LACKS(cudaLaunchCooperativeKernel)
// arrays, textures, surfaces
EMULATOR_LACKS(cudaMalloc3D) EMULATOR_LACKS(cudaMallocArray) EMULATOR_LACKS(cudaMalloc3DArray)
EMULATOR_LACKS(cudaFreeArray) EMULATOR_LACKS(cudaMemcpy3D) EMULATOR_LACKS(cudaMemcpyToArray)
EMULATOR_LACKS(cudaMemcpy2DToArray) EMULATOR_LACKS(cudaCreateTextureObject)
EMULATOR_LACKS(cudaDestroyTextureObject) EMULATOR_LACKS(cudaCreateSurfaceObject)
EMULATOR_LACKS(cudaBindTexture) EMULATOR_LACKS(cudaBindTexture2D) EMULATOR_LACKS(cudaUnbindTexture)
EMULATOR_LACKS(tex1Dfetch) EMULATOR_LACKS(tex1D) EMULATOR_LACKS(tex2D) EMULATOR_LACKS(tex3D)
EMULATOR_LACKS(surf2Dread) EMULATOR_LACKS(surf2Dwrite)
// functions of a warp before compute capability 7.0, several small integers at once, half precision
EMULATOR_LACKS(__shfl) EMULATOR_LACKS(__shfl_up) EMULATOR_LACKS(__shfl_down)
EMULATOR_LACKS(__shfl_xor) EMULATOR_LACKS(__ballot) EMULATOR_LACKS(__any) EMULATOR_LACKS(__all)
EMULATOR_LACKS(__vadd2) EMULATOR_LACKS(__vadd4) EMULATOR_LACKS(__vsub4) EMULATOR_LACKS(__vmaxs4)
EMULATOR_LACKS(__vabsdiffu4) EMULATOR_LACKS(__vsadu4) EMULATOR_LACKS(__dp2a_lo)
EMULATOR_LACKS(__dp2a_hi) EMULATOR_LACKS(__float2half) EMULATOR_LACKS(__half2float)
EMULATOR_LACKS(__hmul) EMULATOR_LACKS(__hfma)
// clang-format on

#undef EMULATOR_LACKS
#undef EMULATOR_LACKS_TYPE
#undef EMULATOR_LACKING
