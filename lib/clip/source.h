// The work of vfm-clip: the videos and batches of pictures that its inputs name, in order.
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
  std::string hash;  ///< XXH3-128 of its contents; of its name for a URL
  HeldJson record;   ///< as it came
  std::uint64_t bytes = 0;
  const std::vector<GivenSpan>* spans = nullptr;  ///< where spans are given
};

/// One piece of work.
struct ClipItem {
  enum class Kind { video, images, passed, duplicate, bad, joined };
  Kind kind = Kind::video;
  /// One source; many for images, and, as small videos, for joined; none if it was not read.
  std::vector<ClipSource> sources;
  std::string input, message;  ///< of duplicate and bad: the input, and what to report
  Cause cause = Cause::other;  ///< of bad
  bool unread = false;         ///< for duplicate: its contents are unknown
};

/// The prefix of the outputs' names for a video or batch of pictures: 16 digits of a hash of the
/// contents; for joined videos "joined-" and such digits.
std::string store_name(const ClipItem& item);
inline constexpr std::string_view kJoinedName = "joined-";

/// "jpg", "png", ... as the member is named, or "" if the path is not that of a picture.
std::string image_extension(const std::string& path);

/// True if the first bytes of a picture file mark it as an animation; WebP and PNG can be.
bool is_animation(std::string_view head);

/// Threads for one decoder: more than one if there are fewer inputs than slots.
int decoder_threads(const std::vector<std::string>& inputs, int slots);

/// Reads inputs and forms items. Sources are hashed here, one after the other, so that the first of
/// several files with the same contents counts, whatever -j. Neighbouring pictures of one format
/// are gathered up to `batch_bytes`. Thread-safety: one thread at a time.
///
/// Small videos, of up to a sixteenth of `batch_bytes`, are gathered, too, if join() asks for it;
/// larger videos between them stay single. A batch's end depends only on its videos: from a quarter
/// of `batch_bytes` on, it ends after a video whose hash is below a share that grows with the
/// batch, so that half of `batch_bytes` is usual; and it never exceeds `batch_bytes`. So when a
/// video comes or goes, batches near it change, and later ones are soon the same again
/// (content-defined chunking: Muthitacharoen, Chen, Mazieres, "A Low-Bandwidth Network File
/// System", 2001, section 3.1). A video counts 1/4096 of `batch_bytes` more than its size, and its
/// path's length, so that batches of tiny videos stay bounded, too.
class ClipItems {
 public:
  /// `folder`: for temporary files, if there are many inputs. Without one nothing is read or
  /// hashed, nothing is a duplicate, and pictures count as videos.
  ClipItems(std::vector<std::string> inputs, std::uint64_t batch_bytes, const std::string& folder);
  /// Gives each video its spans; a video without spans is bad, and not read. Call it before
  /// next().
  void use(GivenSpans* spans) { spans_ = spans; }
  /// Takes the hashes of files from it, and reads only unknown files. Without a ledger all are
  /// read.
  void use(io::HashLedger* ledger) { ledger_ = ledger; }
  /// Joins small videos that came as bare paths, except the first `own` videos of the input.
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
