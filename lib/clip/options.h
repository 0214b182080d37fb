// The options of vfm-clip and its verbs: the recipe that decides the clips, and all others.
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

/// The settings that decide a video's clips and their bytes. They are part of each clip's key.
struct ClipRecipe {
  curate::ShotOptions shots;
  bool stitch = true;
  double stitch_threshold = curate::kStitchThreshold;
  /// With `stitch`, sound across the change moves the threshold (clip/cut/sound_across.h).
  bool stitch_sound = false;
  /// Identifies the model of ClipOptions::stitch_vectors and the rule of comparison, by "name",
  /// "hash" and more, without a path. If null, shots are stitched by their look.
  HeldJson stitch_model;
  /// Identifies ClipOptions::change_model, by "name" and "hash". It is null for detectors other
  /// than Detector::transnetv2.
  HeldJson detector_model;
  double min_seconds = 0.5;  ///< shorter clips are left out, unless the video is a single shot
  double max_seconds = 60;   ///< longer shots are split; 0: never
  int stream = -1;           ///< container index; -1: as a player chooses
  std::string encoder;       ///< name in FFmpeg; empty: media::default_encoder()
  std::string preset;        ///< empty: the default for the encoder
  int quality = 18;          ///< media::EncodeOptions::quality
  media::AudioMode audio = media::AudioMode::drop;
  ClipSize size;            ///< unset: the source's size
  Rational rate{0, 1};      ///< frames a second; 0: the source's frame times
  bool crop = false;        ///< cut off black bars around the video
  double stride = 0;        ///< seconds of each clip; 0: clips are shots
  bool deinterlace = true;  ///< deinterlace interlaced frames
  bool keep_hdr = false;    ///< make 10-bit clips of HDR sources, in the source's colours
  /// For keep_hdr; empty: `encoder`, else media::default_ten_bit_encoder()
  std::string hdr_encoder;
  bool given = false;  ///< clips are the spans in ClipOptions::spans
  bool smart = false;  ///< encode only frames that cannot be copied (clip/cut/smart_cut.h)
  /// With `smart`, the only encoder for uncopied frames. If empty, each codec has an encoder. run()
  /// sets it.
  std::string smart_encoder;

  Json json() const;
};

/// Returns a vector for each picture, in order. Pictures are upright, in square pixels and SDR. The
/// function is called from any thread.
using PictureVectors =
    std::function<std::vector<std::vector<float>>(std::span<const media::RgbImage> pictures)>;

/// Tells which small videos of an input share shards (clip/store/joined.h). many: small videos
/// after the first kOwnShards videos.
enum class Joining { many, all, none };
constexpr std::uint64_t kOwnShards = 1000;

/// The formats of list_shots() (clip/lists/list_shots.cc).
enum class ShotFormat { json, csv, edl, otio, chapters };

struct ClipOptions {
  ClipRecipe recipe;
  std::vector<std::string> inputs;   ///< inputs for io::ManifestReader
  std::vector<std::string> spans;    ///< with recipe.given: files of spans (clip/lists/spans.h)
  PictureVectors stitch_vectors;     ///< used with recipe.stitch_model
  curate::ChangeModel change_model;  ///< used with recipe.detector_model
  std::string directory;
  ClipFormat format = ClipFormat::shards;
  Joining join = Joining::many;               ///< used with ClipFormat::shards
  bool readable_names = false;                ///< make keys of clip/store/names.h
  ShotFormat shot_format = ShotFormat::json;  ///< format for list_shots()
  std::vector<double> thresholds;             ///< list_shots(), json: makes a list for each
  /// If set, list_shots() with ShotFormat::json passes tables for people to this function, and
  /// writes no record.
  std::function<void(const std::string& lines)> print_table;
  bool force = false;   ///< rewrite existing outputs
  bool reread = false;  ///< read also sources whose hash is in the ledger
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;  ///< a shard ends before it exceeds this
  bool prune = false;  ///< remove outputs of sources that are not in the input
  /// The most bytes of frames that wait for encoders, for each slot (clip/cut/crew.h).
  std::uint64_t ahead_bytes = std::uint64_t{256} << 20;
  bool verify = false;  ///< compare each clip's times, first and last frame with the source
  std::string report;   ///< HTML file; empty: none
  std::string explain;  ///< list_shots(): HTML file; empty: none
  /// find_unique() leaves a video out if another video shows at least this share of it. The share
  /// is above 0 and at most 1.
  double unique_share = 0.9;
  double most_seconds = 0;  ///< seconds used of each video, from its middle; 0: all
  /// If null, software decodes, with the same result.
  const media::HardwareDecoder* hardware = nullptr;
};

}  // namespace vfm::clip
