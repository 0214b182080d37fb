// Inside lib/media only: the known encoders, and how to open each with our options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/encode/encoder.h"
#include "media/libav.h"

namespace vfm::media {

/// The properties that differ between encoders.
struct EncoderKind {
  const char* name;
  const char* preset_option;  ///< null: no presets
  const char* default_preset;
  bool even_size;   ///< 4:2:0 needs an even width and height
  bool full_range;  ///< can tag luma as 0..255
  bool any_layout;  ///< keeps the layout of the frames, except gray
  bool own_clock;   ///< does not take every time base: gets frame numbers instead of times
  bool unclosable;  ///< hangs if closed before the end of its first clip, so it is not tried out
};

/// Returns the entry for a name. Throws Error{usage}, which lists the available encoders, if the
/// encoder is unknown or missing in this FFmpeg.
const EncoderKind& encoder_kind(const std::string& name);

/// Opens an encoder for pictures of this size and format. `gpu`: the GPU's number, if
/// encodes_on_gpu(); -1: FFmpeg chooses. `device`: from cuda_device() for that GPU; null: the
/// encoder creates its own context. Throws Error{runtime} with FFmpeg's reason.
CodecPtr open_encoder(const EncoderKind& kind, const EncodeOptions& options, int width, int height,
                      AVPixelFormat format, const Frame& like, int gpu = -1,
                      AVBufferRef* device = nullptr);

/// Returns FFmpeg's reason for not opening an encoder with this preset ("": the default), or "" if
/// the encoder opens.
std::string why_not_opened(const EncoderKind& kind, const std::string& preset, int bit_depth,
                           int gpu = -1);

/// Throws Error{usage} if the encoder does not take samples of `bit_depth` bits, or does not open
/// with this preset. Remembers the answer.
void check_encoder(const EncoderKind& kind, const std::string& preset, int bit_depth);

}  // namespace vfm::media
