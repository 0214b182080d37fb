// Samples as training sees them: latents, codes or clips, on disk or made up; their lengths, and
// the recipe fitted to them. Kind::open() (train/kind.h) makes a Dataset. Thread-safety: the const
// members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "data/order.h"
#include "data/sample_index.h"
#include "train/data/sample.h"
#include "train/recipe/recipe.h"

namespace vfm::dist {
class World;
}

namespace vfm::train {

/// When training sees a sample. Pixels are taken at other places each time.
struct SeenAt {
  std::uint32_t step = 0, epoch = 0;
  std::uint32_t again = 0;  ///< how often it came before in that step (Dataset::tells_repeats())
};

/// One of the sets of a blend.
struct DataSource {
  std::string name;         ///< short and unique name
  std::uint64_t first = 0;  ///< number of its first sample
  std::uint64_t samples = 0;
  double share = 1;  ///< its part of the samples that training sees
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Sets what the recipe leaves to the data: channels or vocabulary, text width, and for made-up
  /// clips the largest size. Checks that every sample fits channels, patch size, position tables,
  /// capacity of a pack, and the ranks that share it. Throws Error{usage} naming the field and the
  /// first sample that does not fit.
  void fit(Recipe& recipe) const;

  std::size_t size() const { return index().size(); }
  /// The index of the samples. For clips it has the sizes that the recipe gives their latents; a
  /// short clip has fewer frames.
  virtual const data::SampleIndex& index() const = 0;
  /// entry() is all that the index says of a sample. sizes() is the same without key and hash; it
  /// reads no file.
  data::Entry entry(std::size_t i) const { return index().entry(i); }
  data::Entry sizes(std::size_t i) const { return index().sizes(i); }
  /// latents.json, or what takes its place.
  virtual const Json& info() const = 0;

  /// The order in which training sees the samples. Each epoch has at least one.
  virtual std::unique_ptr<data::EpochOrder> order(std::uint64_t seed, data::Packing packing) const;
  /// The sets of a blend (train/data/blend.h), at least two; empty for other data.
  virtual std::span<const DataSource> sources() const { return {}; }
  /// True for a blend: sample keys begin with the name of their set, and random numbers differ
  /// between repeats of a sample in a step.
  virtual bool tells_repeats() const { return false; }
  /// The place in sources() of a sample's set; 0 without sources.
  std::size_t source_of(std::size_t i) const;

  /// Visual tokens of samples. lengths() keeps a reference to the data; tokens() returns the tokens
  /// of the first `most` samples.
  data::LengthsOf lengths(const ModelRecipe& model) const;
  std::vector<std::int64_t> tokens(const ModelRecipe& model, std::size_t most = SIZE_MAX) const;
  /// Reads latents in model units, or codes, with the text; or pixels. With `seen`, pixels come
  /// from a random place and time, which change with each step, or with each epoch for clips that
  /// are encoded. Without `seen` they come from the middle. Throws Error naming the key if the
  /// sample cannot be read or is not finite.
  CleanSample read(std::size_t i, std::optional<SeenAt> seen = {}) const {
    return read_sample(i, seen);
  }
  /// Determines what all samples have in common, before the first of them is read. All ranks
  /// compute it together, or take it from `kept`, the train.json of a resumed run (null: a new
  /// run). A collective. Throws Error{usage} if the data do not fit that run.
  virtual void settle(dist::World& /*world*/, const Json& /*kept*/) {}
  /// Remarks for the user who begins a run on these data, in sentences.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Another split, to which the same settle() applies. Null if Kind::open() has to make it.
  virtual std::unique_ptr<Dataset> other_split(const std::string& /*split*/) const {
    return nullptr;
  }
  /// True if reading computes on the GPU. The training thread then leaves the GPU to it
  /// (take_turn()).
  virtual bool reads_on_gpu() const { return false; }
  /// Bytes that reading takes on the training's device, permanent and temporary together.
  virtual double device_bytes() const { return 0; }
  /// Estimated bytes of a sample in files, by its entry alone. Reading is shared out by this
  /// number.
  virtual std::int64_t about_bytes(std::size_t i) const;
  /// True if several readers can read a sample in pieces. A piece is the part [begin, end) of
  /// about_bytes(). put_together() makes the sample that read() returns from all pieces in order.
  /// Both throw what read() throws, and Error if the data have no pieces.
  virtual bool has_pieces() const { return false; }
  virtual std::string read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const;
  virtual CleanSample put_together(std::size_t i, std::string_view bytes) const;
  /// True if the samples lie in an object store, where each read takes long. Their bytes are then
  /// fetched ahead, several at once (train/data/fetch_ahead.h).
  virtual bool is_remote() const { return false; }
  /// The number of the shard of a sample. The bytes of one shard are fetched together.
  virtual std::uint32_t shard_of(std::size_t i) const { return index().place(i).shard; }
  /// Fetches parts [begin, end) of about_bytes() as read_piece() does; without pieces they must be
  /// whole. An Error becomes the failure of a part, but is thrown if data::store_failed(). Throws
  /// Error if the data are not remote.
  virtual void fetch(std::span<data::SampleBytes> parts) const;
  /// read() of the bytes that fetch() gave for the whole sample.
  virtual CleanSample read_fetched(std::size_t i, const std::string& bytes,
                                   std::optional<SeenAt> seen) const;
  /// Leaves samples out of reading, before any is read (train/data/skipped_samples.h).
  void leave_out(std::set<std::size_t> samples) { left_out_ = std::move(samples); }
  bool is_left_out(std::size_t i) const { return left_out_.contains(i); }
  /// Identifies the data: a hash of the tokenizer, the statistics and every sample's key and size.
  virtual std::string fingerprint() const { return index().fingerprint(info()); }
  /// The facts about the data that train.json holds for generation
  /// (train/checkpoint/generation_facts.h): "tokenizer", "text_encoder", "latent_scale", and
  /// "trained", the sizes of samples. Empty if the model alone cannot generate.
  virtual Json facts() const;

 private:
  /// Does the work of fit() except the checks of pack capacity and of the ranks that share a pack.
  virtual void fit_model(Recipe& recipe) const = 0;
  virtual CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const = 0;

  std::set<std::size_t> left_out_;
};

/// Logs the data's remarks, without those in `said`. Call it on one rank.
void warn_of_data(const Dataset& data, const std::vector<std::string>& said = {});

/// Visual tokens of a sample of these sizes.
std::int64_t token_count(const data::Entry& entry, const ModelRecipe& model);

/// Calls check(entry) with the sizes of the first sample of each form, in the samples' order. If
/// that throws Error, calls it again with the key, which may have to be read from a file.
void check_forms(const data::SampleIndex& index,
                 const std::function<void(const data::Entry&)>& check);

}  // namespace vfm::train
