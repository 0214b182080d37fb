// Writes measures of full pictures and of sound into a clip's json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "clip/cut/bars.h"
#include "curate/measures/clip_meter.h"
#include "media/colour/resizer.h"
#include "media/decode/decoder.h"
#include "media/sound/sound_meter.h"

namespace vfm::clip {

/// Converts `box`, a rectangle in stored pictures of `width` x `height` pixels, to the text
/// "WIDTHxHEIGHT+X+Y" for the upright picture.
std::string upright_box(const media::Rectangle& box, int width, int height,
                        const media::StreamInfo& info);

/// Adds the fields from "camera_motion" to "logo_area", in the order of the json. Fields that are
/// measured on full pictures are null if the pictures are too small.
void add_picture_measures(Json& facts, const curate::ClipMeasures& measures);

/// Adds the boxes "logo" and "proposed_crop", in pixels of the upright source. `cropped` is the
/// part of the source's pictures that the clip shows, or nullopt for whole pictures.
void add_boxes(Json& facts, const std::optional<curate::PictureMeasures>& measures,
               const std::optional<CroppedPicture>& cropped, const media::StreamInfo& info);

/// Adds the measures of loudness, silence and speech. The fields are null without sound.
void add_sound_measures(Json& facts, const std::optional<media::SoundMeasures>& sound);

}  // namespace vfm::clip
