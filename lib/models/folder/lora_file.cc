// SPDX-License-Identifier: Apache-2.0
#include "models/folder/lora_file.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/safetensors.h"
#include "io/torch_zip.h"
#include "models/decoder/decoder_lora.h"
#include "models/folder/hf_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_names.h"
#include "models/folder/other_models.h"
#include "models/folder/weight_files.h"
#include "ops/matmul/gemm.h"

namespace vfm::models {
namespace {

constexpr const char* kMetadataKey = "lora_adapter_metadata";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kWeight = ".weight";

/// The tensors of a file under the names of peft, without prefix, whatever program wrote it.
class AdapterSet : public io::TensorSet {
 public:
  AdapterSet(const std::string& file, std::optional<int> network) {
    set_path(file);
    if (io::base_name(file).find(kSuffix) != std::string::npos) {
      auto set = std::make_unique<io::SafetensorsSet>(file);
      metadata_ = set->metadata();
      file_ = std::move(set);
    } else {
      file_ = std::make_unique<io::TorchZip>(file);
    }
    const auto of_second = [](const io::TensorView& tensor) {
      return tensor.name.starts_with(kSecondLoraPrefix);
    };
    if (network && std::ranges::any_of(file_->tensors(), of_second)) network_ = network;
    for (io::TensorView tensor : file_->tensors()) {
      if (network_ && of_second(tensor) != (*network_ == 1)) continue;
      const AdapterName name = parse_adapter_name(
          std::string_view(tensor.name).substr(network_ == 1 ? kSecondLoraPrefix.size() : 0));
      tensor.name = name.module;
      if (name.part == AdapterPart::alpha) {
        if (tensor.elements() != 1)
          fail("'{}' has an alpha of {} numbers", file, tensor.elements());
        alphas_[name.module] = double{read_floats(tensor).floats()[0]};
        continue;
      }
      if (name.part == AdapterPart::a) tensor.name += kA;
      if (name.part == AdapterPart::b) tensor.name += kB;
      add(std::move(tensor));
    }
  }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::map<std::string, double>& alphas() const { return alphas_; }
  /// The network whose adapters these are, of a file that tells networks apart.
  std::optional<int> network() const { return network_; }

