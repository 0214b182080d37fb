// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/picture_meter.h"

#include <algorithm>
#include <array>

#include "curate/measures/text_edges.h"

namespace vfm::curate {
namespace {

constexpr int kLeastSide = 32;
constexpr double kMostCut = 0.25;

PixelArea inside_bars(const SmallPicture& small, const media::Frame& frame) {
  const ActiveArea area = active_area(small);
  return {area.left * frame.width / kLumaSide, area.top * frame.height / kLumaSide,
          area.right * frame.width / kLumaSide, area.bottom * frame.height / kLumaSide};
}

double size_of(const PixelArea& area) {
  return static_cast<double>(area.width()) * area.height();
}

/// Cuts `overlay` off at even columns and rows, so that chroma does not shift.
PixelArea without(const PixelArea& picture, const PixelArea& overlay) {
  const auto up = [](int at) { return at + at % 2; };
  const auto down = [](int at) { return at - at % 2; };
  const std::array<PixelArea, 4> rests = {
      PixelArea{up(overlay.right), picture.top, picture.right, picture.bottom},
      PixelArea{picture.left, picture.top, down(overlay.left), picture.bottom},
      PixelArea{picture.left, up(overlay.bottom), picture.right, picture.bottom},
      PixelArea{picture.left, picture.top, picture.right, down(overlay.top)}};
  PixelArea best{};
  for (const PixelArea& rest : rests)
    if (rest.width() > 0 && rest.height() > 0 && size_of(rest) > size_of(best)) best = rest;
  return size_of(best) >= (1 - kMostCut) * size_of(picture) ? best : picture;
}

}  // namespace

void PictureMeter::add(const media::Frame& frame, const SmallPicture& small) {
  if (frame.width < kLeastSide || frame.height < kLeastSide) return;
  const LumaPlane plane = luma_plane(frame, room_);
  const PixelArea area = inside_bars(small, frame);
  if (pictures_++ == 0) whole_ = {0, 0, frame.width, frame.height};
  const PictureQuality q = measure_quality(plane, area);
  sum_.focus += q.focus, sum_.underexposed += q.underexposed, sum_.overexposed += q.overexposed;
  sum_.blockiness += q.blockiness, sum_.banding += q.banding, sum_.combing += q.combing;
  bars_.add(frame);
  reduce_luma(plane, reduced_);
  const double text = text_area(reduced_);
  text_ += text, text_most_ = std::max(text_most_, text);
  overlay_.add(reduced_);
}

std::optional<PictureMeasures> PictureMeter::result() const {
  if (pictures_ == 0) return std::nullopt;
  const auto n = static_cast<double>(pictures_);
  PictureMeasures m;
  m.quality = {sum_.focus / n,
               sum_.underexposed / n,
               sum_.overexposed / n,
               (sum_.blockiness - 1) / n,  // the sum begins with 1
               sum_.banding / n,
               sum_.combing / n};
  m.text_area = text_ / n, m.text_area_most = text_most_;
  m.whole = m.picture = whole_;
  if (const auto picture = bars_.picture())
    m.picture = {picture->x, picture->y, picture->x + picture->width, picture->y + picture->height};
  m.bars = 1 - size_of(m.picture) / size_of(m.whole);
  m.overlay_known = overlay_.can_tell();
  m.overlay = overlay_.find(m.picture);
  m.proposed_crop = m.overlay ? without(m.picture, *m.overlay) : m.picture;
  return m;
}

}  // namespace vfm::curate
