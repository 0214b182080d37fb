// Turns the inputs of vfm-clip into work, in order: videos, batches of small videos, batches of
// pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/held_json.h"
#include "clip/lists/spans.h"
#include "io/first_names.h"
#include "io/hash_ledger.h"
#include "io/manifest.h"

namespace vfm::clip {

/// A source file and its identity.
struct ClipSource {
  std::string path;
  std::string hash;  ///< XXH3-128 of its contents, or of the text of a URL
  HeldJson record;   ///< the input's record
  std::uint64_t bytes = 0;
  const std::vector<GivenSpan>* spans = nullptr;  ///< null without given spans
};

/// A piece of work for vfm-clip.
struct ClipItem {
  enum class Kind { video, images, passed, duplicate, bad, joined };
  Kind kind = Kind::video;
  /// Contains one source, several sources for images and joined (small videos), or no source if the
  /// input was not read.
  std::vector<ClipSource> sources;
  std::string input, message;  ///< duplicate, bad: the input, and the message to report
  Cause cause = Cause::other;  ///< bad: the cause
  bool unread = false;         ///< duplicate: its contents are unknown
};

/// Returns the prefix of the names of an item's outputs: 16 digits of a hash of the contents. For
/// joined videos "joined-" precedes the digits.
std::string store_name(const ClipItem& item);
inline constexpr std::string_view kJoinedName = "joined-";

/// Returns the extension of a picture's member ("jpg", "png", ...), or "" if the path does not name
/// a picture.
std::string image_extension(const std::string& path);

/// Returns true if the first bytes of a picture file (WebP or PNG) mark it as an animation.
bool is_animation(std::string_view head);

/// Returns the number of threads for one decoder, which is above 1 if there are fewer inputs than
/// slots.
int decoder_threads(const std::vector<std::string>& inputs, int slots);

/// Reads inputs and forms items. Sources are hashed in input order. If several files have the same
/// contents, the first file is used, at any -j. Neighbouring pictures of one format are gathered up
/// to `batch_bytes`. Thread-safety: one thread at a time.
///
/// After join(), small videos (up to a sixteenth of `batch_bytes`) are gathered, too; larger videos
/// between them stay single. Only the videos of a batch decide where the batch ends. From a quarter
/// of `batch_bytes` on, a batch ends after a video whose hash is below a threshold that grows with
/// the batch. Every batch ends at `batch_bytes` at the latest, usually at half of `batch_bytes`. If
/// a video is added or removed, only batches near this video change (content-defined chunking:
/// Muthitacharoen, Chen, Mazieres, "A Low-Bandwidth Network File System", 2001, section 3.1). The
/// size of a batch is the sum over its videos of file size, length of the path, and 1/4096 of
/// `batch_bytes`.
class ClipItems {
 public:
  /// `folder`: for temporary files, if there are many inputs. If `folder` is empty, nothing is read
  /// or hashed, nothing is a duplicate, and pictures are treated as videos.
  ClipItems(std::vector<std::string> inputs, std::uint64_t batch_bytes, const std::string& folder);
  /// Sets the spans of each video. A video without spans is not read, and its item is of kind bad.
  /// Call use() before next().
  void use(GivenSpans* spans) { spans_ = spans; }
  /// Takes hashes of known files from the ledger. Without a ledger all files are read.
  void use(io::HashLedger* ledger) { ledger_ = ledger; }
  /// Joins small videos named by bare paths, except the first `own` videos of the input.
  void join(std::uint64_t own) { join_after_ = own; }
  std::optional<ClipItem> next();
  const io::InputStreams& streams() const { return reader_.streams(); }

 private:
  bool read_more();
  bool take_spans(ClipSource& source);
  ClipItem classify(const io::Record& record);
  bool is_small(const ClipItem& item);
  bool gather(ClipItem& item);
  void gather_images(ClipItem& item);

  std::deque<ClipItem> ready_;
  io::ManifestReader reader_;
  std::uint64_t batch_bytes_;
  bool identify_;
  GivenSpans* spans_ = nullptr;
  io::HashLedger* ledger_ = nullptr;
  io::FirstNames seen_;  // hash -> path
  std::optional<std::uint64_t> join_after_;
  std::uint64_t videos_ = 0;  // so far
  ClipItem batch_{ClipItem::Kind::joined, {}, {}, {}};
  std::uint64_t batch_weight_ = 0;
  bool ended_ = false;
};

}  // namespace vfm::clip
