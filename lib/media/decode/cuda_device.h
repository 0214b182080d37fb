// Inside lib/media only: opens a GPU for FFmpeg's NVDEC and NVENC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/libav.h"

namespace vfm::media {

/// A GPU, or the reason why the GPU cannot be used. FFmpeg uses the GPU's primary context, so
/// FFmpeg and the CUDA runtime can access each other's memory.
struct CudaDevice {
  AVBufferRef* device = nullptr;  ///< Value for AVCodecContext::hw_device_ctx, or null.
  std::string why;                ///< Reason why `device` is null.
  int engines = 1;                ///< Number of NVDEC engines; 1 if unknown.
};

/// Returns a text that says which part of the driver is missing for NVDEC, or "". Uses no GPU.
std::string why_no_nvdec_library();

/// Returns a GPU. `number` is the driver's number, which counts only the GPUs of
/// CUDA_VISIBLE_DEVICES. A GPU is opened once and never closed. Thread-safe.
const CudaDevice& cuda_device(int number);

}  // namespace vfm::media
