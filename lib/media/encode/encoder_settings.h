// Inside lib/media only: the known encoders, and how each takes our options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "media/encode/encoder.h"
#include "media/libav.h"

namespace vfm::media {

/// The properties that differ between encoders.
struct EncoderKind {
  const char* name;
  const char* preset_option;  ///< null: has none
  const char* default_preset;
  bool even_size;   ///< 4:2:0 needs an even width and height
  bool full_range;  ///< can say that luma is 0..255
  bool any_layout;  ///< keeps the layout of the frames, except gray
  bool own_clock;   ///< cannot take any time base: gets frame numbers instead of times
  bool unclosable;  ///< hangs when closed before the end of its first clip: no trial opening
};

/// The entry of a name. Throws Error{usage}, naming the available encoders, for an unknown one or
/// one missing in this FFmpeg.
const EncoderKind& encoder_kind(const std::string& name);

/// Opens an encoder for pictures of this size and format; on GPU `gpu` (encodes_on_gpu()); -1:
/// FFmpeg chooses. `device`: that GPU, from cuda_device(); null: the encoder makes its own context
/// there. Throws Error{runtime} with FFmpeg's reason.
CodecPtr open_encoder(const EncoderKind& kind, const EncodeOptions& options, int width, int height,
                      AVPixelFormat format, const Frame& like, int gpu = -1,
                      AVBufferRef* device = nullptr);

/// FFmpeg's reason for not opening it with this preset ("": the default); empty: it opens.
std::string why_not_opened(const EncoderKind& kind, const std::string& preset, int bit_depth,
                           int gpu = -1);

/// Throws Error{usage} unless the encoder takes samples of `bit_depth` bits, and opens with this
/// preset. Remembers the answer.
void check_encoder(const EncoderKind& kind, const std::string& preset, int bit_depth);

}  // namespace vfm::media
