// Files of adapters, as diffusers, peft and vfm-train write them:
//
//   transformer.MODULE.lora_A.weight   [rank, I]     the prefix may be peft's, or none; older
//   transformer.MODULE.lora_B.weight   [O, rank]     names: models/folder/lora_names.h
//
// B A is scaled by alpha / rank, or by alpha / sqrt(rank) with "use_rslora". alpha may be given by
// module or for all: in diffusers' metadata "lora_adapter_metadata", in peft's adapter_config.json
// beside the file, or as tensors MODULE.alpha. Without alpha the scale is 1. Not here: DoRA,
// biases, other kinds of adapters.
//
// Of a model with two networks (ModelFacts::boundary), adapters with the prefix "transformer_2."
// are for the second, and others in the same file for the first. A file without that prefix is for
// both. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/decoder/decoder.h"
#include "models/dit/foreign.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"

namespace vfm::models {

/// Name of the file of adapters in a folder and prefix of tensors' names, for diffusers.
inline constexpr const char* kLoraName = "pytorch_lora_weights";
inline constexpr std::string_view kLoraPrefix = "transformer.";
/// The same for peft.
inline constexpr const char* kPeftName = "adapter_model";
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

/// The file's metadata for adapters with these options on `targets`, as diffusers reads it: peft's
/// settings.
std::map<std::string, std::string> lora_metadata(const std::vector<std::string>& targets,
                                                 const LoraOptions& options);

/// The settings in such metadata, without the component's prefix; {} if there are none.
Json lora_settings(const std::map<std::string, std::string>& metadata,
                   std::string_view prefix = kLoraPrefix);

/// The scale of B A by module, from the settings of adapters, {"r", "lora_alpha", "alpha_pattern",
/// "use_rslora", ...}, and `ranks`, the rank by module. Throws Error{usage}, naming `what`, for
/// settings that change the computation in a way that is not supported. Pure; fuzzed.
std::map<std::string, double> lora_scales(const Json& settings,
                                          const std::map<std::string, std::int64_t>& ranks,
                                          std::string_view what);

/// The adapters of one file.
class LoraFile {
 public:
  /// `path` is a .safetensors or .bin file, or a folder with pytorch_lora_weights or adapter_model
  /// in one of these formats. `network`: of a model with two networks, the number of the one whose
  /// adapters are wanted. Throws Error{usage} if there is none, or for tensors that are not
  /// adapters.
  explicit LoraFile(const std::string& path, std::optional<int> network = {});

  /// Returns whether the file has adapters for the other network only.
  bool empty() const { return ranks_.empty(); }

  /// Replaces the values by others with the same names, without prefix, such as the averaged
  /// adapters of a run. Throws Error unless the names are the same.
  void use_values(std::unique_ptr<io::TensorSet> values);

  const std::string& path() const { return path_; }  ///< path of the file, for messages
  /// The shapes of the adapters, with scales of B A multiplied by `strength`.
  std::vector<nn::AdapterShape> shapes(double strength) const;
  /// Throws Error{usage} that lists all adapters whose matrix a model of this configuration does
  /// not have, or has with another shape.
  void check(const NetworkConfig& config) const;
  void check(const DecoderConfig& config) const;
  std::uint64_t bytes() const { return set().bytes(); }  ///< bytes of the values in the file
  std::int64_t parameters() const;                       ///< number of values
  /// A hash of 32 hex digits over names, scales and values, for both networks.
  std::string hash() const;
  /// Reads the values into the adapters of a network, which must be those of shapes(), or into the
  /// parts that this rank holds.
  void load(const nn::ParameterList& adapters) const;
  /// Unchanged from the file; {} if it has none.
  const Json& settings() const { return settings_; }
  const io::TensorSet& tensors() const { return set(); }
  /// Returns whether there is an adapter for the parameter of that name.
  bool adapts(std::string_view parameter) const;
  /// values += strength scale B A, if the parameter has an adapter. `values` is f32 on the CPU.
  /// Gives the same bits on any number of threads.
  void merge(std::string_view parameter, double strength, const Tensor& values) const;

 private:
  void check_matrices(const std::vector<NetworkMatrix>& matrices) const;
  const io::TensorSet& set() const { return values_ ? *values_ : *set_; }

  std::string path_;
  std::optional<int> network_;          // null: the file does not tell networks apart
  std::unique_ptr<io::TensorSet> set_;  // names without prefix
  std::unique_ptr<io::TensorSet> values_;
  std::map<std::string, std::int64_t> ranks_;  // by module
  std::map<std::string, double> scales_;
  HeldJson settings_;
};

/// Writes adapters into `folder`, for diffusers (pytorch_lora_weights) and for peft (adapter_model,
/// with adapter_config.json). `base` is the model that they adapt. With a form the names are those
/// of the form. Throws Error{usage} for a form with stacks or transposed matrices.
void write_adapters(const LoraFile& file, const std::string& base, const std::string& folder,
                    const TensorForm* form = nullptr);

/// The contents of peft's adapter_config.json: settings as lora_scales() takes them, and the base
/// model.
Json peft_config(Json settings, const std::string& base);

/// Adapters with a factor on each B A.
struct CountedAdapters {
  LoraFile file;
  double strength = 1;
};

/// Puts adapters on a network or decoder that is not trained. A matrix gets the sum of all its
/// adapters. They are merged into the weights in the type of computation, rounded once; or with
/// `separate` attached. Throws Error{usage} that lists what does not fit.
void adapt(DiffusionNetwork& network, const std::vector<CountedAdapters>& adapters, bool separate);
void adapt(CausalDecoder& decoder, const std::vector<CountedAdapters>& adapters, bool separate);

}  // namespace vfm::models
