// A kind of training: what a run must know of it before there is a model, and how the model is
// made.
//
// Of each there is a folder, which has all that is of that kind alone: its part of the recipe, its
// data and how it fits them, its batches and its loss. diffusion/, codes/ (autoregressive, of
// discrete latents), tokenizer/. kind_of() is the only place that chooses; what steps a model is
// train/step/objective.h. Thread-safety: kinds have no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/cost/memory.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe.h"
#include "train/step/objective.h"

namespace vfm::train {

class FieldList;
struct RunOptions;

/// A product of a block before which rows are gathered along tp, or after which they are summed:
/// the width of these rows, and the matrix's other side, of all ranks.
struct TpProduct {
  double width = 0, columns = 0;
};

class Kind {
 public:
  virtual ~Kind() = default;

  /// The values of 'model.type' that are of this kind.
  virtual std::span<const std::string_view> types() const = 0;
  /// The model's keys, which stand between 'model.type' and 'model.compute'.
  virtual void add_model_fields(FieldList& list, ModelRecipe& model) const = 0;
  /// The sections that this kind alone has.
  virtual void add_sections(FieldList& list, Recipe& recipe) const = 0;
  /// Keys of its own in 'data', before the others; and in 'validation', after them.
  virtual void add_data_fields(FieldList& /*list*/, DataRecipe& /*data*/) const {}
  virtual void add_validation_fields(FieldList& /*list*/, ValidationRecipe& /*validation*/) const {}
  /// What 'model.recompute' may be besides "auto", from the least on.
  virtual std::span<const models::Recompute> recomputes() const;
  /// Whether it has 'model.offload'.
  virtual bool can_offload() const { return true; }
  /// Sets the fields that follow from others.
  virtual void settle(Recipe& /*recipe*/) const {}
  /// Checks that involve several fields. A field of 0 that comes from the data is not yet known,
  /// not wrong. Throws Error{usage}.
  virtual void check(const Recipe& recipe) const = 0;

  /// What of `recipe` the next stage of the run of `earlier` may not have so, of the fields that it
  /// may otherwise change, as "key: old -> new (why)". Both have been checked.
  virtual std::vector<std::string> refused_of_stage(const Recipe& /*earlier*/,
                                                    const Recipe& /*recipe*/) const {
    return {};
  }

  /// The program that writes its data.
  virtual std::string_view data_tool() const { return "vfm-pack"; }
  /// Whether the folder has samples in that split.
  virtual bool has_split(const std::string& folder, const std::string& split) const;
  /// `split` of options.data, or what options.synthetic asks for. Throws Error{usage}.
  virtual std::unique_ptr<Dataset> open(const RunOptions& options,
                                        const std::string& split) const = 0;
  /// Another split of the data that `first` is of, with its encoders if it has some.
  std::unique_ptr<Dataset> open_other(const RunOptions& options, const Dataset& first,
                                      const std::string& split) const;
  /// Has the folders of a blend, of which training sees so much each, seen alike, before any sample
  /// is read: latents in one scale.
  virtual void unify(const RunOptions& /*options*/,
                     std::span<const std::unique_ptr<Dataset>> /*folders*/,
                     std::span<const DataSource> /*sources*/) const {}
  /// In place of Dataset::fit, where there is no data: throws Error{usage} naming what the recipe
  /// must then set.
  virtual void fit_without_data(Recipe& recipe) const = 0;
  /// The part of a latent that is one token.
  virtual data::Patch patch(const ModelRecipe& /*model*/) const { return {1, 1, 1}; }

  /// The sizes of a sample that fills a pack, or nearly, where there are no data.
  virtual data::Entry full_sample(const Recipe& recipe) const = 0;
  /// Bytes of one on its way from the disk into a batch.
  virtual double sample_bytes(const Recipe& recipe, const data::Entry& sample) const = 0;
  /// Into how many ranges of tokens the share of a rank of cp falls.
  virtual int cp_ranges() const { return 1; }
  /// Whether its model is cut into stages of a pipeline, and how many blocks each chunk of them
  /// gets, balanced by their work (models/dit/pipeline_stages.h). `recipe` is fitted to the data.
  virtual bool has_stages() const { return false; }
  virtual std::vector<int> balanced_stages(const Recipe& /*recipe*/) const { return {}; }
  /// Those that can go in chunks ('parallel.tp_chunks').
  virtual std::vector<TpProduct> tp_products(const ModelRecipe& /*model*/) const { return {}; }
  /// Whether the samples of a pack go through the model one after the other, not as one.
  virtual bool one_by_one() const { return false; }

  /// The part of a pipeline that such a model begins from.
  virtual std::string_view pipeline_part() const { return "transformer"; }
  /// Which matrices 'lora' names, or does by default; none: its models take no adapters.
  virtual std::vector<std::string> adapter_targets(const Recipe& /*recipe*/) const { return {}; }
  /// Whether its steps can be CUDA graphs.
  virtual bool has_graphs() const { return false; }
  /// Throws Error{usage}, naming the nearest layout, for one that the model cannot have, as
  /// make_objective() does. `recipe` is fitted to the data.
  virtual void check_layout(const Recipe& recipe, const models::NetworkLayout& layout) const = 0;
  /// With its weights on `device` as the seed says. Keeps the reference. `recipe` is fitted to the
  /// data (Dataset::fit).
  /// Of a network that ranks share it has this rank's part. Throws Error{usage}, naming the nearest
  /// layout, for one that the model cannot have.
  virtual std::unique_ptr<Objective> make_objective(const Recipe& recipe,
                                                    models::Recompute recompute, Device device,
                                                    const models::NetworkLayout& layout) const = 0;
};

/// Each in the kind.cc of its folder.
const Kind& diffusion_kind();
const Kind& code_kind();
const Kind& tokenizer_kind();

/// All of them.
std::span<const Kind* const> kinds();
/// That of a 'model.type', which has been checked.
const Kind& kind_of(std::string_view type);

/// For fit_without_data(): throws Error{usage} if the model's field is not set.
void need_without_data(int value, std::string_view field);

}  // namespace vfm::train
