// Decoding on a GPU's video engine, NVDEC, through FFmpeg.
//
// NVDEC is used only for video whose standard defines decoding to the bit: progressive 4:2:0 video
// of H.264 (8 bits), HEVC and VP9 (8 and 10 bits), with both sides at least 144. NVDEC's frames
// therefore equal the software decoder's, sample for sample. Frames are copied to system memory, or
// stay on the GPU in its primary context (DecodeOptions::on_card). Software decodes all other
// video, and files that the GPU refuses. A damaged file is decoded again in software from its
// start; frames that the GPU already gave equal software's.
//
// NVDEC silently conceals flipped bits inside the data of a slice, if container and headers are
// intact. Software reports this damage if the data is invalid. Decode in software if this damage
// must be reported.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "share/engine_sessions.h"

namespace vfm::media {

class HardwareDecoder;  // hardware_decoder.h; for DecodeOptions::hardware

/// Returns "" if this machine can decode on GPU number `gpu`, otherwise the reason ("there is no
/// NVIDIA driver (libcuda.so.1)", ...). The driver, asked once, counts GPUs within
/// CUDA_VISIBLE_DEVICES. Thread-safe.
std::string why_no_hardware(int gpu = 0);

/// The highest number of decoders on a GPU at once, in all programs that share the GPU: 4 for each
/// NVDEC engine.
int decode_sessions_of(int gpu);

/// Resolves the option --hwaccel: "none", "cuda", or "auto", which means cuda if cuda works on all
/// `gpus`. Returns null for software. Logs the choice with log_info. Throws Error{usage} for
/// another name, and for "cuda" if cuda does not work (the message says why). Thread-safe.
///
/// If `sessions` is null, the first GPU decodes. Otherwise, a decoder takes sessions at its first
/// picture, decodes on their GPU, and gives them back when it is destroyed or changes to software.
/// A decoder that gets no sessions decodes in software. If a decoder waits for sessions, the
/// calling thread waits. `sessions` must outlive the result.
std::shared_ptr<const HardwareDecoder> choose_hardware(std::string_view name,
                                                       const std::vector<int>& gpus = {0},
                                                       share::EngineSessions* sessions = nullptr);

}  // namespace vfm::media
