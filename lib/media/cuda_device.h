// Inside lib/media only: a GPU as FFmpeg takes it for NVDEC and NVENC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "media/libav.h"

namespace vfm::media {

/// A GPU, or why there is none. It is in the GPU's primary context, which CUDA's runtime has, too:
/// so both see each other's memory, and no decoder and no encoder takes memory for a context of its
/// own.
struct CudaDevice {
  AVBufferRef* device = nullptr;  ///< for AVCodecContext::hw_device_ctx
  std::string why;                ///< `device` is null
  int engines = 1;                ///< of NVDEC; 1 also where the driver does not say
};

/// What of the driver is missing for NVDEC; empty: nothing. Touches no GPU.
std::string why_no_nvdec_library();

/// That with this number, as the driver counts those that CUDA_VISIBLE_DEVICES leaves. Opened once,
/// and never closed: the driver takes everything back at the end. Thread-safe.
const CudaDevice& cuda_device(int number);

}  // namespace vfm::media
