// vfm-clip without its command line: videos in, shards of clips out.
//
// Each video is decoded once. While its frames stream by, shots are found, clips are measured and
// encoded, and shards of clips are written; memory holds the frames that wait for a decision (about
// a hundred) and one clip, whatever the video's length. Videos run in parallel, each on its own;
// where they are fewer than slots, several clips of one are encoded at once, by frames that wait in
// memory for that (clip/crew.h). Bytes do not depend on how many run.
//
// A video's outputs are DIR/<h>-00000.tar, ... and DIR/<h>.json, <h> being 16 hex digits of its
// contents' hash. The json is written last: a video is finished when it stands there with the same
// settings and all shards (shard/receipt.h), and is then skipped. Of an unfinished video, whole
// shards are kept, and their clips are not re-encoded. Pictures are gathered, in input order, into
// shards of their own, DIR/<h>.json likewise; and small videos, where they are many
// (clip/joined.h). What the sources' contents hash to is kept in DIR/.vfm-clip.ledger
// (io/hash_ledger.h), so that a run that finds all finished reads none of them.
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
#include "base/slots.h"
#include "clip/shape.h"
#include "clip/store.h"
#include "curate/shot_detector.h"
#include "curate/stitch.h"
#include "curate/window_detector.h"
#include "io/manifest.h"
#include "media/audio.h"
#include "media/hardware.h"
#include "media/scaler.h"

namespace vfm::clip {

/// Everything that decides which clips a video gives, and their bytes. Part of each clip's key.
struct ClipRecipe {
  curate::ShotOptions shots;
  bool stitch = true;
  double stitch_threshold = curate::kStitchThreshold;
  /// With stitch: sound that goes on, or breaks, moves the threshold (clip/sound_across.h).
  bool stitch_sound = false;
  /// What the model of ClipOptions::stitch_vectors is, wherever it lies, and the rule by which it
  /// judges: an object with "name" and "hash" among others. Null: shots are stitched by their look.
  HeldJson stitch_model;
  /// What ClipOptions::change_model is, with "name" and "hash"; null but for Detector::transnetv2.
  HeldJson detector_model;
  double min_seconds = 0.5;  ///< shorter clips are left out, unless a video is one single shot
  double max_seconds = 60;   ///< longer shots are split; 0: never
  int stream = -1;           ///< container index; -1: the one a player would choose
  std::string encoder;       ///< FFmpeg's name; empty: media::default_encoder()
  std::string preset;        ///< empty: the default for the encoder
  int quality = 18;          ///< media::EncodeOptions::quality
  media::AudioMode audio = media::AudioMode::drop;
  ClipSize size;            ///< none: the source's
  Rational rate{0, 1};      ///< frames a second; 0: the source's, with all its times
  bool crop = false;        ///< cut off bars that are black all through the video
  double stride = 0;        ///< seconds: clips of this length instead of shots; 0: shots
  bool deinterlace = true;  ///< make whole pictures of interlaced ones
  bool keep_hdr = false;    ///< HDR sources give 10-bit clips in their own colours
  std::string hdr_encoder;  ///< of these; empty: `encoder`, else media::default_ten_bit_encoder()
  bool given = false;       ///< clips are the spans that ClipOptions::spans names
  bool smart = false;       ///< encode only what cannot be copied (clip/smart_cut.h)
  /// With smart: the only encoder for that. Empty: one for each codec. run() sets it.
  std::string smart_encoder;

  Json json() const;
};

/// The vectors of pictures that are upright, in square pixels and SDR, in their order. Called from
/// any thread.
using PictureVectors =
    std::function<std::vector<std::vector<float>>(std::span<const media::RgbImage> pictures)>;

/// Which small videos share shards (clip/joined.h): of an input those after the first kOwnShards,
/// all, or none.
enum class Joining { many, all, none };
constexpr std::uint64_t kOwnShards = 1000;

/// What --shots-only prints (clip/list_shots.cc).
enum class ShotFormat { json, csv, edl, otio, chapters };

struct ClipOptions {
  ClipRecipe recipe;
  std::vector<std::string> inputs;   ///< io::ManifestReader's arguments
  std::vector<std::string> spans;    ///< files of spans (clip/spans.h), with recipe.given
  PictureVectors stitch_vectors;     ///< with recipe.stitch_model
  curate::ChangeModel change_model;  ///< with recipe.detector_model
  std::string directory;
  ClipFormat format = ClipFormat::shards;
  Joining join = Joining::many;               ///< of shards
  bool readable_names = false;                ///< keys of clip/names.h
  ShotFormat shot_format = ShotFormat::json;  ///< of list_shots()
  std::vector<double> thresholds;             ///< of list_shots(), json: a list for each
  bool force = false;                         ///< rewrite what is there already
  bool check = false;  ///< read all sources, also those whose hash is in the ledger
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;  ///< a shard ends before it grows over this
  bool prune = false;  ///< remove what is of sources that the inputs do not name
  /// Of frames that wait for an encoder, for each slot (clip/crew.h).
  std::uint64_t ahead_bytes = std::uint64_t{256} << 20;
  bool verify = false;        ///< prove each clip's times, first and last frame against the source
  std::string report;         ///< HTML file; empty: none
  std::string explain;        ///< of list_shots(): HTML file; empty: none
  double unique_share = 0.9;  ///< of find_unique(): what must be in another source; above 0, to 1
  double most_seconds = 0;    ///< of each video only so many, from its middle; 0: all
  /// Decodes the videos, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Throws Error{usage} where the recipe's encoders are not there, or take no such preset, quality
/// or depth; of one that works on a GPU run() knows more. So does run(), before any work.
void check_encoders(ClipRecipe recipe);

/// Writes a {"kind":"shard",...} record to standard output for each shard, in the order of the
/// inputs, when it and its video are durable. Records of kinds other than video pass through. What
/// fails is recorded in DIR/errors.jsonl. Returns how many records that is. Throws Error{usage} for
/// a recipe that cannot be, Error if not one clip came out, Stopped.
long run(const ClipOptions& options, Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

/// "0.3,0.4,0.5", or "0.3:0.5:0.1" for the same: the scores of --thresholds, at most 100. Throws
/// Error{usage} for anything else.
std::vector<double> parse_thresholds(const std::string& text);

/// --shots-only: writes one {"kind":"shots",...} line a video to standard output and no file; with
/// thresholds one for each of them, with that "threshold". Returns the number of videos that
/// failed, each with a warning. Of the options it uses recipe, inputs, hardware, shot_format,
/// thresholds and explain.
long list_shots(const ClipOptions& options, Slots& slots, Progress& progress,
                io::ManifestWriter& manifest);

/// --unique: decodes each source once for its signature (clip/signature_file.h), compares all, and
/// writes DIR/sources.jsonl, a line for each source, and DIR/duplicates.jsonl, a line for each
/// pair; then to standard output, in the order of the input, the records of the sources that stay
/// (clip/duplicate_groups.h), as they came. Records of other kinds pass. Pictures are compared by
/// their bytes alone. What fails is recorded in DIR/errors.jsonl; returns how many records that is.
/// All but the signatures is in memory: see clip/duplicate_index.h, and a kilobyte or so for each
/// source. Throws Error if no source could be used, or the input broke off, for then who stays is
/// not known; Stopped. Of the options it uses recipe.stream, recipe.deinterlace, inputs, directory,
/// force, hardware and unique_share.
long find_unique(const ClipOptions& options, Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::clip
