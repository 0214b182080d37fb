// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <type_traits>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "modulate_backward.h"

namespace vfm::kernels {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostColumns = kMostThreads * 4;  // of one block
constexpr int kReduceThreads = 128;

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ __forceinline__ float4 operator*(float4 a, float4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
__device__ __forceinline__ float sum4(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}

// Four elements as they are in memory: what is loaded ahead is widened when it is used, or the
// widening would wait for it.
template <class T>
using Words = std::conditional_t<sizeof(T) == 2, uint2, float4>;

__device__ __forceinline__ float4 widen(float4 v) {
  return v;
}
__device__ __forceinline__ float4 widen(uint2 v) {
  return {__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u),
          __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000u)};
}

// What a thread needs of one token.
template <class T>
struct Quad {
  Words<T> dnormed, branch;
  float4 stream, dstream;
  float2 moments;
};

template <class T>
__device__ __forceinline__ Words<T> words(const void* from, std::int64_t place) {
  return *reinterpret_cast<const Words<T>*>(static_cast<const T*>(from) + place);
}

template <class T>
__device__ __forceinline__ Quad<T> load(const ModulateBackward& c, int token, int at) {
  const std::int64_t place = std::int64_t{token} * c.width + at;
  Quad<T> q{};
  q.moments = *reinterpret_cast<const float2*>(c.moments + std::int64_t{2} * token);
  if (at >= c.width) return q;
  q.dnormed = words<T>(c.dnormed, place);
  q.stream = load4(c.stream + place);
  if (c.dstream) q.dstream = load4(c.dstream + place);
  if (c.branch) q.branch = words<T>(c.branch, place);
  return q;
}

__device__ __forceinline__ float4 normalized(float4 v, float2 moments) {
  return {(v.x - moments.x) * moments.y, (v.y - moments.x) * moments.y,
          (v.z - moments.x) * moments.y, (v.w - moments.x) * moments.y};
}

__device__ __forceinline__ float4 one_plus(float4 v) {
  return {1 + v.x, 1 + v.y, 1 + v.z, 1 + v.w};
}

__device__ __forceinline__ float2 warp_sums(float2 v) {
  return {warp_sum(v.x), warp_sum(v.y)};
}

