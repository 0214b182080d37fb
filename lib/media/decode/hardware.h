// Decodes video with NVDEC, the video engine of an NVIDIA GPU.
//
// NVDEC decodes progressive 4:2:0 video of H.264 (8 bits), HEVC and VP9 (8 and 10 bits), with both
// sides at least 144 pixels. The frames equal frames of the software decoder, sample for sample.
// Frames are copied to system memory, or stay on the GPU (DecodeOptions::on_gpu). Software decodes
// all other video, and files that the GPU refuses. If a file is damaged, software decodes the file
// again from its beginning.
//
// Software reports invalid data inside a slice. NVDEC hides this damage without an error, if
// container and headers are intact. If such damage must be reported, decode in software.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "share/engine_sessions.h"

namespace vfm::media {

class HardwareDecoder;  // hardware_decoder.h; for DecodeOptions::hardware

/// Returns the reason why this machine cannot decode on GPU `gpu`, or "" if it can. `gpu` is the
/// driver's number, which counts only the GPUs of CUDA_VISIBLE_DEVICES. The driver is asked only
/// once. Thread-safe.
std::string why_no_hardware(int gpu = 0);

/// Returns the number of decoders that all programs together can have on a GPU at a time: 4 for
/// each NVDEC engine.
int decode_sessions_of(int gpu);

/// Returns the hardware for the option --hwaccel, or null for software. `name` is "none", "cuda",
/// or "auto", which means "cuda" if CUDA works on all `gpus`. Throws Error{usage} for another name,
/// and for "cuda" if CUDA does not work. Thread-safe.
///
/// If `sessions` is null, the first of `gpus` decodes. Otherwise, each decoder takes sessions at
/// its first picture, and decodes on the GPU of these sessions. The decoder returns the sessions
/// when it is destroyed or changes to software. Waiting for sessions blocks the calling thread. A
/// decoder that gets no sessions decodes in software. `sessions` must outlive the result.
std::shared_ptr<const HardwareDecoder> choose_hardware(std::string_view name,
                                                       const std::vector<int>& gpus = {0},
                                                       share::EngineSessions* sessions = nullptr);

}  // namespace vfm::media
