// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/measures.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/rounding.h"

namespace vfm::clip {
namespace {

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(six_digits(*value)) : Json();
}

}  // namespace

std::string upright_box(const media::Rectangle& box, int width, int height,
                        const media::StreamInfo& info) {
  const media::Rectangle r =
      media::rotate_rectangle(box, width, height, info.rotation, info.mirror);
  return fmt::format("{}x{}+{}+{}", r.width, r.height, r.x, r.y);
}

void add_picture_measures(Json& facts, const curate::ClipMeasures& m) {
  facts["camera_motion"] = six_digits(m.camera_motion);
  facts["object_motion"] = six_digits(m.object_motion);
  facts["doubled"] = six_digits(m.doubled);
  const auto& pictures = m.pictures;
  const auto put = [&](const char* name, double value) {
    facts[name] = pictures ? Json(six_digits(value)) : Json();
  };
  const curate::PictureMeasures p = pictures.value_or(curate::PictureMeasures{});
  put("focus", p.quality.focus);
  put("underexposed", p.quality.underexposed);
  put("overexposed", p.quality.overexposed);
  put("blockiness", p.quality.blockiness);
  put("banding", p.quality.banding);
  put("combing", p.quality.combing);
  put("text_area", p.text_area);
  put("text_area_most", p.text_area_most);
  put("bars", p.bars);
  const double logo = p.overlay ? static_cast<double>(p.overlay->width()) * p.overlay->height() /
                                      (static_cast<double>(p.whole.width()) * p.whole.height())
                                : 0;
  facts["logo_area"] = p.overlay_known ? Json(six_digits(logo)) : Json();
}

void add_boxes(Json& facts, const std::optional<curate::PictureMeasures>& measures,
               const std::optional<CroppedPicture>& cropped, const media::StreamInfo& info) {
  facts["logo"] = facts["proposed_crop"] = Json();
  if (!measures) return;
  const curate::PixelArea& whole = measures->whole;
  const bool part = cropped && cropped->picture.width == whole.width() &&
                    cropped->picture.height == whole.height();
  const auto box = [&](const curate::PixelArea& a) {
    media::Rectangle r{a.left, a.top, a.width(), a.height()};
    if (!part) return upright_box(r, whole.width(), whole.height(), info);
    r.x += cropped->picture.x, r.y += cropped->picture.y;
    return upright_box(r, cropped->width, cropped->height, info);
  };
  if (measures->overlay) facts["logo"] = box(*measures->overlay);
  if (measures->proposed_crop != whole) facts["proposed_crop"] = box(measures->proposed_crop);
}

void add_sound_measures(Json& facts, const std::optional<media::SoundMeasures>& sound) {
  facts["loudness"] = sound ? number_or_null(sound->loudness) : Json();
  facts["silence"] = sound ? Json(six_digits(sound->silence)) : Json();
  facts["speech"] = sound ? number_or_null(sound->speech) : Json();
}

}  // namespace vfm::clip
