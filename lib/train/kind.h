// A kind of training: what a run must know of it before there is a model, and how it makes its
// model.
//
// Each kind has a folder with all that is particular to it: its part of the recipe, its data and
// how they fit the recipe, its batches and its loss. The folders are diffusion/, codes/ (decoders)
// and tokenizer/. Only kind_of() chooses among the kinds. The interface that trains a model is
// train/step/objective.h.
// Thread-safety: kinds have no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/dit/architecture.h"
#include "models/dit/pipeline_stages.h"
#include "models/folder/model_config.h"
#include "train/cost/memory.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe.h"
#include "train/step/objective.h"

namespace vfm::train {
class FieldList;
struct RunOptions;

class Kind {
 public:
  virtual ~Kind() = default;

  /// The values of 'model.type' that belong to this kind.
  virtual std::vector<std::string_view> types() const = 0;
  /// What a model of that type is, for the manual: a sentence after the type's name.
  virtual std::string_view words(std::string_view type) const = 0;
  /// For the manual: what that type says about a key, in addition or with its own meaning.
  virtual std::string key_words(std::string_view type, std::string_view key) const;
  /// The section of recipes that only this kind has, "diffusion".
  virtual std::string_view section() const = 0;
  /// Takes a model to begin from and returns its 'model.type'; "" if it is of another kind.
  virtual std::string begin_from(ModelRecipe& model, const models::ModelConfig& begun) const = 0;
  /// The model's keys, which stand between 'model.type' and 'model.compute'.
  virtual void add_model_fields(FieldList& list, Recipe& recipe) const = 0;
  /// The sections that this kind alone has.
  virtual void add_sections(FieldList& list, Recipe& recipe) const = 0;
  /// Adds this kind's keys in 'data', before the others, and in 'validation', after them.
  virtual void add_data_fields(FieldList& /*list*/, DataRecipe& /*data*/) const {}
  virtual void add_validation_fields(FieldList& /*list*/, ValidationRecipe& /*validation*/) const {}
  /// The values that 'model.recompute' may have besides "auto", the least recomputation first.
  virtual std::span<const nn::Recompute> recomputes() const;
  /// Whether recipes of this kind have 'model.offload'.
  virtual bool can_offload() const { return true; }
  /// Sets the fields that follow from others.
  virtual void settle(Recipe& /*recipe*/) const {}
  /// Checks that involve several fields. A field that comes from the data is 0 until the data are
  /// known; that is not an error. Throws Error{usage}.
  virtual void check(const Recipe& recipe) const = 0;

  /// Changes from `earlier` to `recipe`, its next stage, that this kind refuses although other
  /// kinds may allow them, as "key: old -> new (why)". Both recipes have been checked.
  virtual std::vector<std::string> refused_of_stage(const Recipe& /*earlier*/,
                                                    const Recipe& /*recipe*/) const {
    return {};
  }

  /// The program that writes data of this kind.
  virtual std::string_view data_tool() const { return "vfm-pack"; }
  /// Whether the folder has samples in that split.
  virtual bool has_split(const std::string& folder, const std::string& split) const;
  /// Opens `split` of options.data, or the samples of options.synthetic. Throws Error{usage}.
  virtual std::unique_ptr<Dataset> open(const RunOptions& options,
                                        const std::string& split) const = 0;
  /// Opens another split of the data of `first`, with the encoders of `first` if it has any.
  std::unique_ptr<Dataset> open_other(const RunOptions& options, const Dataset& first,
                                      const std::string& split) const;
  /// Makes all folders of a blend use one scale of latents, before any sample is read. `sources`
  /// say how much of each folder training sees.
  virtual void unify(const RunOptions& /*options*/,
                     std::span<const std::unique_ptr<Dataset>> /*folders*/,
                     std::span<const DataSource> /*sources*/) const {}
  /// See Recipe.
  virtual double text_dropout(const Recipe& /*recipe*/) const { return 0; }
  virtual int text_padding(const Recipe& /*recipe*/) const { return 0; }
  virtual bool takes_text(const ModelRecipe& /*model*/) const { return true; }

