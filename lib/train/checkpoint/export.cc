// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/export.h"

#include <functional>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "io/safetensors.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_model.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_file.h"
#include "models/folder/model_config.h"
#include "models/folder/other_models.h"
#include "models/folder/tensor_form.h"
#include "models/tokenizer_family.h"
#include "train/checkpoint/export_pipeline.h"
#include "train/state/next_stage.h"

namespace vfm::train {
namespace {

/// In a bucket, what is there until the mark is.
constexpr const char* kBegun = "vfm-export.begun";

/// The form in which other programs keep a network of the class; null: as it is here.
const models::TensorForm* form_of_class(const std::string& type) {
  const models::Architecture* const found = models::architecture_of_class(type);
  return found && found->foreign ? found->foreign->written : nullptr;
}

/// f32, in the layout of diffusers: that loads a network whole in one type.
void write_network(const models::ModelFolder& model, const models::ModelFacts& facts,
                   const std::string& folder) {
  io::make_directories(folder);
  const models::ModelConfig read = models::read_model_config(model);
  Json config = model.config();
  models::tell_of_training(facts, read, config);
  io::write_file(io::join_path(folder, "config.json"), dump_json_pretty(config));
  const auto* network = std::get_if<models::NetworkConfig>(&read);
  const io::TensorSet& weights = model.weights();
  std::map<std::string, models::WrittenTensor> tensors;
  std::vector<io::TensorView> views;
  for (models::WrittenTensor& tensor : models::written_tensors(
           form_of_class(model.type()), network ? *network : models::NetworkConfig(), weights)) {
    views.push_back({tensor.name, "F32", tensor.shape, {}});
    tensors[tensor.name] = std::move(tensor);
  }
  Tensor held;
  io::write_safetensors(folder, models::kWeightsName, std::move(views), std::uint64_t{5} << 30,
                        [&](const io::TensorView& view, std::uint64_t begin, std::uint64_t end) {
                          held = models::written_values(
                              tensors.at(view.name), weights,
                              static_cast<std::int64_t>(begin / sizeof(float)),
                              static_cast<std::int64_t>((end - begin) / sizeof(float)));
                          return std::span<const std::byte>(held.data<std::byte>(), held.bytes());
                        });
}

/// For diffusers and for peft, which want other names in other files.
void write_adapters(const models::ModelFolder& model, const models::Origin& origin, bool average,
                    const std::string& folder) {
  const models::LoraFile file = models::open_adapters(model.folder(), average);
  io::make_directories(folder);
  models::write_adapters(file, origin.path, folder, form_of_class(model.type()));
}

/// Throws unless DIR is not there, empty, or ours to replace. Whether it is this very export.
bool is_there(const ExportOptions& options, const Json& mark) {
  if (!io::path_exists(options.folder)) return false;
  const std::string path = io::join_path(options.folder, models::kExportMark);
  if (io::file_exists(path)) {
    const Json found = parse_json(io::read_file(path), fmt::format("'{}'", path));
    if (found == mark) return true;
    if (options.force) return false;
    fail_usage("'{}' is an export of something else: choose another folder, or --force replaces it",
               options.folder);
  }
  if (io::is_bucket(options.folder) && io::is_file(io::join_path(options.folder, kBegun)))
    return false;  // of a killed export
  if (!io::entries(options.folder).empty())
    fail_usage("'{}' is there already, and is not an export: choose another folder",
               options.folder);
  return false;
}

/// What a user of diffusers would not expect.
void warn_of_padding(int padding, int of_pipeline) {
  if (padding != of_pipeline)
    log_warning(
        "diffusers' pipeline fills texts up to {} tokens with zero vectors, and this model was "
        "trained {}: its clips will not be those of vfm-generate",
        of_pipeline, padding == 0 ? std::string("without such") : fmt::format("with {}", padding));
}

/// What a pipeline of diffusers cannot do.
void warn_of_process(models::Process process, const models::Architecture& architecture,
                     const std::string& pipeline) {
  if (process != architecture.process)
    log_warning(
        "diffusers' {} samples models of '{}', and this one is of '{}': only vfm-generate samples "
        "the export",
        pipeline, architecture.process.name(), process.name());
}

/// All but the mark, in the temporary folder.
void write_all(const ExportOptions& options, const models::ModelFolder& model,
               const models::ModelFacts& facts, const PipelineParts& parts, bool adapters,
               const std::string& folder) {
  if (adapters) return write_adapters(model, facts.origin, options.average, folder);
  const bool pipeline = !parts.type.empty();
  write_network(model, facts, pipeline ? io::join_path(folder, "transformer") : folder);
  if (!pipeline) return;
  const models::NetworkConfig config = models::network_config_from_json(model.config());
  write_parts(parts, facts, config, folder, options.parts == ExportOptions::Parts::copy);
  warn_of_process(facts.sampling.process, *config.architecture, parts.type);
  warn_of_padding(facts.text_padding, config.architecture->foreign->pipeline->text_tokens);
}

/// Gives the folder what `write` writes, whole or not at all.
void write_whole(const std::string& folder, const Json& mark,
                 const std::function<void(const std::string& folder)>& write) {
  const std::string name = models::absolute_path_of(folder);
  const bool in_bucket = io::is_bucket(name);
  const std::string place =
      in_bucket ? name : io::join_path(io::dir_name(name), "." + io::base_name(name) + ".tmp");
  if (in_bucket) io::remove_file(io::join_path(place, models::kExportMark));
  io::remove_folder(place);
  io::make_directories(place);
  const std::string begun = io::join_path(place, kBegun);
  if (in_bucket) io::write_file(begun, "");
  write(place);
  io::write_file(io::join_path(place, models::kExportMark), dump_json_pretty(mark));
  if (in_bucket) {
    io::remove_file(begun);
    return;
  }
  io::remove_folder(name);  // empty, or an export
  io::rename_path(place, name);
}

Json export_once(const ExportOptions& options) {
  const std::string checkpoint = models::find_checkpoint(options.run);
  const models::ModelFolder model = models::open_model(
      checkpoint, {.types = models::model_class_names(), .average = options.average},
      options.under);
  const models::ModelFacts facts = models::read_facts(model, models::FactsFor::training);
  const std::string& type = model.type();
  const bool adapted = models::has_adapters(checkpoint), adapters = adapted && !options.merge;
  if (!options.merge && !adapted)
    fail_usage("'{}' has no adapters: leave out --no-merge", checkpoint);
  PipelineParts parts;
  const models::TokenizerFamily* const tokenizer = models::find_tokenizer_family(type);
  const models::Architecture* const architecture = models::architecture_of_class(type);
  if (architecture && !adapters)
    parts = find_parts(facts, models::network_config_from_json(model.config()), options);
  bool known = tokenizer && tokenizer->in_diffusers;
  std::string but;  // why the class that diffusers has is not enough
  if (architecture && architecture->foreign) {
    if (architecture->foreign->why_not)
      but = architecture->foreign->why_not(models::network_config_from_json(model.config()));
    known = but.empty();
  }

  const Json part_names = {"link", "copy", "none"};
  Json record = {{"kind", "model"},
                 {"path", options.folder},
                 {"class", adapters ? Json("LoRA") : Json(type)},
                 {"pipeline", parts.type.empty() ? Json() : Json(parts.type)},
                 {"weights", model.averaged() ? "ema" : "model"},
                 {"from", model.absolute_path()},
                 {"step", facts.step ? Json(*facts.step) : Json()}};
  if (adapted) record["adapters"] = adapters ? "separate" : "merged";
  Json mark = record;
  mark.erase("path");
  mark["complete"] = io::hash_file(io::join_path(checkpoint, "COMPLETE"));
  mark["parts"] = part_names[static_cast<std::size_t>(options.parts)];
  if (const Json stages = stages_of(models::read_train_json(checkpoint)); stages.size() > 1)
    mark["stages"] = stages;
  if (is_there(options, mark)) return record;

  models::verify_checkpoint(checkpoint);
  write_whole(options.folder, mark, [&](const std::string& folder) {
    write_all(options, model, facts, parts, adapters, folder);
  });
  if (!known && !adapters)
    log_warning("{}: '{}' is the network alone, for programs that know it",
                but.empty() ? fmt::format("diffusers has no class {}", type) : but, options.folder);
  else if (parts.type.empty() && architecture && !adapters &&
           options.parts != ExportOptions::Parts::none)
    log_warning("'{}' is the network alone, not a pipeline of diffusers: {}", options.folder,
                parts.why_not);
  return record;
}

}  // namespace

Json export_model(const ExportOptions& options) {
  models::refuse_other_models(options.run);
  models::refuse_part_of_other(options.run);
  return models::retry_if_gone(options.run, [&] { return export_once(options); });
}

}  // namespace vfm::train
