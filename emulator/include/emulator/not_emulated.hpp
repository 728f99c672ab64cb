// SPDX-License-Identifier: MIT
//
// What CUDA programs are likely to call and the emulator lacks: the compiler's error points to the
// list of what there is. Names that are not here do not compile either.
#pragma once

#include "emulator/runtime_api.hpp"

#define EMULATOR_LACKS(NAME)                                                                       \
  template <class... Any>                                                                          \
  __attribute__((unavailable("not emulated: docs/emulator.md lists what is"))) ::cudaError_t NAME( \
      Any&&...);

// clang-format off: a table
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
