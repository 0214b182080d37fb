// Inside lib/media only: what a Decoder's calls go to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "media/decoder.h"

namespace vfm::media {

/// As Decoder says.
struct Decoder::Body {
  virtual ~Body() = default;
  virtual const StreamInfo& info() const = 0;
  virtual bool next(Frame& frame) = 0;
  virtual void seek(std::int64_t pts) = 0;
  virtual std::int64_t corrupt() const = 0;
  virtual bool seeks() const = 0;
};

/// How large a stream is shown, by its other members. A sample aspect that no picture can be shown
/// by becomes 1:1.
void set_display_size(StreamInfo& info);

}  // namespace vfm::media
