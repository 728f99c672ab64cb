// SPDX-License-Identifier: MIT
//
// What CUDA has and the emulator lacks: most other functions of the runtime API and of the device
// (CUDA 13.0), and some types. The compiler's error points to the list of what there is.
#pragma once

#include "emulator/runtime_api.hpp"

#define EMULATOR_LACKING \
  __attribute__((unavailable("not emulated: docs/emulator-cuda.md lists what is")))
#define EMULATOR_LACKS_TYPE(NAME) \
  typedef struct {                \
  } NAME EMULATOR_LACKING;
// A function of the program's own by this name is taken instead.
#define EMULATOR_LACKS(NAME) \
  template <class...>        \
  EMULATOR_LACKING cudaError_t NAME(...);
#define EMULATOR_LACKS_VALUE(NAME) enum { NAME EMULATOR_LACKING };
#define EMULATOR_LACKS_CUDA(NAME) EMULATOR_LACKS(cuda##NAME)
#define EMULATOR_LACKS_GRAPH(NAME) EMULATOR_LACKS(cudaGraph##NAME)
#define EMULATOR_LACKS_MATH(NAME) EMULATOR_LACKS(NAME) EMULATOR_LACKS(NAME##f)
#define EMULATOR_LACKS_SIMD(NAME) EMULATOR_LACKS(__v##NAME##2) EMULATOR_LACKS(__v##NAME##4)

// ROW(name) for each of up to 256 names.
#define EMULATOR_EACH(ROW, ...) EMULATOR_EXPAND(EMULATOR_EACH_OF(ROW, __VA_ARGS__))
#define EMULATOR_EACH_OF(ROW, NAME, ...) \
  ROW(NAME) __VA_OPT__(EMULATOR_EACH_LATER EMULATOR_PARENTHESES(ROW, __VA_ARGS__))
#define EMULATOR_EACH_LATER() EMULATOR_EACH_OF
#define EMULATOR_PARENTHESES ()
#define EMULATOR_EXPAND(...) EMULATOR_4(EMULATOR_4(EMULATOR_4(EMULATOR_4(__VA_ARGS__))))
#define EMULATOR_4(...) EMULATOR_3(EMULATOR_3(EMULATOR_3(EMULATOR_3(__VA_ARGS__))))
#define EMULATOR_3(...) EMULATOR_2(EMULATOR_2(EMULATOR_2(EMULATOR_2(__VA_ARGS__))))
#define EMULATOR_2(...) EMULATOR_1(EMULATOR_1(EMULATOR_1(EMULATOR_1(__VA_ARGS__))))
#define EMULATOR_1(...) __VA_ARGS__

// clang-format off: a table
EMULATOR_EACH(EMULATOR_LACKS_TYPE,
  cudaGraph_t, cudaGraphExec_t, cudaGraphNode_t, cudaMemPool_t, cudaArray_t, cudaTextureObject_t,
  cudaSurfaceObject_t, cudaResourceDesc, cudaTextureDesc, cudaChannelFormatDesc,
  cudaPointerAttributes, cudaIpcMemHandle_t, cudaExtent, cudaPitchedPtr, cudaMemcpy3DParms, half,
  half2, __half, __half2, __nv_bfloat16, __nv_bfloat162, CUcontext, CUdevice, CUdeviceptr,
  CUfunction, CUmodule, CUstream)
// values, of enumerations and others
EMULATOR_EACH(EMULATOR_LACKS_VALUE,
  cudaCpuDeviceId, cudaErrorIllegalAddress, cudaInvalidDeviceId,
  cudaLimitMallocHeapSize, cudaLimitPrintfFifoSize, cudaLimitStackSize, cudaMemAdviseSetAccessedBy,
  cudaMemAdviseSetPreferredLocation, cudaMemAdviseSetReadMostly, cudaMemAdviseUnsetAccessedBy,
  cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseUnsetReadMostly,
  cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeEightByte, cudaSharedMemBankSizeFourByte,
  cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeThreadLocal,
  cudaStreamLegacy, cudaStreamPerThread)
