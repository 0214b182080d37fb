// Inside lib/media only: opens the supported encoders with the options of VideoEncoder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/encode/encoder.h"
#include "media/libav.h"

namespace vfm::media {

/// The properties of an encoder.
struct EncoderKind {
  const char* name;
  const char* preset_option;  ///< Name of the preset option, or null.
  const char* default_preset;
  bool even_size;   ///< Needs an even width and height for 4:2:0.
  bool full_range;  ///< Supports luma from 0 to 255.
  bool any_layout;  ///< Supports every layout of frames except gray.
  bool own_clock;   ///< Uses frame numbers as times.
  bool unclosable;  ///< Blocks if closed early, and is therefore never opened as a test.
};

/// Returns the properties of the encoder `name`. Throws Error{usage} if the encoder is unknown or
/// missing in this FFmpeg.
const EncoderKind& encoder_kind(const std::string& name);

/// Opens an encoder for pictures of this size and format. If encodes_on_gpu() is true, `gpu` is the
/// number of the GPU, otherwise -1. `device` is the result of cuda_device() for this GPU, or null
/// for a new context. Throws Error{runtime} with FFmpeg's reason.
CodecPtr open_encoder(const EncoderKind& kind, const EncodeOptions& options, int width, int height,
                      AVPixelFormat format, const Frame& like, int gpu = -1,
                      AVBufferRef* device = nullptr);

/// Returns FFmpeg's reason why the encoder does not open with `preset`, or "" if it opens. An empty
/// `preset` means the encoder's default preset.
std::string why_not_opened(const EncoderKind& kind, const std::string& preset, int bit_depth,
                           int gpu = -1);

/// Throws Error{usage} if the encoder does not take samples of `bit_depth` bits, or does not open
/// with `preset`. Tests each combination only once.
void check_encoder(const EncoderKind& kind, const std::string& preset, int bit_depth);

}  // namespace vfm::media
