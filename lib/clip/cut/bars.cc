// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/bars.h"

#include "base/stop.h"
#include "curate/measures/bars.h"

namespace vfm::clip {
namespace {

constexpr int kFew = 24;  // fewer key frames are not enough

int look(const std::string& path, const media::DecodeOptions& decode, curate::BarFinder& finder) {
  media::Decoder decoder(path, decode);
  media::Frame frame;
  int frames = 0;
  for (; decoder.next(frame); ++frames) {
    check_stop();
    finder.add(frame);
  }
  return frames;
}

}  // namespace

media::Frame CroppedPicture::of(const media::Frame& frame) const {
  if (frame.width != width || frame.height != height) return frame;
  return media::crop_frame(frame, picture);
}

std::optional<CroppedPicture> find_picture(const std::string& path,
                                           const media::DecodeOptions& decode) {
  media::DecodeOptions all = decode;
  all.keep_hdr = false;  // black is measured in SDR
  all.use = media::FrameUse::glance;
  media::DecodeOptions keys = all;
  keys.keyframes_only = true;
  curate::BarFinder finder;
  if (look(path, keys, finder) < kFew) {
    finder = {};
    look(path, all, finder);
  }
  const auto picture = finder.picture();
  if (!picture) return std::nullopt;
  return CroppedPicture{*picture, finder.width(), finder.height()};
}

}  // namespace vfm::clip
