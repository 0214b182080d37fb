// Inside lib/media only: the interface behind Decoder, for decoding in this process or in a child.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "media/decode/decoder.h"

namespace vfm::media {

struct Decoder::Body {
  virtual ~Body() = default;
  virtual const StreamInfo& info() const = 0;
  virtual bool next(Frame& frame) = 0;
  virtual void seek(std::int64_t pts) = 0;
  virtual std::int64_t corrupt() const = 0;
  virtual bool seeks() const = 0;
};

/// Computes the display size from the other members. Replaces an impossible sample aspect by 1:1.
void set_display_size(StreamInfo& info);

}  // namespace vfm::media
