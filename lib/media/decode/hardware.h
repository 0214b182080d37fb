// Decoding on a GPU's video engine, NVDEC, through FFmpeg.
//
// It decodes only what standards define to the bit: progressive 4:2:0 video of H.264 (8 bits), HEVC
// and VP9 (8 and 10 bits), both sides at least 144. So its frames are those of the software
// decoder, sample for sample; they are copied back to the system's memory, or stay where they are
// (DecodeOptions::on_card) in the GPU's primary context. Software decodes all other files: other
// codecs and sizes, interlaced pictures, files that the GPU refuses. A damaged file is decoded in
// software from its start; the GPU's earlier frames were the same.
//
// One kind of damage goes unnoticed: flipped bits inside the data of a slice, with whole container
// and headers. Software notices that when the data makes no sense; NVDEC repairs it silently.
// Decode in software where such damage must be reported.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "share/engine_sessions.h"

namespace vfm::media {

class HardwareDecoder;  // hardware_decoder.h; for DecodeOptions::hardware

/// Empty if this machine can decode on GPU number `gpu`, else why it cannot ("there is no NVIDIA
/// driver (libcuda.so.1)", ...). The driver counts GPUs within CUDA_VISIBLE_DEVICES. Asks it once.
/// Thread-safe.
std::string why_no_hardware(int gpu = 0);

/// Decoders on such a GPU at once, of all programs that share it: 4 for each NVDEC engine, so that
/// each has work while decoders wait for their input and for readers of their pictures.
int decode_sessions_of(int gpu);

/// Resolves the option --hwaccel: "none", "cuda", or "auto", which is cuda if it works on all
/// `gpus`. Null: software. Logs the choice with log_info. Throws Error{usage} for another name,
/// and, saying why, for "cuda" where it does not work. Thread-safe.
///
/// Without `sessions`, which must outlive it, the first of the GPUs decodes. With sessions, a
/// decoder takes some from its first picture until it is destroyed or changes to software, and
/// decodes on their GPU; without any it decodes in software. If it waits for sessions, it does so
/// in the calling thread.
std::shared_ptr<const HardwareDecoder> choose_hardware(std::string_view name,
                                                       const std::vector<int>& gpus = {0},
                                                       share::EngineSessions* sessions = nullptr);

}  // namespace vfm::media