 private:
  std::unique_ptr<io::TensorSet> file_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, double> alphas_;  // by module
  std::optional<int> network_;
};

bool is_adapter_file(std::string_view name) {
  return name.ends_with(kSuffix) || name.ends_with(".bin") || name.ends_with(".pt") ||
         name.ends_with(".pth");
}

std::string file_of(const std::string& path) {
  if (is_adapter_file(path) && io::file_exists(path) && !io::is_folder(path)) return path;
  if (const std::string file = find_weight_file(path, {kLoraName, "adapter_model"}); !file.empty())
    return file;
  need_model_folder(path, "adapter");
  fail_usage(
      "'{}' holds no adapter: neither is it a .safetensors or .bin file, nor a folder with {} "
      "(diffusers) or adapter_model (peft) in one of these formats",
      path, kLoraName);
}

/// Of diffusers, or of peft; {} if there are none.
Json settings_of(const AdapterSet& set, const std::string& file) {
  if (set.metadata().contains(kMetadataKey))
    return lora_settings(set.metadata(), set.network() == 1 ? kSecondLoraPrefix : kLoraPrefix);
  const std::string beside = io::join_path(io::dir_name(file), "adapter_config.json");
  if (!io::file_exists(beside)) return Json::object();
  return parse_json(io::read_file(beside, io::kMostModelJson), "'" + beside + "'");
}

/// A tensor's name without its end; "" if it ends otherwise.
std::string module_of(std::string_view name, std::string_view end) {
  return name.ends_with(end) ? std::string(name.substr(0, name.size() - end.size())) : "";
}

void need_off(const Json& settings, const char* name, std::string_view what) {
  const auto found = settings.find(name);
  if (found == settings.end() || found->is_null() || *found == false || *found == "none") return;
  fail_usage("{} has '{}' {}: such adapters are not supported", what, name, found->dump());
}

}  // namespace

std::map<std::string, std::string> lora_metadata(const std::vector<std::string>& targets,
                                                 const LoraOptions& options) {
  const bool own = options.alpha > 0 && options.alpha != options.rank;
  const Json settings = {{"peft_type", "LORA"},
                         {"r", options.rank},
                         {"lora_alpha", own ? Json(options.alpha) : Json(options.rank)},
                         {"target_modules", targets}};
  Json packed = Json::object();
  for (const auto& [key, value] : settings.items())
    packed[std::string(kLoraPrefix) + key] = value;
  return {{kMetadataKey, dump_json(packed)}};
}

Json lora_settings(const std::map<std::string, std::string>& metadata, std::string_view prefix) {
  const auto found = metadata.find(kMetadataKey);
  if (found == metadata.end()) return Json::object();
  const Json packed = parse_json(found->second, fmt::format("'{}' of adapters", kMetadataKey));
  if (!packed.is_object()) return packed;
  Json settings = Json::object();
  for (const auto& [key, value] : packed.items())
    settings[key.starts_with(prefix) ? key.substr(prefix.size()) : key] = value;
  return settings;
}

std::map<std::string, double> lora_scales(const Json& settings,
                                          const std::map<std::string, std::int64_t>& ranks,
                                          std::string_view what) {
  if (!settings.is_object()) fail_usage("the settings of {} are not an object", what);
  for (const char* name : {"use_dora", "lora_bias", "bias", "use_qalora", "fan_in_fan_out"})
    need_off(settings, name, what);
  // How the adapters began does not matter, except where it changes the base as well.
  const auto begun = settings.find("init_lora_weights");
  if (begun != settings.end() && begun->is_string() && *begun != "gaussian" && *begun != "eva" &&
      *begun != "orthogonal")
    fail_usage("{} has 'init_lora_weights' {}: adapters of changed weights are not supported", what,
               begun->dump());
  if (const auto type = get_string(settings, "peft_type"); type && *type != "LORA")
    fail_usage("{} is of the type {}: only LORA is supported", what, *type);
  const auto alpha = get_number(settings, "lora_alpha");
  const bool stable = get_bool(settings, "use_rslora").value_or(false);
  std::map<std::string, double> scales;
  for (const auto& [module, rank] : ranks) {
    const double r = static_cast<double>(rank);
    scales[module] = alpha ? *alpha / (stable ? std::sqrt(r) : r) : 1;
  }
  const Json pattern = settings.value("alpha_pattern", Json::object());
  if (!pattern.is_object() && !pattern.is_null())
    fail_usage("the 'alpha_pattern' of {} is not an object", what);
  std::set<std::string_view> taken;  // of a module the first pattern counts, as in peft
  for (const auto& [key, value] : pattern.items()) {
    if (!value.is_number()) fail_usage("the alpha of {} for '{}' is not a number", what, key);
    bool used = false;
    for (auto& [module, scale] : scales) {
      const bool whole = key.starts_with('^');  // then the name is from its beginning
      if (whole ? key.substr(1) != module : !names_module(key, module)) continue;
      used = true;
      if (!taken.insert(module).second) continue;
      const double r = static_cast<double>(ranks.at(module));
      scale = value.get<double>() / (stable ? std::sqrt(r) : r);
    }
    // Patterns may be expressions, which are rare; to ignore one would change the result.
    if (!used) fail_usage("{} has an alpha for '{}', but no such adapter", what, key);
  }
  for (const auto& [module, scale] : scales)
    if (!std::isfinite(static_cast<float>(scale)))
      fail_usage("{} has no finite scale for '{}'", what, module);
  return scales;
}

LoraFile::LoraFile(const std::string& path, std::optional<int> network) : path_(file_of(path)) {
  const std::string what = "'" + path_ + "'";
  as_usage([&] {
    auto set = std::make_unique<AdapterSet>(path_, network);
    network_ = set->network();
    for (const io::TensorView& tensor : set->tensors()) {
      if (tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.name.ends_with(kA))
        ranks_[module_of(tensor.name, kA)] = tensor.shape[0];
      else if (!tensor.name.ends_with(kB))
        fail("{} holds '{}': there are MODULE{} and MODULE{}, or the same as lora_down and lora_up",
             what, tensor.name, kA, kB);
    }
    if (ranks_.empty() && !network_)
      fail("{} holds no adapters (MODULE{} and MODULE{})", what, kA, kB);
    settings_ = settings_of(*set, path_);
    scales_ = lora_scales(settings_, ranks_, what);
    for (const auto& [module, alpha] : set->alphas()) {
      const auto rank = ranks_.find(module);
      if (rank == ranks_.end()) fail("{} has an alpha of '{}', but no such adapter", what, module);
      scales_[module] = alpha / static_cast<double>(rank->second);
    }
    set_ = std::move(set);
  });
}

void LoraFile::use_values(std::unique_ptr<io::TensorSet> values) {
  std::vector<TensorTarget> targets;
  for (const io::TensorView& tensor : set_->tensors())
    targets.push_back({tensor.name, tensor.shape, {}});
  check_tensors(*values, targets);
  values_ = std::move(values);
}

std::vector<nn::AdapterShape> LoraFile::shapes(double strength) const {
  std::vector<nn::AdapterShape> shapes;
  for (const auto& [module, rank] : ranks_)
    shapes.push_back(
        {module, static_cast<int>(rank), static_cast<float>(strength * scales_.at(module))});
  return shapes;
}

void LoraFile::check(const NetworkConfig& config) const {
  check_matrices(network_matrices(config));
}

void LoraFile::check(const DecoderConfig& config) const {
  check_matrices(decoder_matrices(config));
}

void LoraFile::check_matrices(const std::vector<NetworkMatrix>& matrices) const {
  std::vector<TensorTarget> targets;
  for (const NetworkMatrix& m : matrices)
    if (const auto found = ranks_.find(m.module); found != ranks_.end()) {
      targets.push_back({m.module + std::string(kA), {found->second, m.columns}, {}});
      targets.push_back({m.module + std::string(kB), {m.rows, found->second}, {}});
    }
  as_usage([&] { check_tensors(set(), targets); });
}

std::int64_t LoraFile::parameters() const {
  std::int64_t count = 0;
  for (const io::TensorView& tensor : set().tensors())
    count += tensor.elements();
  return count;
}

std::string LoraFile::hash() const {
  std::string hash = hash_model("lora", Json(scales_), set());
  if (!network_) return hash;
  // Of both networks, in their order, whichever this is.
  const LoraFile other(path_, 1 - *network_);
  std::string others = hash_model("lora", Json(other.scales_), other.set());
  if (*network_ == 1) std::swap(hash, others);
  Hasher hasher;
  return hasher.update(hash).update(" ").update(others).hex128();
}

void LoraFile::load(const nn::ParameterList& adapters) const {
  std::vector<RangeTarget> targets;
  for (nn::Parameter* parameter : adapters)
    targets.push_back(range_target(*parameter));
  load_ranges(set(), targets);
}

bool LoraFile::adapts(std::string_view parameter) const {
  return ranks_.contains(module_of(parameter, kWeight));
}

void LoraFile::merge(std::string_view parameter, double strength, const Tensor& values) const {
  const std::string module = module_of(parameter, kWeight);
  const auto rank = ranks_.find(module);
  if (rank == ranks_.end()) return;
  const Tensor a = read_floats(*set().find(module + std::string(kA)));
  const Tensor b = read_floats(*set().find(module + std::string(kB))).clone();
  for (float& value : b.floats())
    value *= static_cast<float>(strength * scales_.at(module));
  const std::int64_t columns = values.size(1), inner = rank->second;
  ops::gemm(Device::cpu, values.size(0), columns, inner, {b.raw(), DType::f32, inner, false},
            {a.raw(), DType::f32, columns, false}, values.raw(), DType::f32, columns, true);
}

Json peft_config(Json settings, const std::string& base) {
  settings["peft_type"] = "LORA";
  settings["task_type"] = nullptr;
  settings["base_model_name_or_path"] = base.empty() ? Json() : Json(base);
  settings["inference_mode"] = true;
  settings["bias"] = "none";
  return settings;
}

void write_adapters(const LoraFile& file, const std::string& base, const std::string& folder,
                    const TensorForm* form) {
  if (form != nullptr && !(form->stacks.empty() && form->transposed.empty()))
    fail_usage(
        "the class of '{}' stores its matrices in another way than they have adapters here: merge "
        "the adapters",
        base);
  Json packed = Json::object();
  for (const auto& [key, value] : file.settings().items())
    packed[std::string(kLoraPrefix) + key] = value;
  const std::map<std::string, std::string> metadata = {{kMetadataKey, dump_json(packed)}};
  const std::pair<const char*, std::string_view> forms[] = {{kLoraName, kLoraPrefix},
                                                            {kPeftName, kPeftPrefix}};
  for (const auto& [name, prefix] : forms) {
    std::vector<io::TensorView> views = file.tensors().tensors();
    for (io::TensorView& view : views) {
      if (form != nullptr) view.name = name_there(*form, view.name).substr(form->prefix.size());
      view.name.insert(0, prefix);
    }
    io::write_safetensors(folder, name, std::move(views), ~std::uint64_t{0}, {},
                          name == kLoraName ? metadata : std::map<std::string, std::string>());
  }
  io::write_file(io::join_path(folder, "adapter_config.json"),
                 dump_json_pretty(peft_config(file.settings(), base)));
}

namespace {

template <class Network>
void adapt_any(Network& network, const std::vector<CountedAdapters>& adapters, bool separate) {
  for (const CountedAdapters& some : adapters)
    some.file.check(network.config());
  if (separate) {
    for (const CountedAdapters& some : adapters) {
      const auto before = static_cast<std::ptrdiff_t>(network.adapters().size());
      network.attach(some.file.shapes(some.strength), false);
      some.file.load({network.adapters().begin() + before, network.adapters().end()});
    }
    return;
  }
  for (const nn::Parameter* parameter : network.parameters()) {
    const auto adapts = [&](const CountedAdapters& some) {
      return some.file.adapts(parameter->name);
    };
    if (std::ranges::none_of(adapters, adapts)) continue;
    const Tensor values = parameter->read().to(Device::cpu).clone();
    for (const CountedAdapters& some : adapters)
      some.file.merge(parameter->name, some.strength, values);
    parameter->write(values);
  }
}

}  // namespace

void adapt(DiffusionNetwork& network, const std::vector<CountedAdapters>& adapters, bool separate) {
  adapt_any(network, adapters, separate);
}

void adapt(CausalDecoder& decoder, const std::vector<CountedAdapters>& adapters, bool separate) {
  adapt_any(decoder, adapters, separate);
}

}  // namespace vfm::models