// of the runtime: cuda..., cudaGraph...
EMULATOR_EACH(EMULATOR_LACKS_CUDA,
  ArrayGetInfo, ArrayGetMemoryRequirements, ArrayGetPlane, ArrayGetSparseProperties, BindTexture,
  BindTexture2D, CGGetIntrinsicHandle, CGGetRank, CGGetSize, CGSynchronize, CGSynchronizeGrid,
  ChooseDevice, CreateChannelDesc, CreateSurfaceObject, CreateTextureObject,
  CtxResetPersistingL2Cache, DestroyExternalMemory, DestroyExternalSemaphore, DestroySurfaceObject,
  DestroyTextureObject, DeviceCanAccessPeer, DeviceDisablePeerAccess, DeviceEnablePeerAccess,
  DeviceFlushGPUDirectRDMAWrites, DeviceGetByPCIBusId, DeviceGetCacheConfig,
  DeviceGetDefaultMemPool, DeviceGetGraphMemAttribute, DeviceGetHostAtomicCapabilities,
  DeviceGetLimit, DeviceGetMemPool, DeviceGetNvSciSyncAttributes, DeviceGetP2PAtomicCapabilities,
  DeviceGetP2PAttribute, DeviceGetPCIBusId, DeviceGetSharedMemConfig,
  DeviceGetTexture1DLinearMaxWidth, DeviceGraphMemTrim, DeviceRegisterAsyncNotification,
  DeviceSetGraphMemAttribute, DeviceSetLimit, DeviceSetMemPool, DeviceSetSharedMemConfig,
  DeviceUnregisterAsyncNotification, EventRecordWithFlags, ExternalMemoryGetMappedBuffer,
  ExternalMemoryGetMappedMipmappedArray, FreeArray, FreeMipmappedArray, FuncGetParamInfo,
  FuncSetSharedMemConfig, GetChannelDesc, GetCurrentGraphExec, GetDeviceFlags, GetDriverEntryPoint,
  GetDriverEntryPointByVersion, GetFuncBySymbol, GetKernel, GetMipmappedArrayLevel,
  GetParameterBuffer, GetParameterBufferV2, GetSurfaceObjectResourceDesc,
  GetTextureObjectResourceDesc, GetTextureObjectResourceViewDesc, GetTextureObjectTextureDesc,
  GraphicsMapResources, GraphicsResourceGetMappedMipmappedArray, GraphicsResourceGetMappedPointer,
  GraphicsResourceSetMapFlags, GraphicsSubResourceGetMappedArray, GraphicsUnmapResources,
  GraphicsUnregisterResource, GridDependencySynchronize, HostGetFlags, HostRegister,
  HostUnregister, ImportExternalMemory, ImportExternalSemaphore, InitDevice, IpcCloseMemHandle,
  IpcGetEventHandle, IpcGetMemHandle, IpcOpenEventHandle, IpcOpenMemHandle,
  KernelSetAttributeForDevice, LaunchCooperativeKernel, LaunchDevice, LaunchDeviceV2, LaunchKernel,
  LaunchKernelExC, LibraryEnumerateKernels, LibraryGetGlobal, LibraryGetKernel,
  LibraryGetKernelCount, LibraryGetManaged, LibraryGetUnifiedFunction, LibraryLoadData,
  LibraryLoadFromFile, LibraryUnload, LogsCurrent, LogsDumpToFile, LogsDumpToMemory,
  LogsRegisterCallback, LogsUnregisterCallback, Malloc3D, Malloc3DArray, MallocArray,
  MallocFromPoolAsync, MallocMipmappedArray, MemAdvise, MemAttachSingle, Memcpy2DArrayToArray,
  Memcpy2DFromArray, Memcpy2DFromArrayAsync, Memcpy2DToArray, Memcpy2DToArrayAsync, Memcpy3D,
  Memcpy3DAsync, Memcpy3DBatchAsync, Memcpy3DPeer, Memcpy3DPeerAsync, MemcpyArrayToArray,
  MemcpyBatchAsync, MemcpyFromArray, MemcpyFromArrayAsync, MemcpyFromSymbolAsync, MemcpyPeer,
  MemcpyPeerAsync, MemcpyToArray, MemcpyToArrayAsync, MemcpyToSymbolAsync,
  MemDiscardAndPrefetchBatchAsync, MemDiscardBatchAsync, MemGetDefaultMemPool, MemGetMemPool,
  MemPoolCreate, MemPoolDestroy, MemPoolExportPointer, MemPoolExportToShareableHandle,
  MemPoolGetAccess, MemPoolGetAttribute, MemPoolImportFromShareableHandle, MemPoolImportPointer,
  MemPoolSetAccess, MemPoolSetAttribute, MemPoolTrimTo, MemPrefetchBatchAsync,
  MemRangeGetAttribute, MemRangeGetAttributes, Memset2DAsync, Memset3D, Memset3DAsync,
  MemSetMemPool, MipmappedArrayGetMemoryRequirements, MipmappedArrayGetSparseProperties,
  OccupancyAvailableDynamicSMemPerBlock, OccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
  OccupancyMaxPotentialBlockSizeVariableSMem, OccupancyMaxPotentialBlockSizeVariableSMemWithFlags,
  OccupancyMaxPotentialBlockSizeWithFlags, OccupancyMaxPotentialClusterSize, PointerGetAttributes,
  SetValidDevices, SignalExternalSemaphoresAsync, StreamAttachMemAsync, StreamBeginCapture,
  StreamBeginCaptureToGraph, StreamCopyAttributes, StreamEndCapture, StreamFireAndForget,
  StreamGetAttribute, StreamGetCaptureInfo, StreamGetDevice, StreamGetFlags, StreamGetId,
  StreamGetPriority, StreamGraphFireAndForget, StreamGraphFireAndForgetAsSibling,
  StreamGraphTailLaunch, StreamIsCapturing, StreamSetAttribute, StreamTailLaunch,
  StreamUpdateCaptureDependencies, ThreadExchangeStreamCaptureMode,
  TriggerProgrammaticLaunchCompletion, UnbindTexture, UserObjectCreate, UserObjectRelease,
  UserObjectRetain, WaitExternalSemaphoresAsync)
