// Samples as training sees them: latents, codes or clips, on disk or made up; their lengths, and
// the recipe fitted to them. Kind::open() (train/kind.h) makes one. Thread-safety: the const
// members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

/// When a sample is seen in training: pixels are taken at other places each time.
struct SeenAt {
  std::uint32_t step = 0, epoch = 0;
  std::uint32_t again = 0;  ///< how often it came in the step before (Dataset::tells_repeats())
};

/// One of the sets that a blend is of.
struct DataSource {
  std::string name;         ///< short, and its own
  std::uint64_t first = 0;  ///< the number of its first sample
  std::uint64_t samples = 0;
  double share = 1;  ///< of the samples that training sees
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Fills what the recipe leaves to the data (channels or vocabulary, text width; of made-up clips
  /// the largest size), and checks that every sample fits: channels, patch size, position tables,
  /// capacity of a pack, ranks that share it. Throws Error{usage} naming the field and the first
  /// sample that does not.
  void fit(Recipe& recipe) const;

  std::size_t size() const { return index().size(); }
  /// Of clips the latents' sizes as the recipe has them; a short clip has fewer frames.
  virtual const data::SampleIndex& index() const = 0;
  /// All that the index says of a sample; or, without reading a file, all but key and hash.
  data::Entry entry(std::size_t i) const { return index().entry(i); }
  data::Entry sizes(std::size_t i) const { return index().sizes(i); }
  /// latents.json, or what stands for it.
  virtual const Json& info() const = 0;

  /// The order in which training goes through them. Each epoch has some.
  virtual std::unique_ptr<data::EpochOrder> order(std::uint64_t seed, data::Packing packing) const;
  /// Of a blend (train/data/blend.h) the sets, at least two; of others none.
  virtual std::span<const DataSource> sources() const { return {}; }
  /// Whether a sample's key begins with its set's name, and random numbers tell apart what comes
  /// twice in a step: of a blend.
  virtual bool tells_repeats() const { return false; }
  /// The set of a sample: its place in sources(); 0 where there are none.
  std::size_t source_of(std::size_t i) const;

  /// Visual tokens of samples; of the first ones, at most so many. The former keeps the data's
  /// reference.
  data::LengthsOf lengths(const ModelRecipe& model) const;
  std::vector<std::int64_t> tokens(const ModelRecipe& model, std::size_t most = SIZE_MAX) const;
  /// Latents in model units, or codes; and text. Or pixels: at a place and time that are random for
  /// each step, or in the middle without one; of clips that are encoded here for each epoch. Throws
  /// Error naming the key: unreadable, or not finite.
  CleanSample read(std::size_t i, std::optional<SeenAt> seen = {}) const {
    return read_sample(i, seen);
  }
  /// What all samples have in common and is found out once, before the first of them is read: by
  /// all ranks together, or taken from `kept`, the train.json of the run that goes on (null: none).
  /// A collective. Throws Error{usage} for what does not fit that run.
  virtual void settle(dist::World& /*world*/, const Json& /*kept*/) {}
  /// What whoever begins a run on them should know, in sentences.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Another split, made ready by the same settle(); null: Kind::open() is to make it.
  virtual std::unique_ptr<Dataset> other_split(const std::string& /*split*/) const {
    return nullptr;
  }
  /// Whether reading computes on the GPU, which who trains leaves to it meanwhile (take_turn()).
  virtual bool reads_on_gpu() const { return false; }
  /// Bytes of the training's device that reading takes, for good and for a while.
  virtual double device_bytes() const { return 0; }
  /// About how much of files a sample is, by its entry alone: what reading is shared out by.
  virtual std::int64_t about_bytes(std::size_t i) const;
  /// Whether a sample can be read in pieces, by several; else read_piece() and put_together() throw
  /// Error. Of about_bytes() a piece is the part [begin, end); all of them together are what read()
  /// makes of the sample. Thrown is what read() throws.
  virtual bool has_pieces() const { return false; }
  virtual std::string read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const;
  virtual CleanSample put_together(std::size_t i, std::string_view bytes) const;
  /// Names the data: a hash of the tokenizer, the statistics and every sample's key and size.
  virtual std::string fingerprint() const { return index().fingerprint(info()); }
  /// What train.json says of them for generation (train/checkpoint/generation_facts.h):
  /// "tokenizer", "text_encoder", "latent_scale", and of which sizes they are, "trained". Nothing
  /// where there is nothing to draw with the model alone.
  virtual Json facts() const;

 private:
  /// fit(), but for the capacity of a pack, and for the ranks that share it.
  virtual void fit_model(Recipe& recipe) const = 0;
  virtual CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const = 0;
};

/// Logs the data's remarks, but for those that were `said`. For one rank.
void warn_of_data(const Dataset& data, const std::vector<std::string>& said = {});

/// Tokens of a sample of these sizes.
std::int64_t token_count(const data::Entry& entry, const ModelRecipe& model);

/// Calls check(entry) with the sizes of the first sample of each form, in the samples' order. Where
/// that throws Error it is called again with the key, which may have to be read from a file.
void check_forms(const data::SampleIndex& index,
                 const std::function<void(const data::Entry&)>& check);

}  // namespace vfm::train
