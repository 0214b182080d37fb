// The output of clips: files with their records, or one Y4M stream on standard output.
//
// A clip's record (vfm-manifest(5), kind "clip") says how its bytes are made: "frames", "width",
// "height", "fps", "encoder", "quality" are read from it here. Its "address" is a hash of all that
// decides its bytes: DIR/NAME.json holds it and is written after DIR/NAME.mp4, so a clip that is
// there with the right address and hash is kept, and any other is remade.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
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

/// `encoder`, or the default one if it is empty, after a frame was encoded with it. Throws
/// Error{usage} for one that cannot be used.
std::string usable_encoder(std::string encoder);

/// Thread-safety: encode(), is_there(), hold() and provide() from any thread; the rest from one.
class ClipFolder {
 public:
  /// `output` is a folder, made if need be, or "-"; then `manifest` is not written to. `progress`
  /// counts each frame. One that is not `first` of several ranks makes files alone, and reports
  /// nothing. Throws what usable_encoder() throws.
  ClipFolder(std::string output, std::string encoder, Progress& progress,
             io::ManifestWriter& manifest, bool first = true);

  bool to_stream() const { return output_ == "-"; }
  const std::string& folder() const { return output_; }
  const std::string& encoder() const { return encoder_; }  ///< empty for a stream
  std::string path_of(const std::string& name, const char* extension) const;

  /// Puts the encoder's size into the record if it differs from the clip's.
  void add_coded_size(Json& record) const;
  /// Whether the clip that `record` describes was written before and is unharmed; then its size and
  /// hash are put into the record.
  bool is_there(Json& record, const std::string& name) const;
  /// The mp4 of a clip, frame by frame as they are decoded. Puts "bytes" and "xxh3" into the
  /// record, whose "name" progress shows.
  std::string encode(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                     Json& record) const;

  /// Whether size and rate are the stream's, that is, its first clip's.
  bool fits_stream(const Json& record);
  /// The next clip of the stream. Returns why it was left out, after which others may still follow;
  /// empty: it was written. Throws Error if it ends in the middle of the clip.
  std::string stream(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                     const Json& record);
  /// Locks NAME until the result is destroyed; waits for another program that makes it.
  io::AtomicFile hold(const std::string& name) const;
  /// Provides the clip NAME in a file, with its record: kept if is_there(), unless `force`; else
  /// `make` returns the mp4. One program makes it, others wait. Keys of `extra` that the record
  /// lacks are put into it. Returns whether it was made.
  bool provide(Json& record, const std::string& name, bool force, const Json& extra,
               const std::function<std::string()>& make) const;
  /// Writes the manifest record of a finished file. `seconds`: the time to make it; nothing: it was
  /// kept.
  void report(const Json& record, std::optional<double> seconds);
  void add_error(const io::Fault& fault);
  /// Closes the log of errors and lays out the contact sheet of the clips. Returns the number of
  /// errors. Throws Error if nothing was made; `input` may be why. `inputs`: "prompts".
  long finish(const io::InputStreams& input, const char* inputs);

  const std::vector<Json>& records() const { return records_; }  ///< of the clips in files

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

/// Puts the keys of `extra` that `record` lacks into it.
void add_extra(Json& record, const Json& extra);

/// Throws Error if `latent` does not hold the clip that `record` describes.
void check_clip(const models::VideoTokenizer& tokenizer, const generate::Latent& latent,
                const Json& record);

}  // namespace vfm::generate