  /// For use without data in place of Dataset::fit. Throws Error{usage} for fields to be set.
  virtual void fit_without_data(Recipe& recipe) const = 0;
  /// The part of a latent that is one token.
  virtual data::Patch patch(const ModelRecipe& /*model*/) const { return {1, 1, 1}; }
  /// The sizes of a sample that fills a pack, or nearly, for use without data.
  virtual data::Entry full_sample(const Recipe& recipe) const = 0;
  /// Bytes of one sample on its way from the disk into a batch.
  virtual double sample_bytes(const Recipe& recipe, const data::Entry& sample) const = 0;
  /// The number of ranges of tokens in the share of one rank of cp.
  virtual int cp_ranges() const { return 1; }
  /// Whether the model can be cut into the stages of a pipeline. If so, block_kinds() says which of
  /// its blocks are alike (models::block_kinds()), and part_work() returns the work of its parts
  /// for a recipe that is fitted to the data.
  virtual bool has_stages() const { return false; }
  /// 'model.num_layers'; null if the model has no stages.
  virtual int* blocks(ModelRecipe& /*model*/) const { return nullptr; }
  /// The diffusion network; null for other models.
  virtual const models::NetworkConfig* network(const ModelRecipe& /*m*/) const { return nullptr; }
  virtual std::vector<int> block_kinds(const ModelRecipe& /*model*/) const { return {}; }
  virtual models::PartWork part_work(const Recipe& recipe) const;
  /// The blocks of each chunk of the recipe's pipeline, balanced by their work.
  std::vector<int> balanced_stages(const Recipe& recipe) const;
  /// The products that can go in chunks ('parallel.tp_chunks').
  virtual std::vector<models::TpProduct> tp_products(const ModelRecipe& /*model*/) const {
    return {};
  }
  /// True if the samples of a pack go through the model one after the other, not as one.
  virtual bool one_by_one() const { return false; }
  /// The part of a Diffusers pipeline that a model of this kind begins from.
  virtual std::string_view pipeline_part() const { return "transformer"; }
  /// The matrices that get adapters, as 'lora' names them or by default. Empty if the models of
  /// this kind take no adapters.
  virtual std::vector<std::string> adapter_targets(const Recipe& /*recipe*/) const { return {}; }
  /// Whether its steps can be CUDA graphs.
  virtual bool has_graphs() const { return false; }
  /// Throws Error{usage}, naming the nearest possible layout, if the model cannot have this one.
  /// `recipe` is fitted to the data.
  virtual void check_layout(const Recipe& recipe, const nn::NetworkLayout& layout) const = 0;
  /// The model with its weights on `device`, initialized by the seed. Keeps the reference. `recipe`
  /// is fitted to the data (Dataset::fit). If ranks share the network, the objective has this
  /// rank's part. Throws what check_layout() throws.
  virtual std::unique_ptr<Objective> make_objective(const Recipe& recipe, nn::Recompute recompute,
                                                    Device device,
                                                    const nn::NetworkLayout& layout) const = 0;
};

/// The three kinds; each is defined in the kind.cc of its folder.
const Kind& diffusion_kind();
const Kind& code_kind();
const Kind& tokenizer_kind();

std::span<const Kind* const> kinds();  ///< all kinds
/// The kind of this 'model.type', which has been checked.
const Kind& kind_of(std::string_view type);

/// Whether a GPU may do steps as CUDA graphs, if a pass `exchanges` something with other ranks or
/// not. Neither that nor an offload can be recorded.
bool may_be_graphs(const ModelRecipe& model, nn::Recompute recompute, bool exchanges);

/// For fit_without_data(): throws Error{usage} if the value of the model's field is 0.
void need_without_data(int value, std::string_view field);

}  // namespace vfm::train
