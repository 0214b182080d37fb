// SPDX-License-Identifier: Apache-2.0
#include "media/decode/cuda_device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>

// FFmpeg's header of CUDA devices needs CUDA's header, but only for these names.
#define CUDA_VERSION 0
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>
}

namespace vfm::media {
namespace {

/// Input and output of cuvidGetDecoderCaps(): the 88 bytes of CUVIDDECODECAPS in NVIDIA's Video
/// Codec SDK.
struct DecoderCaps {
  int codec = 4, chroma = 1;  // H.264, 4:2:0.
  unsigned depth_minus_8 = 0, reserved[3] = {};
  unsigned char supported = 0, engines = 0;
  unsigned short formats = 0;
  unsigned rest[16] = {};
};
static_assert(offsetof(DecoderCaps, engines) == 25 && sizeof(DecoderCaps) >= 88);

constexpr const char* kNoDriver = "this machine has no NVIDIA driver (libcuda.so.1)";

void* driver_library() {
  return dlopen("libcuda.so.1", RTLD_NOW);
}

// FFmpeg loads the library only for the first video, and only then reports that it is missing.
void* video_library() {
  return dlopen("libnvcuvid.so.1", RTLD_NOW);
}

template <class F>
bool find_function(void* library, const char* name, F*& found) {
  found = reinterpret_cast<F*>(dlsym(library, name));
  return found != nullptr;
}

// Returns the primary context of a GPU. CUDA's runtime has the same context, so both share memory.
// (FFmpeg's own option for that fails if the runtime was first.) On an error, returns null and sets
// `why`.
CUcontext primary_context(void* driver, int number, std::string& why) {
  int (*init)(unsigned) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*retain)(CUcontext*, int) = nullptr;
  if (!find_function(driver, "cuInit", init) || !find_function(driver, "cuDeviceGet", get) ||
      !find_function(driver, "cuDevicePrimaryCtxRetain", retain)) {
    why = "the NVIDIA driver is too old";
    return nullptr;
  }
  int device = 0;
  CUcontext context = nullptr;
  int error = init(0);
  if (error != 0) {
    why = "the NVIDIA driver finds no GPU (its error " + std::to_string(error) + ")";
  } else if ((error = get(&device, number)) != 0) {
    why = "this machine has no GPU " + std::to_string(number);
  } else if ((error = retain(&context, device)) != 0) {
    why = "the GPU cannot be used (the driver's error " + std::to_string(error) + ")";
    context = nullptr;
  }
  return context;
}

int count_engines(void* driver, void* video, CUcontext context) {
  constexpr int kMost = 32;
  int (*push)(CUcontext) = nullptr;
  int (*pop)(CUcontext*) = nullptr;
  int (*ask)(DecoderCaps*) = nullptr;
  if (!find_function(driver, "cuCtxPushCurrent_v2", push) ||
      !find_function(driver, "cuCtxPopCurrent_v2", pop) ||
      !find_function(video, "cuvidGetDecoderCaps", ask) || push(context) != 0)
    return 1;
  DecoderCaps caps;
  const bool told = ask(&caps) == 0 && caps.supported != 0;
  pop(&context);
  return told ? std::clamp<int>(caps.engines, 1, kMost) : 1;
}

CudaDevice open_device(int number) {
  CudaDevice gpu;
  init_libav();
  clear_libav_message();
  void* const driver = driver_library();
  if (!driver) {
    gpu.why = kNoDriver;
    return gpu;
  }
  const CUcontext context = primary_context(driver, number, gpu.why);
  if (!context) return gpu;
  if (void* const video = video_library()) gpu.engines = count_engines(driver, video, context);
  gpu.device = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA);
  if (!gpu.device) {
    gpu.why = "this FFmpeg is built without CUDA";
    return gpu;
  }
  auto* const device = reinterpret_cast<AVHWDeviceContext*>(gpu.device->data);
  static_cast<AVCUDADeviceContext*>(device->hwctx)->cuda_ctx = context;
  if (const int error = av_hwdevice_ctx_init(gpu.device); error < 0) {
    gpu.why = libav_error_text(error);
    av_buffer_unref(&gpu.device);
  }
  return gpu;
}

}  // namespace

std::string why_no_nvdec_library() {
  if (!driver_library()) return kNoDriver;
  return video_library() ? "" : "the NVIDIA driver lacks its part for video (libnvcuvid.so.1)";
}

const CudaDevice& cuda_device(int number) {
  static std::mutex mutex;
  static std::map<int, CudaDevice> opened;
  const std::lock_guard lock(mutex);
  const auto found = opened.find(number);
  return found != opened.end() ? found->second
                               : opened.emplace(number, open_device(number)).first->second;
}

}  // namespace vfm::media
