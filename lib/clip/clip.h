// The library behind vfm-clip: cuts videos to clips, and writes shards of clips.
//
// Each video is decoded once. In that pass shots are found, clips are measured and encoded, and
// shards are written. Memory holds one clip and about a hundred frames, however long the video is.
// Videos run in parallel. If there are fewer videos than slots, several clips of a video are
// encoded at once, from frames in memory (clip/cut/crew.h). Outputs do not depend on the number of
// threads.
//
// A video's outputs are DIR/<h>-00000.tar, ... and DIR/<h>.json, where <h> is 16 hex digits of its
// contents' hash. The json is written last. A video is finished, and then skipped, if the json has
// the same settings and all shards exist (shard/receipt.h). Complete shards of an unfinished video
// are kept. Pictures, and small videos if there are many (clip/store/joined.h), share shards in
// input order, with one DIR/<h>.json. DIR/.vfm-clip.ledger keeps the hashes of sources
// (io/hash_ledger.h), so a run that has nothing to do reads no source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/progress.h"
#include "clip/cut/shape.h"
#include "clip/store/store.h"
#include "curate/shots/shot_detector.h"
#include "curate/shots/stitch.h"
#include "curate/shots/window_detector.h"
#include "io/manifest.h"
#include "media/colour/scaler.h"
#include "media/decode/hardware.h"
#include "media/sound/audio.h"
#include "share/slots.h"

namespace vfm::clip {

/// All that decides a video's clips and their bytes. It is part of each clip's key.
struct ClipRecipe {
  curate::ShotOptions shots;
  bool stitch = true;
  double stitch_threshold = curate::kStitchThreshold;
  /// With stitch: sound across the change moves the threshold (clip/cut/sound_across.h).
  bool stitch_sound = false;
  /// Identifies the model of ClipOptions::stitch_vectors and its rule: an object with "name",
  /// "hash" and more, without a path. Null: shots are stitched by their look.
  HeldJson stitch_model;
  /// Identifies ClipOptions::change_model, by "name" and "hash"; null except for
  /// Detector::transnetv2.
  HeldJson detector_model;
  double min_seconds = 0.5;  ///< shorter clips are left out, unless the video is a single shot
  double max_seconds = 60;   ///< longer shots are split; 0: never
  int stream = -1;           ///< container index; -1: as a player chooses
  std::string encoder;       ///< name in FFmpeg; empty: media::default_encoder()
  std::string preset;        ///< empty: the default for the encoder
  int quality = 18;          ///< media::EncodeOptions::quality
  media::AudioMode audio = media::AudioMode::drop;
  ClipSize size;            ///< unset: the source's
  Rational rate{0, 1};      ///< frames a second; 0: the source's frame times
  bool crop = false;        ///< cut off black bars around the video
  double stride = 0;        ///< clips of so many seconds, not shots; 0: shots
  bool deinterlace = true;  ///< deinterlace interlaced frames
  bool keep_hdr = false;    ///< make 10-bit clips of HDR sources, in their own colours
  /// For keep_hdr; empty: `encoder`, else media::default_ten_bit_encoder()
  std::string hdr_encoder;
  bool given = false;       ///< clips are the spans in ClipOptions::spans
  bool smart = false;       ///< encode only frames that cannot be copied (clip/cut/smart_cut.h)
  /// With smart: the only encoder for these frames; empty: one for each codec. Set by run().
  std::string smart_encoder;

  Json json() const;
};

/// Returns a vector for each picture, in order. Pictures are upright, in square pixels and SDR.
/// Called from any thread.
using PictureVectors =
    std::function<std::vector<std::vector<float>>(std::span<const media::RgbImage> pictures)>;

/// Which small videos of an input share shards (clip/store/joined.h): those after the first
/// kOwnShards videos, all, or none.
enum class Joining { many, all, none };
constexpr std::uint64_t kOwnShards = 1000;

/// The formats of list_shots() (clip/lists/list_shots.cc).
enum class ShotFormat { json, csv, edl, otio, chapters };

struct ClipOptions {
  ClipRecipe recipe;
  std::vector<std::string> inputs;   ///< for io::ManifestReader
  std::vector<std::string> spans;    ///< with recipe.given: files of spans (clip/lists/spans.h)
  PictureVectors stitch_vectors;     ///< with recipe.stitch_model
  curate::ChangeModel change_model;  ///< with recipe.detector_model
  std::string directory;
  ClipFormat format = ClipFormat::shards;
  Joining join = Joining::many;               ///< with ClipFormat::shards
  bool readable_names = false;                ///< keys as in clip/store/names.h
  ShotFormat shot_format = ShotFormat::json;  ///< of list_shots()
  std::vector<double> thresholds;             ///< list_shots(), json: makes a list for each
  /// For list_shots(), json: if set, gets tables for people instead of records being written.
  std::function<void(const std::string& lines)> print_table;
  bool force = false;   ///< rewrite existing outputs
  bool reread = false;  ///< read also sources whose hash is in the ledger
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;  ///< a shard ends before it exceeds this
  bool prune = false;  ///< remove outputs of sources that are not in the input
  /// Most bytes of frames waiting for encoders, for each slot (clip/cut/crew.h).
  std::uint64_t ahead_bytes = std::uint64_t{256} << 20;
  bool verify = false;        ///< compare each clip's times, first and last frame with the source
  std::string report;         ///< HTML file; empty: none
  std::string explain;        ///< list_shots(): HTML file; empty: none
  double unique_share = 0.9;  ///< find_unique(): least share shown by another; above 0, up to 1
  double most_seconds = 0;    ///< seconds used of each video, from its middle; 0: all
  /// Decodes the videos, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Throws Error{usage} if an encoder of the recipe is missing, or does not take the preset, quality
/// or depth. run() checks this and more of GPU encoders, before any work.
void check_encoders(ClipRecipe recipe);

/// Writes a {"kind":"shard",...} record to standard output for each shard, in input order, when the
/// shard and its video are on disk. Records of other kinds than video pass unchanged. Writes
/// failures to DIR/errors.jsonl, and returns their number. Throws Error{usage} for an impossible
/// recipe; Error if no clip was made; Stopped.
long run(const ClipOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

/// Parses the scores of --thresholds, at most 100: "0.3,0.4,0.5", or "0.3:0.5:0.1" for the same.
/// Throws Error{usage}.
std::vector<double> parse_thresholds(const std::string& text);

/// `vfm-clip shots`: prints a {"kind":"shots",...} line for each video; with `thresholds` one for
/// each threshold, with "threshold". Warns of videos that fail, and returns their number. Uses
/// recipe, inputs, hardware, shot_format, thresholds, print_table and explain.
long list_shots(const ClipOptions& options, share::Slots& slots, Progress& progress,
                io::ManifestWriter& manifest);

/// `vfm-clip unique`: decodes each source once for its signature (clip/unique/signature_file.h),
/// and compares all signatures; pictures only by their bytes. Writes DIR/sources.jsonl, a line for
/// each source, and DIR/duplicates.jsonl, a line for each pair. Then prints, in input order, the
/// unchanged records of the sources that stay (clip/unique/duplicate_groups.h). Other records pass.
/// Writes failures to DIR/errors.jsonl, and returns their number. Memory: the index
/// (clip/unique/duplicate_index.h) and about a kilobyte for each source. Throws Error if no source
/// is usable or the input is incomplete; Stopped. Uses recipe.stream, recipe.deinterlace, inputs,
/// directory, force, hardware and unique_share.
long find_unique(const ClipOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::clip
