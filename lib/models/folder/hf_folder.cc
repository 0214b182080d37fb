// SPDX-License-Identifier: Apache-2.0
#include "models/folder/hf_folder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/lazy_map.h"
#include "io/remote/address.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "models/folder/gguf_folder.h"
#include "models/folder/hf_defaults.h"
#include "models/folder/named_tensors.h"
#include "models/folder/other_models.h"
#include "models/folder/published_config.h"
#include "models/folder/published_decoder.h"
#include "models/folder/tensor_form.h"
#include "models/folder/weight_files.h"

namespace vfm::models {
namespace {

constexpr std::uint64_t kHashedWhole = std::uint64_t{64} << 20;
constexpr std::size_t kPiece = 4096;

/// Under the names of today.
std::unique_ptr<io::TensorSet> renamed(std::unique_ptr<io::TensorSet> source, std::string_view type,
                                       const Json& config) {
  std::vector<io::TensorView> tensors = named_today(*source, type, config);
  TensorCopies copies;
  if (const Architecture* const found = architecture_of_class(type); found && found->foreign) {
    refuse_other_tensors(*source);
    std::vector<std::string> names;
    for (const io::TensorView& tensor : source->tensors())
      names.push_back(tensor.name);
    if (const TensorForm* const form = form_of(found->foreign->tensors, names);
        form && !form->only_renames())
      copies = take_form(*form, network_config_from_json(config), tensors);
  }
  return std::make_unique<RenamedSet>(std::move(source), std::move(tensors), std::move(copies));
}

/// The pieces of a tensor that are hashed.
void add_hashed(std::span<const std::byte> data, bool whole,
                std::vector<std::span<const std::byte>>& pieces) {
  if (whole || data.size() <= 3 * kPiece) {
    pieces.push_back(data);
    return;
  }
  for (const std::size_t at : {std::size_t{0}, (data.size() - kPiece) / 2, data.size() - kPiece})
    pieces.push_back(data.subspan(at, kPiece));
}

std::string type_in(const Json& config) {
  if (config.is_object())
    for (const char* key : {"_class_name", "model_type"})
      if (config.contains(key) && config[key].is_string()) return config[key].get<std::string>();
  return {};
}

}  // namespace

Json read_config(const std::string& folder, const char* name) {
  const std::string path = io::join_path(folder, name);
  if (!io::file_exists(path)) {
    need_model_folder(folder);
    fail_usage("'{}' is not a model folder: it has no {}", folder, name);
  }
  Json config = as_usage([&] {
    return parse_json(io::read_file(path, io::kMostModelJson), fmt::format("'{}'", path));
  });
  if (!config.is_object()) fail_usage("'{}' is not a JSON object", path);
  return config;
}

std::string canonical_folder(const std::string& folder) {
  need_model_folder(folder);
  return io::canonical_path(folder);
}

std::string folder_above(const std::string& folder) {
  if (!io::is_remote(folder)) return io::join_path(folder, "..");
  return io::dir_name(std::string_view(folder).substr(0, folder.find_last_not_of('/') + 1));
}

HfComponent::HfComponent(std::string folder) : folder_(std::move(folder)) {
  refuse_other_models(folder_);
  const std::string path = io::join_path(folder_, "config.json");
  const auto has_weights = [&] { return as_usage([&] { return has_model_weights(folder_); }); };
  const bool there = io::file_exists(path);
  said_ = there || !has_weights() ? read_config(folder_, "config.json") : Json::object();
  type_ = type_in(said_);
  if ((type_.empty() || may_be_published_decoder(said_)) && has_weights() && take_published())
    return;
  if (is_weight_file(folder_))
    fail_usage("'{}' is of no model that works here by the names of its tensors", folder_);
  if (!there) read_config(folder_, "config.json");  // says that there is none
  if (type_.empty())
    fail_usage("'{}' names no model type: it has neither '_class_name' nor 'model_type'", path);
  config_ = with_defaults(type_, said_);
}

bool HfComponent::take_published() {
  auto weights = as_usage([&] { return open_model_weights(folder_); });
  if (may_be_published_decoder(said_) && is_published_decoder(*weights)) {
    type_ = kDecoderClass;
    config_ = published_decoder_config(*weights, said_);
    std::vector<io::TensorView> tensors = published_decoder_tensors(*weights, config_);
    weights_ = std::make_unique<RenamedSet>(std::move(weights), std::move(tensors));
    return true;
  }
  Json published = published_config(*weights);
  if (!published.is_object()) return false;
  type_ = type_in(published);
  // What somebody wrote there goes before what was guessed. It names no type, or would be believed;
  // and what is no field of the type makes no other model.
  const Json fields = with_defaults(type_, published);
  for (const auto& [key, value] : said_->items())
    if (!key.starts_with('_') && fields.contains(key)) published[key] = value;
  config_ = with_defaults(type_, std::move(published));
  weights_ = renamed(std::move(weights), type_, config_);
  return true;
}

std::string HfComponent::config_path() const {
  const std::string path = io::join_path(folder_, "config.json");
  return io::file_exists(path) ? path : folder_;
}

void HfComponent::need_type(const std::vector<std::string_view>& known) const {
  if (std::ranges::find(known, type_) != known.end()) return;
  std::string list;
  for (const std::string_view type : known)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", type);
  fail_usage("'{}' holds a model of type {}; what works here: {}", folder_, type_, list);
}

const io::TensorSet& HfComponent::weights() const {
  if (!weights_ && type_ == kGgufType && has_gguf_weights(folder_)) {
    if (has_model_weights(folder_))
      fail("'{}' has weights twice, as GGUF files and as others: leave those that are meant",
           folder_);
    weights_ = open_gguf_weights(folder_);
  }
  if (!weights_) weights_ = renamed(open_model_weights(folder_), type_, config_);
  return *weights_;
}

bool HfComponent::says(const char* field) const {
  return said_->contains(field);
}

std::string HfComponent::hash() const {
  return hash_model(type_, config_, weights());
}

std::string hash_model(std::string_view type, const Json& config, const io::TensorSet& weights) {
  Hasher hasher;
  hasher.update(type).update(std::string_view("\0", 1));
  // Keys with "_" are about the writer, not the model.
  Json fields = Json::object();
  for (const auto& [key, value] : config.items())
    if (!key.starts_with('_') && key != "transformers_version") fields[key] = value;
  hasher.update(dump_json(sorted(std::move(fields))));

  std::vector<const io::TensorView*> tensors;
  std::uint64_t total = 0;
  for (const io::TensorView& tensor : weights.tensors()) {
    tensors.push_back(&tensor);
    total += tensor.data.size();
  }
  std::ranges::sort(tensors, {}, &io::TensorView::name);
  const bool whole = total <= kHashedWhole;
  std::vector<std::span<const std::byte>> pieces;  // of all tensors
  for (const io::TensorView* tensor : tensors)
    add_hashed(tensor->data, whole, pieces);
  io::need_bytes(pieces);
  for (const io::TensorView* tensor : tensors) {
    hasher.update(fmt::format("\n{} {}", tensor->name, tensor->dtype));
    for (const std::int64_t size : tensor->shape)
      hasher.update(fmt::format(" {}", size));
    hasher.update("\n").update(tensor->scales.data(), tensor->scales.size_bytes());
    pieces.clear();
    add_hashed(tensor->data, whole, pieces);
    for (const std::span<const std::byte> piece : pieces)
      hasher.update(piece.data(), piece.size());
  }
  return hasher.hex128();
}

}  // namespace vfm::models
