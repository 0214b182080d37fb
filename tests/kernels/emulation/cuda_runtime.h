// The part of CUDA's runtime header that kernels and their tests use, for the emulation. Device
// memory is the host's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "emulation.h"
#include "memory.h"
#include "streams.h"

#define VFM_EMULATION 1

#define __global__
#define __device__
#define __host__
// Always, so that an access has its own place in the program wherever it is inlined to.
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__
#define __shared__ static
#define __constant__ static const
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

inline void __syncthreads() {
  vfm::emulation::wait_for_block();
}
inline int __syncthreads_or(int predicate) {
  return vfm::emulation::any_of_block(predicate != 0);
}
inline void __syncwarp(unsigned = 0xffffffffu) {
  vfm::emulation::wait_for_warp(true);
}
template <class T>
__forceinline__ T __shfl_sync(unsigned, T value, int lane) {
  vfm::emulation::exchange(&value, sizeof value, lane & 31);
  return value;
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int with) {
  return __shfl_sync(mask, value, static_cast<int>(threadIdx.x % 32) ^ with);
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return __shfl_sync(mask, value, static_cast<int>(lane + by < 32 ? lane + by : lane));
}

// What the compiler may believe is checked here.
#define __builtin_assume(what)     \
  do                               \
    if (!(what)) __builtin_trap(); \
  while (false)
inline bool __isGlobal(const void* p) {
  return p != nullptr;
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __int_as_float(int bits) {
  return std::bit_cast<float>(bits);
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline float rsqrtf(float x) {
  return 1.f / std::sqrt(x);
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
__forceinline__ unsigned atomicMax(unsigned* at, unsigned value) {
  return vfm::emulation::atomic_max(at, value);
}
// A value that the compiler does not see through, and so joins with nothing.
inline float opaque(float value) {
  asm("" : "+m"(value));
  return value;
}
// Never part of a fused multiply-add.
inline float __fadd_rn(float x, float y) {
  return opaque(opaque(x) + opaque(y));
}
inline float __fsub_rn(float x, float y) {
  return opaque(opaque(x) - opaque(y));
}
inline float __fmul_rn(float x, float y) {
  return opaque(opaque(x) * opaque(y));
}
inline float __fdiv_rn(float x, float y) {
  return opaque(opaque(x) / opaque(y));
}
template <class T>
__forceinline__ T __ldg(const T* p) {
  return *p;
}
using std::max;
using std::min;

using cudaError_t = int;
enum : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
};
using cudaStream_t = CUstream_st*;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };

inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) {
  return "invalid value";
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = vfm::emulation::allocate(bytes);
  return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* pointer) {
  vfm::emulation::free(pointer);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* at, int byte, std::size_t bytes) {
  std::memset(at, byte, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* at, int byte, std::size_t bytes, cudaStream_t stream) {
  vfm::emulation::submit(stream, [=] { std::memset(at, byte, bytes); });
  return cudaSuccess;
}
// From and to pinned memory, which is read and written when the copy's turn comes.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  vfm::emulation::submit(stream, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_stride, const void* from,
                                     std::size_t from_stride, std::size_t bytes, std::size_t rows,
                                     cudaMemcpyKind, cudaStream_t stream) {
  vfm::emulation::submit(stream, [=] {
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(static_cast<char*>(to) + i * to_stride,
                  static_cast<const char*>(from) + i * from_stride, bytes);
  });
  return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaMalloc(pointer, bytes);
}
inline cudaError_t cudaFreeHost(void* pointer) {
  return cudaFree(pointer);
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return cudaSuccess;
}
struct cudaDeviceProp {
  char name[32];
  std::size_t totalGlobalMem;
  int major, minor;
};
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulation", std::size_t{1} << 30, 0, 0};
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}
enum : unsigned {
  cudaStreamNonBlocking = 1,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2
};
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = vfm::emulation::make_stream();
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return vfm::emulation::finish(stream) ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
inline cudaError_t cudaDeviceSynchronize() {
  vfm::emulation::finish_all();
  return cudaSuccess;
}
template <class F>
cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

struct cudaFuncAttributes {
  int binaryVersion;
};
// The emulation has every instruction that it has a function for.
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F*) {
  attributes->binaryVersion = 90;
  return cudaSuccess;
}

using cudaEvent_t = CUevent_st*;
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = vfm::emulation::make_event();
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  return vfm::emulation::record(event, stream) ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return vfm::emulation::wait(stream, event) ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  vfm::emulation::finish(event);
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  *ms = vfm::emulation::milliseconds(begin, end);
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  vfm::emulation::destroy(event);
  return cudaSuccess;
}

using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraph_st*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed };
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return vfm::emulation::begin_capture(stream) ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = vfm::emulation::end_capture(stream);
  return *graph == nullptr ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                 unsigned long long) {
  *made = vfm::emulation::copy(graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  vfm::emulation::launch(graph, stream);
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  vfm::emulation::destroy(graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return cudaGraphDestroy(graph);
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
template <class... Expected, class... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...),
                               Actual&&... arguments) {
  // As they are now: the work may be done later, and more than once.
  const std::tuple<Expected...> values{Expected(arguments)...};
  vfm::emulation::submit(
      config->stream,
      [launch = *config, kernel, values] {
        auto* const function = kernel;  // on the stack, as what the threads find it by
        const void* const at = &values;
        vfm::emulation::run({reinterpret_cast<const void*>(kernel),
                             launch.gridDim,
                             launch.blockDim,
                             launch.dynamicSmemBytes,
                             {static_cast<unsigned char*>(const_cast<void*>(at)), sizeof values}},
                            [&] { std::apply(function, values); });
      },
      true);
  return cudaSuccess;
}