EMULATOR_EACH(EMULATOR_LACKS_GRAPH,
  AddChildGraphNode, AddDependencies, AddEmptyNode, AddEventRecordNode, AddEventWaitNode,
  AddExternalSemaphoresSignalNode, AddExternalSemaphoresWaitNode, AddHostNode, AddKernelNode,
  AddMemAllocNode, AddMemcpyNode, AddMemcpyNode1D, AddMemcpyNodeFromSymbol, AddMemcpyNodeToSymbol,
  AddMemFreeNode, AddMemsetNode, AddNode, ChildGraphNodeGetGraph, Clone, ConditionalHandleCreate,
  Create, DebugDotPrint, Destroy, DestroyNode, EventRecordNodeGetEvent, EventRecordNodeSetEvent,
  EventWaitNodeGetEvent, EventWaitNodeSetEvent, ExecChildGraphNodeSetParams, ExecDestroy,
  ExecEventRecordNodeSetEvent, ExecEventWaitNodeSetEvent,
  ExecExternalSemaphoresSignalNodeSetParams, ExecExternalSemaphoresWaitNodeSetParams,
  ExecGetFlags, ExecHostNodeSetParams, ExecKernelNodeSetParams, ExecMemcpyNodeSetParams,
  ExecMemcpyNodeSetParams1D, ExecMemcpyNodeSetParamsFromSymbol, ExecMemcpyNodeSetParamsToSymbol,
  ExecMemsetNodeSetParams, ExecNodeSetParams, ExecUpdate, ExternalSemaphoresSignalNodeGetParams,
  ExternalSemaphoresSignalNodeSetParams, ExternalSemaphoresWaitNodeGetParams,
  ExternalSemaphoresWaitNodeSetParams, GetEdges, GetNodes, GetRootNodes, HostNodeGetParams,
  HostNodeSetParams, Instantiate, InstantiateWithFlags, InstantiateWithParams,
  KernelNodeCopyAttributes, KernelNodeGetAttribute, KernelNodeGetParams, KernelNodeSetAttribute,
  KernelNodeSetEnabled, KernelNodeSetGridDim, KernelNodeSetParam, KernelNodeSetParams,
  KernelNodeUpdatesApply, Launch, MemAllocNodeGetParams, MemcpyNodeGetParams, MemcpyNodeSetParams,
  MemcpyNodeSetParams1D, MemcpyNodeSetParamsFromSymbol, MemcpyNodeSetParamsToSymbol,
  MemFreeNodeGetParams, MemsetNodeGetParams, MemsetNodeSetParams, NodeFindInClone,
  NodeGetDependencies, NodeGetDependentNodes, NodeGetEnabled, NodeGetType, NodeSetEnabled,
  NodeSetParams, ReleaseUserObject, RemoveDependencies, RetainUserObject, SetConditional, Upload)
// of the device: each also of float; of two and of four integers in a word; others
EMULATOR_EACH(EMULATOR_LACKS_MATH,
  cospi, cyl_bessel_i0, cyl_bessel_i1, erfcinv, erfcx, erfinv, norm, norm3d, norm4d, normcdfinv,
  rcbrt, rhypot, rnorm, rnorm3d, rnorm4d, sincospi, sinpi)
