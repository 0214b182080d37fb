// Decoding on a GPU's video engine, NVDEC, through FFmpeg.
//
// It decodes what a standard defines to the bit: progressive 4:2:0 video of H.264 (8 bits), HEVC
// and VP9 (8 and 10 bits), both sides at least 144. So its frames are those of the software
// decoder, sample for sample; they are copied back to the system's memory, or stay where they are
// (DecodeOptions::on_card) in the GPU's primary context. Everything else is
// software's, file by file: other codecs and sizes, interlaced pictures, what the GPU refuses. So
// is a file in which any damage shows: then it is decoded in software from its start, and the GPU's
// frames before were the same.
//
// One thing is not seen: bits that flipped inside the data of a slice, where the container and the
// headers around it are whole. Software notices that when the data makes no sense; NVDEC repairs it
// silently. Decode in software where such damage must be reported.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/engine_sessions.h"

namespace vfm::media {

class HardwareDecoder;  // hardware_decoder.h; for DecodeOptions::hardware

/// Empty if this machine can decode on a GPU, else why it cannot ("there is no NVIDIA driver
/// (libcuda.so.1)", ...): on that with this number, as the driver counts those that
/// CUDA_VISIBLE_DEVICES leaves. Asks the driver once. Thread-safe.
std::string why_no_hardware(int gpu = 0);

/// How many decoders such a GPU is to have at once, of programs that share it: 4 for each of its
/// NVDEC engines, which the driver tells, so that there is work for each while others wait for what
/// they read and for who takes their pictures.
int decode_sessions_of(int gpu);

/// What the option --hwaccel means: "none", "cuda", or "auto", which is cuda where it works on all
/// `gpus`. Null: software. Says with log_info which it is. Throws Error{usage} for another name,
/// and, saying why, for "cuda" where it does not work. Thread-safe.
///
/// Without `sessions`, which must outlive it, the first of the GPUs decodes. With them a decoder
/// takes some from its first picture on until it is destroyed, or goes on in software, and decodes
/// on their GPU. Where it gets none it decodes in software. It waits for them, if they are to be
/// waited for, in the calling thread.
std::shared_ptr<const HardwareDecoder> choose_hardware(std::string_view name,
                                                       const std::vector<int>& gpus = {0},
                                                       EngineSessions* sessions = nullptr);

}  // namespace vfm::media
