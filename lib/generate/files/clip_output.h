// The output of clips: files with their records, or one Y4M stream on standard output.
//
// A clip's record (vfm-manifest(5), kind "clip") says how its bytes are made. This file reads
// "frames", "width", "height", "fps", "encoder" and "quality" from it. The record's "address" is a
// hash of everything that decides the clip's bytes. DIR/NAME.json holds it and is written after
// DIR/NAME.mp4. So an existing clip with the right address and hash is kept, and any other is made
// again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/rational.h"
#include "generate/decode/frames.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/manifest.h"
#include "media/container/y4m.h"

namespace vfm::generate {

/// Returns `encoder`, or the default encoder if it is empty, after encoding a frame with it. Throws
/// Error{usage} if it cannot be used.
std::string usable_encoder(std::string encoder);

/// Thread-safety: encode(), is_there(), hold(), claim() and keep() from any thread; the rest from
/// one.
class ClipFolder {
 public:
  /// `output` is a folder, made if need be, or "-". With "-" nothing is written to `manifest`.
  /// `progress` counts each frame. If it is not `first`, the object only makes files, and reports
  /// nothing: that of another rank, or of parts (generate/part_clips.h). Throws what
  /// usable_encoder() throws.
  ClipFolder(std::string output, std::string encoder, Progress& progress,
             io::ManifestWriter& manifest, bool first = true);

  bool to_stream() const { return output_ == "-"; }
  const std::string& folder() const { return output_; }
  const std::string& encoder() const { return encoder_; }  ///< empty for a stream
  std::string path_of(const std::string& name, const char* extension) const;

  /// Puts the encoder's size into the record if it differs from the clip's.
  void add_coded_size(Json& record) const;
  /// Returns whether the clip that `record` describes already exists and is undamaged. If so, puts
  /// its size and hash into the record.
  bool is_there(Json& record, const std::string& name) const;
  /// Returns the mp4 of a clip, encoded frame by frame as frames are decoded. Puts "bytes" and
  /// "xxh3" into the record, and shows its "name" in the progress.
  std::string encode(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                     Json& record) const;

  /// Writes the next clip of the stream, whose size and rate the first clip sets. Returns why the
  /// clip was left out; empty if it was written. Later clips may still follow. Throws Error if the
  /// stream ends in the middle of the clip.
  std::string stream(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                     const Json& record);
  /// Locks NAME until the result is destroyed. Waits if another program makes NAME.
  io::AtomicFile hold(const std::string& name) const;
  /// Locks NAME for the clip that `record` describes, which is to be made and then kept by keep().
  /// Returns nothing if it is_there(), unless `force`; then NAME has `record`. If several programs
  /// claim it, one makes it and the others wait. The record gets the keys of `extra` that it lacks.
  std::optional<io::AtomicFile> claim(Json& record, const std::string& name, bool force,
                                      const Json& extra) const;
  /// Writes the mp4 and its record, and ends the claim.
  void keep(io::AtomicFile claim, const std::string& mp4, Json& record, const std::string& name,
            const Json& extra) const;
  /// Writes the manifest record of a finished file, and logs it with log_clip().
  void report(const Json& record, std::optional<double> seconds);
  void add_error(const io::Fault& fault);
  /// Closes the log of errors and makes the contact sheet of the clips. Returns the number of
  /// errors. Throws Error if nothing was made; the message may blame `input`. `inputs` names the
  /// inputs: "prompts".
  long finish(const io::InputStreams& input, const char* inputs);

  io::ManifestWriter& manifest() const { return manifest_; }
  const std::vector<Json>& records() const { return records_; }  ///< records of the clips in files

 private:
  std::string output_, encoder_;
  Progress& progress_;
  std::optional<io::ErrorLog> error_log_;
  io::ManifestWriter& manifest_;
  long errors_ = 0, made_ = 0;
  std::vector<Json> records_;
  io::File stream_;
  std::optional<media::Y4mWriter> y4m_;
  std::tuple<int, int, Rational> stream_geometry_;  ///< width, height, rate of the first clip
};

/// Logs a finished file. `seconds` is the time to make it; none: it was kept.
void log_clip(const Json& record, std::optional<double> seconds);

/// Puts the keys of `extra` that `record` lacks into it.
void add_extra(Json& record, const Json& extra);

/// Throws Error if `latent` does not hold the clip that `record` describes.
void check_clip(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                const Json& record);

}  // namespace vfm::generate