// Both sums over the block, in every thread. One barrier only: the next call must be given another
// place in shared memory, the one after it may have this one again.
__device__ __forceinline__ float2 block_sums(float2 v, float2* shared) {
  const unsigned lane = threadIdx.x % 32;
  v = warp_sums(v);
  if (lane == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sums(lane < blockDim.x / 32 ? shared[lane] : float2{0, 0});
}

// The thread's share of the sums of g and g n over a row of many slabs; d and n are those of its
// own slab. The order of the slabs is the same in every block of the run.
template <class T>
__device__ __forceinline__ float2 wide_sums(const ModulateBackward& c, int token,
                                            const float* scale, int own, float4 g, float4 n,
                                            float2 moments) {
  float2 sums = {0, 0};
#pragma unroll 1
  for (int at = static_cast<int>(threadIdx.x) * 4; at < c.width;
       at += static_cast<int>(blockDim.x) * 4) {
    float4 g_at = g, n_at = n;
    if (at != own) {
      const std::int64_t place = std::int64_t{token} * c.width + at;
      n_at = normalized(load4(c.stream + place), moments);
      g_at = widen(words<T>(c.dnormed, place)) * one_plus(load4(scale + at));
    }
    sums.x += sum4(g_at);
    sums.y += sum4(g_at * n_at);
  }
  return sums;
}

// One block a run and slab; each thread has four columns of it. kAdds: dx is added to dextra.
template <class T, bool kWide, bool kAdds>
__global__ void __launch_bounds__(kMostThreads)
    backward_kernel(const ModulateBackward c, const unsigned slabs, float* const dextra) {
  __shared__ float2 shared[2][32];
  const std::int64_t index = kWide ? blockIdx.x / slabs : blockIdx.x;
  const int slab = kWide ? static_cast<int>(blockIdx.x % slabs * blockDim.x) : 0;
  const int at = (slab + static_cast<int>(threadIdx.x)) * 4;
  const bool inside = at < c.width;
  const ModulateRun run = c.runs[index];
  const float inverse = 1.f / static_cast<float>(c.width);
  const float* scale = c.modulation + run.row * c.modulation_stride + c.width;
  const float4 factor = inside ? one_plus(load4(scale + at)) : float4{0, 0, 0, 0};
  // Elsewhere the registers do not suffice, and it comes from the L1 cache each time.
  constexpr bool kHoldGate = sizeof(T) == 2 && !kWide && !kAdds;
  const float* gate = c.gate + (c.branch ? run.row * c.gate_stride + at : 0);
  const float4 held = kHoldGate && inside && c.branch ? load4(gate) : float4{0, 0, 0, 0};
  float4 dshift = {0, 0, 0, 0}, dscale = dshift, dgate = dshift;
  const int begin = static_cast<int>(run.begin), end = static_cast<int>(run.end);
  Quad<T> next{};
  if (!kWide && begin < end) next = load<T>(c, begin, at);
  for (int token = begin; token < end; ++token) {
    const Quad<T> q = kWide ? load<T>(c, token, at) : next;
    if (!kWide && token + 1 < end) next = load<T>(c, token + 1, at);
    const float4 d = widen(q.dnormed), g = d * factor;
    // Beside the row n would be infinite where the mean is, and its product with zero NaN.
    const float4 n = inside ? normalized(q.stream, q.moments) : float4{0, 0, 0, 0};
    dshift = dshift + d;
    dscale = dscale + d * n;
    // Here, as behind the barrier it would be waited for; of f32 there are no registers for it.
    constexpr bool kAhead = kAdds && sizeof(T) == 2;
    float4 extra = {0, 0, 0, 0};
    if (kAhead && inside) extra = load4(dextra + std::int64_t{token} * c.width + at);
    const float2 own =
        kWide ? wide_sums<T>(c, token, scale, at, g, n, q.moments) : float2{sum4(g), sum4(g * n)};
    const float2 sums = block_sums(own, shared[token & 1]);
    if (!inside) continue;
    const float mean = c.centred ? sums.x * inverse : 0.f;
    const float rstd = q.moments.y, product = sums.y * inverse;
    const float4 v = {rstd * (g.x - mean - n.x * product) + q.dstream.x,
                      rstd * (g.y - mean - n.y * product) + q.dstream.y,
                      rstd * (g.z - mean - n.z * product) + q.dstream.z,
                      rstd * (g.w - mean - n.w * product) + q.dstream.w};
    const std::int64_t place = std::int64_t{token} * c.width + at;
    store4(c.dx + place, v);
    if (kAdds) store4(dextra + place, (kAhead ? extra : load4(dextra + place)) + v);
    if (!c.branch) continue;
    dgate = dgate + v * widen(q.branch);
    store4(static_cast<T*>(c.dbranch) + place, v * (kHoldGate ? held : load4(gate)));
  }
  if (!inside) return;
  float* partial = c.partial + index * 3 * c.width + at;
  store4(partial, dshift);
  store4(partial + c.width, dscale);
  store4(partial + 2 * c.width, dgate);
}

// The same without dnormed: what reaches the stream passes.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    passed_kernel(const ModulateBackward c, const unsigned slabs, float* const dextra) {
  const std::int64_t index = blockIdx.x / slabs;
  const int at = static_cast<int>(blockIdx.x % slabs * blockDim.x + threadIdx.x) * 4;
  if (at >= c.width) return;
  const ModulateRun run = c.runs[index];
  const float4 zero = {0, 0, 0, 0};
  const float4 gate = c.branch ? load4(c.gate + run.row * c.gate_stride + at) : zero;
  float4 dgate = zero;
  for (std::int64_t token = run.begin; token < run.end; ++token) {
    const std::int64_t place = token * c.width + at;
    const float4 v = load4(c.dstream + place);
    if (c.dx != c.dstream) store4(c.dx + place, v);
    if (dextra) store4(dextra + place, load4(dextra + place) + v);
    if (!c.branch) continue;
    dgate = dgate + v * widen(words<T>(c.branch, place));
    store4(static_cast<T*>(c.dbranch) + place, v * gate);
  }
  float* partial = c.partial + index * 3 * c.width + at;
  store4(partial, zero);
  store4(partial + c.width, zero);
  store4(partial + 2 * c.width, dgate);
}

