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

/// Returns a rectangle of stored pictures (`width` x `height`) as "WIDTHxHEIGHT+X+Y" in the upright
/// picture.
std::string upright_box(const media::Rectangle& box, int width, int height,
                        const media::StreamInfo& info);

/// Adds all fields from "camera_motion" to "text_area_most". The fields are null if pictures are
/// too small.
void add_picture_measures(Json& facts, const curate::ClipMeasures& measures);

/// Adds the boxes "logo" and "proposed_crop", in pixels of the upright source. `cropped` is the
/// part of the source's pictures that the clip shows, or nullopt for whole pictures.
void add_boxes(Json& facts, const std::optional<curate::PictureMeasures>& measures,
               const std::optional<CroppedPicture>& cropped, const media::StreamInfo& info);

/// Adds the measures of loudness, silence and speech. The fields are null without sound.
void add_sound_measures(Json& facts, const std::optional<media::SoundMeasures>& sound);

}  // namespace vfm::clip
