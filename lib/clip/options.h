// The options of vfm-clip and its verbs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/rational.h"
#include "clip/cut/shape.h"
#include "clip/store/store.h"
#include "curate/shots/shot_detector.h"
#include "curate/shots/stitch.h"
#include "curate/shots/window_detector.h"
#include "media/colour/scaler.h"
#include "media/decode/hardware.h"
#include "media/sound/audio.h"

namespace vfm::clip {

/// The settings that affect a video's clips or their bytes. Each clip's key depends on the
/// settings.
struct ClipRecipe {
  curate::ShotOptions shots;
  bool stitch = true;
  double stitch_threshold = curate::kStitchThreshold;
  /// If true, sound raises or lowers `stitch_threshold` (clip/cut/sound_across.h).
  bool stitch_sound = false;
  /// Facts of the model that ClipOptions::stitch_vectors runs, such as "name" and "hash". The field
  /// "rule" is the rule of comparison. If `stitch_model` is null, shots are stitched by their look.
  HeldJson stitch_model;
  /// The "name" and "hash" of ClipOptions::change_model, or null without Detector::transnetv2.
  HeldJson detector_model;
  /// Minimum length of a clip in seconds. Shorter clips are left out, unless the video is a single
  /// shot.
  double min_seconds = 0.5;
  /// Maximum length of a clip in seconds, or 0 for no limit. Longer shots are split.
  double max_seconds = 60;
  /// Index of the stream in the container, or -1 for the stream that players choose.
  int stream = -1;
  std::string encoder;  ///< Name in FFmpeg, or empty for media::default_encoder().
  std::string preset;   ///< Preset of the encoder, or empty for the default.
  int quality = 18;
  media::AudioMode audio = media::AudioMode::drop;
  ClipSize size;        ///< Size of the clips, or unset for the source's size.
  Rational rate{0, 1};  ///< Frames per second, or 0 for the source's frame times.
  bool crop = false;    ///< If true, black bars are cut off.
  double stride = 0;    ///< Length of each clip in seconds, or 0 to cut at changes of shot.
  bool deinterlace = true;
  bool keep_hdr = false;  ///< If true, HDR sources give 10-bit HDR clips.
  /// Encoder for `keep_hdr`. run() sets `hdr_encoder` to `encoder`, or to
  /// media::default_ten_bit_encoder() if `encoder` is empty.
  std::string hdr_encoder;
  bool given = false;  ///< If true, clips are the spans of ClipOptions::spans.
  bool smart = false;  ///< If true, frames are copied where possible (clip/cut/smart_cut.h).
  /// If not empty, only this encoder is used for `smart`. If empty, each codec has its own encoder.
  /// If `smart` is true, run() sets `smart_encoder` to the given `encoder`.
  std::string smart_encoder;

  Json json() const;
};

/// Returns a vector for each picture, in order. Pictures are upright, in square pixels and SDR.
/// Thread-safety: any thread.
using PictureVectors =
    std::function<std::vector<std::vector<float>>(std::span<const media::RgbImage> pictures)>;

/// Says which small videos share shards (clip/store/joined.h). Joining::many joins the small videos
/// after the first kOwnShards videos of the input.
enum class Joining { many, all, none };
constexpr std::uint64_t kOwnShards = 1000;

/// The output formats of list_shots() (clip/lists/list_shots.cc).
enum class ShotFormat { json, csv, edl, otio, chapters };

struct ListedPart;

struct ClipOptions {
  ClipRecipe recipe;
  std::vector<std::string> inputs;
  std::vector<std::string> spans;  ///< Files with the spans for recipe.given (clip/lists/spans.h).
  PictureVectors stitch_vectors;   ///< Function that runs recipe.stitch_model.
  curate::ChangeModel change_model;  ///< Model for recipe.detector_model.
  std::string directory;
  const ListedPart* part = nullptr;  ///< If set, inputs has the list of this part.
  ClipFormat format = ClipFormat::shards;
  Joining join = Joining::many;  ///< Which small videos share shards.
  bool readable_names = false;   ///< If true, clips get readable keys (clip/store/names.h).
  ShotFormat shot_format = ShotFormat::json;
  std::vector<double> thresholds;  ///< list_shots() makes a list of shots for each threshold.
  /// If set, receives tables for people, which list_shots() makes instead of ShotFormat::json.
  std::function<void(const std::string& lines)> print_table;
  bool force = false;   ///< If true, existing outputs are rewritten.
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;  ///< Maximum size of a shard in bytes.
  bool prune = false;  ///< If true, outputs of sources that are not in the input are removed.
  /// The frames that wait for encoders take at most this number of bytes for each slot.
  std::uint64_t ahead_bytes = std::uint64_t{256} << 20;
  /// If true, the times, first frames and last frames of clips are compared with the source.
  bool verify = false;
  std::string report;   ///< Path of the HTML report, or empty.
  std::string explain;  ///< Path of the HTML page of list_shots(), or empty.
  /// find_unique() leaves out a video if a kept video shows at least this share (above 0, at most
  /// 1) of the left-out video.
  double unique_share = 0.9;
  /// Seconds to use from the middle of each video, or 0 for the whole video.
  double most_seconds = 0;
  /// Hardware decoder, or null to decode in software with the same results.
  const media::HardwareDecoder* hardware = nullptr;
};

}  // namespace vfm::clip
