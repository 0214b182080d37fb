// vfm-clip without its command line: videos in, shards of clips out.
//
// Each video is decoded once. While its frames stream by, shots are found, clips are measured and
// encoded, and shards of clips are written; memory holds the frames that wait for a decision (about
// a hundred) and one clip, whatever the video's length. Videos run in parallel. If there are fewer
// videos than slots, several clips of one are encoded at once, from frames that wait in memory
// (clip/cut/crew.h). Bytes do not depend on the number of threads.
//
// A video's outputs are DIR/<h>-00000.tar, ... and DIR/<h>.json, <h> being 16 hex digits of its
// contents' hash. The json is written last: a video is finished when the json has the same settings
// and all shards exist (shard/receipt.h), and is then skipped. Whole shards of an unfinished video
// are kept, and their clips are not re-encoded. Pictures, and small videos if there are many
// (clip/store/joined.h), are gathered in input order into shared shards with one DIR/<h>.json.
// DIR/.vfm-clip.ledger keeps the hashes of the sources' contents (io/hash_ledger.h), so a run that
// finds all finished reads no source.
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

/// Everything that decides which clips a video gives, and their bytes. Part of each clip's key.
struct ClipRecipe {
  curate::ShotOptions shots;
  bool stitch = true;
  double stitch_threshold = curate::kStitchThreshold;
  /// With stitch: sound that goes on, or breaks, moves the threshold (clip/cut/sound_across.h).
  bool stitch_sound = false;
  /// The identity of the model of ClipOptions::stitch_vectors, wherever it lies, and its rule: an
  /// object with "name" and "hash" among others. Null: shots are stitched by their look.
  HeldJson stitch_model;
  /// ClipOptions::change_model, with "name" and "hash"; null except for Detector::transnetv2.
  HeldJson detector_model;
  double min_seconds = 0.5;  ///< shorter clips are left out, unless a video is one single shot
  double max_seconds = 60;   ///< longer shots are split; 0: never
  int stream = -1;           ///< container index; -1: the one a player would choose
  std::string encoder;       ///< FFmpeg's name; empty: media::default_encoder()
  std::string preset;        ///< empty: the default for the encoder
  int quality = 18;          ///< media::EncodeOptions::quality
  media::AudioMode audio = media::AudioMode::drop;
  ClipSize size;            ///< none set: the source's
  Rational rate{0, 1};      ///< frames a second; 0: the source's, with all its times
  bool crop = false;        ///< cut off bars that are black all through the video
  double stride = 0;        ///< seconds: clips of this length instead of shots; 0: shots
  bool deinterlace = true;  ///< make whole pictures of interlaced ones
  bool keep_hdr = false;    ///< HDR sources give 10-bit clips in their own colours
  std::string hdr_encoder;  ///< of these; empty: `encoder`, else media::default_ten_bit_encoder()
  bool given = false;       ///< clips are the spans that ClipOptions::spans names
  bool smart = false;       ///< encode only frames that cannot be copied (clip/cut/smart_cut.h)
  /// With smart: the only encoder for these frames. Empty: one for each codec. run() sets it.
  std::string smart_encoder;

  Json json() const;
};

/// Returns the vectors of pictures in their order. Pictures are upright, in square pixels and SDR.
/// Called from any thread.
using PictureVectors =
    std::function<std::vector<std::vector<float>>(std::span<const media::RgbImage> pictures)>;

/// The small videos of an input that share shards (clip/store/joined.h): those after the first
/// kOwnShards, all, or none.
enum class Joining { many, all, none };
constexpr std::uint64_t kOwnShards = 1000;

/// The formats of list_shots() (clip/lists/list_shots.cc).
enum class ShotFormat { json, csv, edl, otio, chapters };

struct ClipOptions {
  ClipRecipe recipe;
  std::vector<std::string> inputs;   ///< io::ManifestReader's arguments
  std::vector<std::string> spans;    ///< files of spans (clip/lists/spans.h), with recipe.given
  PictureVectors stitch_vectors;     ///< with recipe.stitch_model
  curate::ChangeModel change_model;  ///< with recipe.detector_model
  std::string directory;
  ClipFormat format = ClipFormat::shards;
  Joining join = Joining::many;               ///< for shards
  bool readable_names = false;                ///< keys of clip/store/names.h
  ShotFormat shot_format = ShotFormat::json;  ///< of list_shots()
  std::vector<double> thresholds;             ///< of list_shots(), json: a list for each
  /// Of list_shots(), json: takes a table for people in place of records.
  std::function<void(const std::string& lines)> print_table;
  bool force = false;                         ///< rewrite what is there already
  bool reread = false;  ///< read all sources, also those whose hash is in the ledger
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;  ///< a shard ends before it grows over this
  bool prune = false;  ///< remove outputs of sources that the inputs do not name
  /// Most bytes of frames that wait for an encoder, for each slot (clip/cut/crew.h).
  std::uint64_t ahead_bytes = std::uint64_t{256} << 20;
  bool verify = false;        ///< prove each clip's times, first and last frame against the source
  std::string report;         ///< HTML file; empty: none
  std::string explain;        ///< of list_shots(): HTML file; empty: none
  double unique_share = 0.9;  ///< for find_unique(): the share that must be in another source;
                              ///< above 0, to 1
  double most_seconds = 0;    ///< seconds used of each video, from its middle; 0: all
  /// Decodes the videos, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Throws Error{usage} if the recipe's encoders are missing, or do not take the preset, quality or
/// depth. run() does so, too, before any work, and checks GPU encoders further.
void check_encoders(ClipRecipe recipe);

/// Writes a {"kind":"shard",...} record to standard output for each shard, in the order of the
/// inputs, when it and its video are durable. Records of kinds other than video pass through.
/// Failures are recorded in DIR/errors.jsonl; returns their number. Throws Error{usage} for an
/// impossible recipe, Error if no clip was made, Stopped.
long run(const ClipOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

/// The scores of --thresholds, at most 100: "0.3,0.4,0.5", or "0.3:0.5:0.1" for the same. Throws
/// Error{usage} for anything else.
std::vector<double> parse_thresholds(const std::string& text);

/// `vfm-clip shots`: prints a {"kind":"shots",...} line for each video, or for each of its
/// thresholds, with "threshold". Returns the number of videos that failed, each with a warning. It
/// uses recipe, inputs, hardware, shot_format, thresholds, print_table and explain.
long list_shots(const ClipOptions& options, share::Slots& slots, Progress& progress,
                io::ManifestWriter& manifest);

/// `vfm-clip unique`: decodes each source once for its signature (clip/unique/signature_file.h),
/// and compares all. Writes DIR/sources.jsonl, a line for each source, and DIR/duplicates.jsonl, a
/// line for each pair. Then prints, in input order, the unchanged records of the sources that stay
/// (clip/unique/duplicate_groups.h). Other records pass. Pictures are compared by bytes alone.
/// Failures go to DIR/errors.jsonl; returns their number. Memory holds the index
/// (clip/unique/duplicate_index.h) and about a kilobyte for each source. Throws Error if no source
/// could be used, or if the input broke off; Stopped. It uses recipe.stream, recipe.deinterlace,
/// inputs, directory, force, hardware and unique_share.
long find_unique(const ClipOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::clip
