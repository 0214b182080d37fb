// SPDX-License-Identifier: Apache-2.0
#include "tensor/device.h"

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "tensor/device_cuda.h"
#include "tensor/download.h"
#include "tensor/gpu_graph.h"
#include "tensor/kernel_log.h"
#include "tensor/meta.h"
#include "tensor/offload.h"
#include "tensor/upload.h"

namespace vfm {

Device parse_device(std::string_view name) {
  if (name == "cpu") return Device::cpu;
  if (name == "cuda") return Device::cuda;
  fail_usage("no device '{}'; there are cpu and cuda", name);
}

std::string_view device_name(Device device) {
  return device == Device::cpu ? "cpu" : device == Device::cuda ? "cuda" : "meta";
}

Device choose_device(std::string_view name) {
  if (name != "auto" && parse_device(name) == Device::cpu) return Device::cpu;
  const std::string why = why_no_gpu();
  if (why.empty()) {
    log_info("computing on {}", describe_gpu());
    return Device::cuda;
  }
  if (name == "cuda")
    fail_usage("--device cuda: there is no usable GPU: {}; compute on the CPU with --device cpu",
               why);
  log_info("computing on the CPU: {}", why);
  return Device::cpu;
}

DeviceTurn take_turn(Device device) {
  static std::recursive_mutex mutex;
  if (device != Device::cuda) return {};
  DeviceTurn turn(mutex);
  use_this_gpu();  // of the thread, which may be another one than the last
  return turn;
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device,
                std::size_t bytes) {
  if (bytes == 0 || to == from) return;
  if (to_device == Device::meta) {
    const bool up = from_device == Device::cpu && layout_device(to_device) == Device::cuda;
    Work work{0, (up ? 1 : 2) * static_cast<double>(bytes)};
    if (up) work.kind = WorkKind::transfers;
    return note_work(up ? "upload" : "copy_bytes", work);
  }
  if (from_device == Device::meta) fail("a tensor on meta has no values");
  if (to_device == Device::cpu && from_device == Device::cpu) {
    const KernelTimer timer("copy_bytes");
    std::memcpy(to, from, bytes);
  } else
    copy_bytes_gpu(to, to_device, from, from_device, bytes);
}

void zero_bytes(void* at, Device device, std::size_t bytes) {
  if (bytes == 0) return;
  if (device == Device::meta)
    note_work("zero_bytes", {0, static_cast<double>(bytes)});
  else if (device == Device::cpu) {
    const KernelTimer timer("zero_bytes");
    std::memset(at, 0, bytes);
  } else
    zero_bytes_gpu(at, bytes);
}

void copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
               std::size_t bytes, std::int64_t rows, Device device) {
  if (bytes == 0 || rows == 0) return;
  if (device == Device::cuda) {
    copy_rows_gpu(to, to_stride, from, from_stride, bytes, rows);
    return;
  }
  if (device == Device::meta)
    return note_work("copy_rows",
                     {0, 2.0 * static_cast<double>(bytes) * static_cast<double>(rows)});
  const KernelTimer timer("copy_rows");
  for (std::int64_t i = 0; i < rows; ++i)
    std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(i) * to_stride,
                static_cast<const std::byte*>(from) + static_cast<std::size_t>(i) * from_stride,
                bytes);
}

#if !VFM_HAVE_CUDA

namespace {
[[noreturn]] void no_gpu() {
  fail("this build has no CUDA; configure it with -Dcuda=enabled");
}
}  // namespace

std::string why_no_gpu() {
  return "built without CUDA";
}
int gpu_count() {
  return 0;
}
void use_gpu(int) {
  no_gpu();
}
void use_this_gpu() {
  no_gpu();
}
std::string describe_cuda() {
  return why_no_gpu();
}
std::string describe_gpu() {
  no_gpu();
}
std::string gpu_uuid() {
  no_gpu();
}
std::vector<GpuFacts> list_gpus() {
  return {};
}
GpuMemory gpu_memory() {
  no_gpu();
}
MemoryStats cuda_memory() {
  return {};
}
void reset_cuda_peak() {}
CUstream_st* compute_stream() {
  no_gpu();
}
void synchronize_gpu() {
  no_gpu();
}
void copy_bytes_gpu(void*, Device, const void*, Device, std::size_t) {
  no_gpu();
}
void zero_bytes_gpu(void*, std::size_t) {
  no_gpu();
}
void copy_rows_gpu(void*, std::size_t, const void*, std::size_t, std::size_t, std::int64_t) {
  no_gpu();
}
std::shared_ptr<void> allocate_gpu(std::size_t) {
  no_gpu();
}
void convert_gpu(const Tensor&, const Tensor&) {
  no_gpu();
}
Tensor recorded_constant(const Tensor&) {
  return {};
}
struct Download::State {};
Download::Download() = default;
Download::~Download() = default;
void Download::start(std::vector<Piece>, Take) {
  no_gpu();
}
void Download::release() {}
void Download::finish() {}
bool Download::done() const {
  return true;
}
Upload::Upload() {
  no_gpu();
}
Tensor Upload::copy(const Tensor&) {
  no_gpu();
}
void Upload::await() const {
  no_gpu();
}
std::shared_ptr<void> allocate_pinned(std::size_t) {
  no_gpu();
}
std::shared_ptr<CUevent_st> begin_offload_copy(void*, const void*, std::size_t, bool) {
  no_gpu();
}
void await_offload_copy(CUevent_st*) {
  no_gpu();
}
struct GpuGraph::State {};
GpuGraph::GpuGraph(const std::function<void()>&) {
  no_gpu();
}
GpuGraph::~GpuGraph() = default;
void GpuGraph::replay() const {
  no_gpu();
}
bool GpuGraph::recording() {
  return false;
}
std::size_t GpuGraph::release_memory() noexcept {
  return 0;
}
void check_gpu(int, const char*) {
  no_gpu();
}

#endif

}  // namespace vfm
