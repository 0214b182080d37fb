// Inside lib/media only: opens a GPU for FFmpeg's NVDEC and NVENC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/libav.h"

namespace vfm::media {

/// A GPU, or the reason why it cannot be used. FFmpeg uses the GPU's primary context, as CUDA's
/// runtime does. FFmpeg and CUDA's runtime can therefore use each other's memory.
struct CudaDevice {
  AVBufferRef* device = nullptr;  ///< for AVCodecContext::hw_device_ctx
  std::string why;                ///< why `device` is null
  int engines = 1;                ///< number of NVDEC engines; 1 if unknown
};

/// Returns the missing part of the driver that NVDEC needs, or "". Uses no GPU.
std::string why_no_nvdec_library();

/// Returns the GPU with this number, as the driver counts within CUDA_VISIBLE_DEVICES. The GPU is
/// opened once and never closed; the driver frees all at exit. Thread-safe.
const CudaDevice& cuda_device(int number);

}  // namespace vfm::media
