// Turns the inputs of vfm-clip into items of work, in input order: videos, batches of small videos,
// and batches of pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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
#include "io/remote/remote_file.h"

namespace vfm::clip {

struct ClipSource {
  std::string path;
  std::string hash;  ///< XXH3-128 of the contents, or of the address of an endless source.
  HeldJson record;   ///< Record of the source in the input.
  std::uint64_t bytes = 0;
  const std::vector<GivenSpan>* spans = nullptr;  ///< Spans to cut, or null.
  /// The object of an address, or null for a file. While it exists, all decoders of the address
  /// read the version that `hash` tells of (media/far_source.h).
  std::shared_ptr<io::RemoteFile> object;
  bool endless = false;  ///< Set for an address that may have no end, as of rtsp.
};

struct ClipItem {
  enum class Kind { video, images, passed, duplicate, bad, joined };
  Kind kind = Kind::video;
  /// The sources of the item. Kinds `images` and `joined` have several sources, and other kinds
  /// have one. An input that was not read has no source.
  std::vector<ClipSource> sources;
  std::string input, message;  ///< Input, and message to report, for kinds `duplicate` and `bad`.
  Cause cause = Cause::other;  ///< Cause of the failure, for kind `bad`.
  bool unread = false;         ///< If true, the item is a `duplicate` that was not read.
  std::optional<std::int64_t> bucket = std::nullopt;  ///< Bucket of the input's record.
};

/// Returns the prefix of the names of an item's outputs. The prefix is 16 digits of a hash of the
/// contents. For joined videos the prefix is "joined-" and the digits.
std::string store_name(const ClipItem& item);
inline constexpr std::string_view kJoinedName = "joined-";

/// Returns the extension of a picture's member ("jpg", "png", ...), or "" if the path names no
/// picture.
std::string image_extension(const std::string& path);

/// Returns true if the first bytes of a WebP or PNG file mark an animation.
bool is_animation(std::string_view head);

/// Returns the number of threads for each decoder, which is above 1 if there are fewer inputs than
/// slots.
int decoder_threads(const std::vector<std::string>& inputs, int slots);

/// Reads inputs and forms items. If several files have the same contents, the first file in input
/// order is used. Neighbouring pictures of one format form a batch of up to `batch_bytes`.
/// Thread-safety: one thread at a time.
///
/// After join(), small videos (up to a sixteenth of `batch_bytes`) form batches, too. A larger
/// video is an item by itself. When a batch has reached a quarter of `batch_bytes`, the batch ends
/// after the next video whose hash is below a threshold. All batches end before they exceed
/// `batch_bytes`. If a video is added or removed, only batches near this video change
/// (content-defined chunking: Muthitacharoen, Chen, Mazieres, "A Low-Bandwidth Network File
/// System", 2001, section 3.1).
class ClipItems {
 public:
  /// `folder` is for temporary files. If `folder` is empty, sources are not read or hashed,
  /// duplicates are not found, and pictures are treated as videos.
  ClipItems(std::vector<std::string> inputs, std::uint64_t batch_bytes, const std::string& folder);
  /// Sets the spans of each video. A video without spans becomes an item of kind `duplicate` that
  /// is not read. Call use() before next().
  void use(GivenSpans* spans) { spans_ = spans; }
  /// Sets the ledger of known hashes. Without a ledger all files are read.
  void use(io::HashLedger* ledger) { ledger_ = ledger; }
  /// Reads the inputs of a part (parts/clip_list.h). Instead of the rules above, each bucket is a
  /// unit: its videos form one batch, and its pictures of one format another. Of files with the
  /// same contents in one bucket, the first is used. A video without a bucket is an item by itself.
  /// If a fault of a bucket's file may
  /// pass, only the faults of the bucket are items. Paths become absolute. Memory: the records of a
  /// bucket.
  void follow_list() { listed_ = true; }
  /// Lets small videos share shards if their records have only a path. The first `own` videos of
  /// the input do not share shards.
  void join(std::uint64_t own) { join_after_ = own; }
  std::optional<ClipItem> next();
  const io::InputStreams& streams() const { return reader_.streams(); }

 private:
  bool read_more();
  bool take_spans(ClipSource& source);
  bool identify(ClipSource& source, bool video);
  ClipItem classify(const io::Record& record);
  bool is_small(const ClipItem& item);
  bool gather(ClipItem& item);
  void gather_images(ClipItem& item);
  std::optional<std::string> earlier_path(const std::string& hash, const std::string& path);
  void enter(std::optional<std::int64_t> bucket);
  void gather_bucket(ClipItem&& first);
  std::optional<ClipItem> next_of_list();

  std::deque<ClipItem> ready_;
  io::ManifestReader reader_;
  std::uint64_t batch_bytes_;
  bool identify_;
  GivenSpans* spans_ = nullptr;
  io::HashLedger* ledger_ = nullptr;
  io::FirstNames seen_;  // hash -> path
  std::optional<std::uint64_t> join_after_;
  std::uint64_t videos_ = 0;
  ClipItem batch_{ClipItem::Kind::joined, {}, {}, {}};
  std::uint64_t batch_weight_ = 0;
  bool ended_ = false;
  bool listed_ = false;
  std::optional<std::int64_t> bucket_;                 // bucket of the last record
  std::map<std::string, std::string> seen_in_bucket_;  // hash -> path
  std::deque<ClipItem> units_;                         // items of the last bucket
};

}  // namespace vfm::clip
