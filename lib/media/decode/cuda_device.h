// Inside lib/media only: a GPU for FFmpeg's NVDEC and NVENC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/libav.h"

namespace vfm::media {

/// A GPU, or why there is none. It uses the GPU's primary context, like CUDA's runtime: so both see
/// each other's memory, and no decoder or encoder needs memory for its own context.
struct CudaDevice {
  AVBufferRef* device = nullptr;  ///< for AVCodecContext::hw_device_ctx
  std::string why;                ///< `device` is null
  int engines = 1;                ///< of NVDEC; 1 also where the driver does not say
};

/// The missing part of the driver for NVDEC; empty: none. Touches no GPU.
std::string why_no_nvdec_library();

/// The GPU with this number, in the driver's count within CUDA_VISIBLE_DEVICES. It is opened once,
/// and never closed: the driver frees everything at the end. Thread-safe.
const CudaDevice& cuda_device(int number);

}  // namespace vfm::media
