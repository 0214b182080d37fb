// Files of adapters, as diffusers and peft write them, and vfm-train too:
//
//   transformer.MODULE.lora_A.weight   [rank, I]     the prefix may be peft's, or none; older
//   transformer.MODULE.lora_B.weight   [O, rank]     names: models/folder/lora_names.h
//
// B A is scaled by alpha / rank (by alpha / sqrt(rank) where "use_rslora" says so): alpha by module
// or for all, from the metadata "lora_adapter_metadata" of diffusers, from peft's
// adapter_config.json beside the file, or from tensors MODULE.alpha in it. Where there is none of
// them, by 1. Not here: DoRA, biases, other kinds of adapters.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/decoder/decoder.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"

namespace vfm::models {

/// Name of the file of adapters in a folder, as diffusers wants it, and their names' prefix there.
inline constexpr const char* kLoraName = "pytorch_lora_weights";
inline constexpr std::string_view kLoraPrefix = "transformer.";
/// The same as peft wants it.
inline constexpr const char* kPeftName = "adapter_model";
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

/// The file's metadata for adapters of these options on `targets`, as diffusers reads it: peft's
/// settings.
std::map<std::string, std::string> lora_metadata(const std::vector<std::string>& targets,
                                                 const LoraOptions& options);

/// The settings in such metadata, without the prefix of the component; {} if there are none.
Json lora_settings(const std::map<std::string, std::string>& metadata);

/// The settings of adapters, {"r", "lora_alpha", "alpha_pattern", "use_rslora", ...}, as modules ->
/// scale of B A; `ranks` is modules -> rank. Throws Error{usage}, naming `what`, for settings that
/// change what is computed in a way that is not known here. Pure; fuzzed.
std::map<std::string, double> lora_scales(const Json& settings,
                                          const std::map<std::string, std::int64_t>& ranks,
                                          std::string_view what);

/// The adapters of one file.
class LoraFile {
 public:
  /// `path` is a .safetensors or .bin file, or a folder with pytorch_lora_weights or adapter_model
  /// in one of these formats. Throws Error{usage}: none of them, or tensors that are no adapters.
  explicit LoraFile(const std::string& path);

  /// Takes the place of the values: adapters under the same names, without prefix; the averaged
  /// ones of a run. Throws Error unless the names are the same.
  void use_values(std::unique_ptr<io::TensorSet> values);

  const std::string& path() const { return path_; }  ///< of the file, for messages
  /// The adapters, B A times `strength`.
  std::vector<AdapterShape> shapes(double strength) const;
  /// Throws Error{usage}, listing them, if there are adapters of matrices that a model of this
  /// configuration has not, or of other shapes.
  void check(const NetworkConfig& config) const;
  void check(const DecoderConfig& config) const;
  std::uint64_t bytes() const { return set().bytes(); }  ///< of the values, in the file
  std::int64_t parameters() const;                       ///< how many numbers
  /// 32 hex digits of names, scales and values.
  std::string hash() const;
  /// Reads the values into adapters of a network, which are those of shapes(), or into the parts of
  /// them that this rank holds.
  void load(const nn::ParameterList& adapters) const;
  const Json& settings() const { return settings_; }  ///< as they came, {} if with none
  const io::TensorSet& tensors() const { return set(); }
  /// Whether there is an adapter of the parameter of that name.
  bool adapts(std::string_view parameter) const;
  /// values += strength scale B A, if there is one of the parameter; f32, on the CPU. The same bits
  /// for the same values, on any number of threads.
  void merge(std::string_view parameter, double strength, const Tensor& values) const;

 private:
  void check_matrices(const std::vector<NetworkMatrix>& matrices) const;
  const io::TensorSet& set() const { return values_ ? *values_ : *set_; }

  std::string path_;
  std::unique_ptr<io::TensorSet> set_;  // names without prefix
  std::unique_ptr<io::TensorSet> values_;
  std::map<std::string, std::int64_t> ranks_;  // by module
  std::map<std::string, double> scales_;
  HeldJson settings_;
};

/// Writes adapters into `folder` for diffusers (pytorch_lora_weights) and for peft (adapter_model,
/// with adapter_config.json), of a model in `base`.
void write_adapters(const LoraFile& file, const std::string& base, const std::string& folder);

/// The contents of peft's adapter_config.json: settings that lora_scales() takes, and the base.
Json peft_config(Json settings, const std::string& base);

/// Adapters, and how often they count: a factor on each B A.
struct CountedAdapters {
  LoraFile file;
  double strength = 1;
};

/// Puts adapters on a network or a decoder that is not trained, of a matrix the sum of all: merged
/// into its weights as it computes with them, rounded once, or `separate`: attached. Throws
/// Error{usage} listing what does not fit.
void adapt(DiffusionNetwork& network, const std::vector<CountedAdapters>& adapters, bool separate);
void adapt(CausalDecoder& decoder, const std::vector<CountedAdapters>& adapters, bool separate);

}  // namespace vfm::models
