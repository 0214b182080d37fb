// A folder of latents, as vfm-pack writes it and vfm-train reads it.
//
//   DIR/latents.json      {"version":1,"tokenizer":{…},"text_encoder":{…} or null,"channels":C,
//                          "mean":[C],"std":[C],"splits":{"train":{"samples":N,…},…}}; written
//                          last. Discrete latents have "vocabulary":V, and no mean and std
//   DIR/train/*.tar       KEY.latent.npy (fp16, C T H W), KEY.text.npy (fp16, tokens x dim),
//                          KEY.json; discrete: KEY.codes.npy (uint16, or int32 for V above
//                          65536; T H W) in place of KEY.latent.npy
//   DIR/train/index.jsonl one line a sample, in shard order: the length index
//   DIR/train/index.bin   the same for planning, where there are many samples (data/index_file.h)
//   DIR/val/...           the same, if there is a validation split
// Planning packs takes the index alone; it reads no tensor.
// Thread-safety: read() from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "data/entry.h"
#include "data/sample_index.h"

namespace vfm::shard {
struct Sample;
}

namespace vfm::data {

struct LatentSample {
  std::string key;
  std::vector<float> latent;        ///< (C, T, H, W); empty if discrete
  std::vector<std::int32_t> codes;  ///< (T, H, W), below vocabulary(); empty if continuous
  std::vector<float> text;          ///< (tokens, dim)
  HeldJson meta;                    ///< KEY.json
  std::int64_t bytes = 0;           ///< bytes that the sample takes in its tar
};

class LatentSet {
 public:
  /// `split` is "train" or "val". Throws Error{usage} if DIR is not a folder of latents, or has no
  /// such split.
  LatentSet(const std::string& directory, const std::string& split);
  ~LatentSet();
  LatentSet(LatentSet&&) noexcept;

  const Json& info() const;  ///< latents.json
  /// The number of codes of discrete latents; 0 if they are continuous.
  int vocabulary() const;
  std::size_t size() const { return index().size(); }
  const SampleIndex& index() const;
  /// Checks key, sizes and hash against the index. If the index has no hash of the sample, but the
  /// shard's notes (X.json) have one of the tar, the whole tar is read and compared once, and no
  /// sample of a tar that differs is given. Throws Error naming key and shard.
  LatentSample read(std::size_t i) const;
  /// These members read a sample in pieces, by several readers. A piece is a part [begin, end) of
  /// about_bytes(), and holds the same part of the bytes in the tar. about_bytes() estimates their
  /// number by the entry alone, without reading. put_together() takes all pieces in order.
  std::int64_t about_bytes(std::size_t i) const;
  std::string read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const;
  /// Fetches such parts. Those of one shard come together: from a bucket by few requests, and
  /// through the cache of the node (io/file_cache.h). An Error becomes the failure of its parts,
  /// but if the store does not answer it is thrown.
  void fetch(std::span<SampleBytes> parts) const;
  /// Whether DIR is an address, so that parts are best fetched ahead, several at once.
  bool is_remote() const;
  LatentSample put_together(std::size_t i, std::string_view bytes) const;
  /// Returns where these samples begin in the tars of their shards. Reads only these numbers of the
  /// tars' indexes. Throws Error.
  std::vector<std::uint64_t> offsets(std::span<const std::uint64_t> samples) const;

 private:
  struct State;
  void fetch_of_shard(std::uint32_t shard, std::span<SampleBytes* const> parts) const;
  LatentSample check(std::size_t i, shard::Sample sample, std::int64_t bytes) const;
  LatentSample take(std::size_t i, const shard::Sample& sample) const;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::data