EMULATOR_EACH(EMULATOR_LACKS_SIMD,
  abs, absdiffs, absdiffu, absss, add, addss, addus, avgs, avgu, cmpeq, cmpges, cmpgeu, cmpgts,
  cmpgtu, cmples, cmpleu, cmplts, cmpltu, cmpne, haddu, maxs, maxu, mins, minu, neg, negss, sads,
  sadu, seteq, setges, setgeu, setgts, setgtu, setles, setleu, setlts, setltu, setne, sub, subss,
  subus)
EMULATOR_EACH(EMULATOR_LACKS,
  cuCtxCreate, cuCtxDestroy, cuCtxSynchronize, cuDeviceGet, cuDeviceGetCount, cuInit,
  cuLaunchKernel, cuMemAlloc, cuMemcpyDtoH, cuMemcpyHtoD, cuMemFree, cuModuleGetFunction,
  cuModuleLoad, cuModuleUnload, __laneid, __smid, __warpid, surf1DLayeredread, surf1DLayeredwrite, surf1Dread, surf1Dwrite, surf2DLayeredread,
  surf2DLayeredwrite, surf2Dread, surf2Dwrite, surf3Dread, surf3Dwrite, surfCubemapLayeredread,
  surfCubemapLayeredwrite, surfCubemapread, surfCubemapwrite, tex1D, tex1DGrad, tex1DLayered,
  tex1DLayeredGrad, tex1DLayeredLod, tex1DLod, tex1Dfetch, tex2D, tex2DGrad, tex2DLayered,
  tex2DLayeredGrad, tex2DLayeredLod, tex2DLod, tex2Dgather, tex3D, tex3DGrad, tex3DLod,
  texCubemap, texCubemapGrad, texCubemapLayered, texCubemapLayeredGrad, texCubemapLayeredLod,
  texCubemapLod, llmax, llmin, ullmax, ullmin, umax, umin, __all, __any, __ballot,
  __cluster_barrier_arrive, __cluster_barrier_arrive_relaxed, __cluster_barrier_wait,
  __cluster_map_shared_multicast, __cluster_map_shared_rank, __cluster_query_shared_rank,
  __clusterDim, __clusterGridDimInClusters, __clusterIdx, __clusterRelativeBlockIdx,
  __clusterRelativeBlockRank, __cvta_constant_to_generic, __cvta_generic_to_constant,
  __cvta_generic_to_global, __cvta_generic_to_grid_constant, __cvta_generic_to_local,
  __cvta_generic_to_shared, __cvta_global_to_generic, __cvta_grid_constant_to_generic,
  __cvta_local_to_generic, __cvta_shared_to_generic, __double2hiint, __double2loint, __dp2a_hi,
  __dp2a_lo, __fadd2_rd, __fadd2_rn, __fadd2_ru, __fadd2_rz, __ffma2_rd, __ffma2_rn, __ffma2_ru,
  __ffma2_rz, __float2half, __fmaf_ieee_rd, __fmaf_ieee_rn, __fmaf_ieee_ru, __fmaf_ieee_rz,
  __fmul2_rd, __fmul2_rn, __fmul2_ru, __fmul2_rz, __half2float, __hfma, __hiloint2double, __hmul,
  __isClusterShared, __isConstant, __isCtaShared, __isGlobal, __isGridConstant, __isLocal,
  __isShared, __pm0, __pm1, __pm2, __pm3, __prof_trigger, __shfl, __shfl_down, __shfl_up,
  __shfl_xor, __threadfence_cluster, __u128AtomicCAS, __u128AtomicCAS_block,
  __u128AtomicCAS_system, __u128AtomicExch, __u128AtomicExch_block, __u128AtomicExch_system,
  __viaddmax_s16x2, __viaddmax_s16x2_relu, __viaddmax_s32, __viaddmax_s32_relu, __viaddmax_u16x2,
  __viaddmax_u32, __viaddmin_s16x2, __viaddmin_s16x2_relu, __viaddmin_s32, __viaddmin_s32_relu,
  __viaddmin_u16x2, __viaddmin_u32, __vibmax_s16x2, __vibmax_s32, __vibmax_u16x2, __vibmax_u32,
  __vibmin_s16x2, __vibmin_s32, __vibmin_u16x2, __vibmin_u32, __vimax3_s16x2, __vimax3_s16x2_relu,
  __vimax3_s32, __vimax3_s32_relu, __vimax3_u16x2, __vimax3_u32, __vimax_s16x2_relu,
  __vimax_s32_relu, __vimin3_s16x2, __vimin3_s16x2_relu, __vimin3_s32, __vimin3_s32_relu,
  __vimin3_u16x2, __vimin3_u32, __vimin_s16x2_relu, __vimin_s32_relu)
// clang-format on