// One block a row and kReduceThreads of its columns. A run of another row adds nothing: what is
// added instead, zero, is not loaded, and groups of runs without the row are passed over.
__global__ void __launch_bounds__(kReduceThreads)
    reduce_kernel(const ModulateRun* runs, const std::int64_t run_count, const float* partial,
                  float* sums, const int columns) {
  constexpr int kAhead = 16;  // loads that do not wait for each other
  __shared__ int wanted[kReduceThreads];
  const int row = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(blockIdx.y * kReduceThreads + threadIdx.x);
  const bool inside = column < columns;
  float total = 0;
  for (std::int64_t base = 0; base < run_count; base += kReduceThreads) {
    const std::int64_t mine = base + threadIdx.x;
    const bool is_wanted = mine < run_count && runs[mine].row == row;
    wanted[threadIdx.x] = is_wanted;
    if (__syncthreads_or(is_wanted) && inside) {
      const float* from = partial + base * columns + column;
      for (int first = 0; first < kReduceThreads; first += kAhead) {
        float values[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
          values[i] = wanted[first + i] ? from[std::int64_t{first + i} * columns] : 0.f;
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
          total += values[i];
      }
    }
    __syncthreads();
  }
  if (inside) sums[std::int64_t{row} * columns + column] = total;
}

template <class T>
int dispatch(const ModulateBackward& c, float* dextra, cudaStream_t stream) {
  const int slabs = (c.width + kMostColumns - 1) / kMostColumns;
  const int columns = (c.width + slabs - 1) / slabs, warps = (columns + 127) / 128;
  const std::int64_t blocks = c.run_count * slabs;
  if (blocks > 0x7fffffff) return cudaErrorInvalidValue;
  void (*const kernels[2][2])(ModulateBackward, unsigned, float*) = {
      {backward_kernel<T, false, false>, backward_kernel<T, false, true>},
      {backward_kernel<T, true, false>, backward_kernel<T, true, true>}};
  return launch(c.dnormed ? kernels[slabs > 1][dextra != nullptr] : passed_kernel<T>,
                dim3(static_cast<unsigned>(blocks)), warps * 32, 0, stream, c,
                static_cast<unsigned>(slabs), dextra);
}

bool possible(const ModulateBackward& c) {
  return c.width > 0 && c.width % 4 == 0 && c.run_count >= 0 && c.run_count <= 0x7fffffff;
}

}  // namespace

int modulate_backward(const ModulateBackward& call, float* dextra, CUstream_st* stream) {
  if (call.run_count == 0) return cudaSuccess;
  if (!possible(call) || (!call.dnormed && !call.dstream)) return cudaErrorInvalidValue;
  return call.type == Type::bf16 ? dispatch<__nv_bfloat16>(call, dextra, stream)
                                 : dispatch<float>(call, dextra, stream);
}

int modulate_reduce(const ModulateBackward& call, std::int64_t rows, float* sums,
                    CUstream_st* stream) {
  if (rows == 0) return cudaSuccess;
  // 3 D columns in an int, and in at most 65,535 blocks.
  if (!possible(call) || call.width > (1 << 21) || rows < 0 || rows > 0x7fffffff)
    return cudaErrorInvalidValue;
  const int columns = 3 * call.width;
  const dim3 grid(static_cast<unsigned>(rows),
                  static_cast<unsigned>((columns + kReduceThreads - 1) / kReduceThreads));
  return launch(reduce_kernel, grid, kReduceThreads, 0, stream, call.runs, call.run_count,
                static_cast<const float*>(call.partial), sums, columns);
}

}  // namespace vfm::kernels
