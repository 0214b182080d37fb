// SPDX-License-Identifier: Apache-2.0
#include "models/folder/weight_files.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "io/torch_zip.h"
#include "models/folder/scaled_weights.h"

namespace vfm::models {
namespace {

constexpr const char* kFormats[] = {"safetensors", "bin"};
const std::vector<std::string> kModelStems = {"diffusion_pytorch_model", "model", "pytorch_model"};

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> files;
  if (io::is_file(folder)) return files;
  for (const io::FolderEntry& entry : io::entries(folder))
    files.insert(entry.name);
  return files;
}

/// What stands between the two ends of a name, "" if they are not its ends.
std::string_view between(std::string_view name, std::string_view begin, std::string_view end) {
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return {};
  return name.substr(begin.size(), name.size() - begin.size() - end.size());
}

/// A variant is one word; a shard of one ends as "fp16-00001-of-00002" does.
bool is_variant(std::string_view word) {
  return !word.empty() && word.find('.') == std::string_view::npos &&
         word.find("-of-") == std::string_view::npos;
}

/// Variant -> the file or index that has it.
std::map<std::string, std::string> variants_in(const std::set<std::string>& files,
                                               const std::string& stem, const std::string& format) {
  std::map<std::string, std::string> found;
  for (const std::string& file : files) {
    std::string_view variant = between(file, stem + ".", "." + format);
    if (!is_variant(variant)) variant = between(file, stem + "." + format + ".index.", ".json");
    if (!is_variant(variant)) variant = between(file, stem + ".", "." + format + ".index.json");
    if (is_variant(variant)) found.emplace(variant, file);
  }
  return found;
}

/// The file of a folder with one of the extensions: of several the one with a name that releases
/// use. "" if there is none.
std::string find_other_file(const std::string& folder,
                            std::initializer_list<std::string_view> extensions, const char* kind) {
  std::set<std::string> files;
  for (const std::string& name : files_in(folder))
    if (std::ranges::find(extensions, io::extension(name)) != extensions.end()) files.insert(name);
  for (const char* usual : {"model.pt", "autoencoder.jit"})
    if (files.count(usual)) return io::join_path(folder, usual);
  if (files.size() > 1)
    fail("'{}' has several {}, '{}' and '{}' are two of them: leave one", folder, kind,
         *files.begin(), *files.rbegin());
  return files.empty() ? "" : io::join_path(folder, *files.begin());
}

std::string find_torch_file(const std::string& folder) {
  return find_other_file(folder, {"pt", "pth", "bin", "jit"}, "torch checkpoints");
}

bool is_safetensors(const std::string& name) {
  return name.ends_with(".safetensors") || name.find(".safetensors.index.") != std::string::npos;
}

}  // namespace

bool is_weight_file(const std::string& path) {
  return io::is_file(path);
}

std::string find_weight_file(const std::string& folder, const std::vector<std::string>& stems) {
  const std::set<std::string> files = files_in(folder);
  for (const char* format : kFormats)
    for (const std::string& stem : stems)
      for (const std::string& name : {stem + "." + format, stem + "." + format + ".index.json"})
        if (files.count(name)) return io::join_path(folder, name);
  for (const char* format : kFormats)
    for (const std::string& stem : stems) {
      const std::map<std::string, std::string> variants = variants_in(files, stem, format);
      if (variants.size() > 1)
        fail("'{}' has weights in several variants, '{}' and '{}' are two of them: leave one",
             folder, variants.begin()->second, variants.rbegin()->second);
      if (!variants.empty()) return io::join_path(folder, variants.begin()->second);
    }
  return {};
}

std::unique_ptr<io::TensorSet> open_tensor_names(const std::string& file) {
  const std::string name = io::base_name(file);
  if (is_safetensors(name)) return std::make_unique<io::SafetensorsSet>(file);
  if (name.ends_with(".gguf")) return std::make_unique<io::GgufFile>(file);
  return std::make_unique<io::TorchZip>(file);
}

std::unique_ptr<io::TensorSet> open_weight_file(const std::string& file) {
  std::unique_ptr<io::TensorSet> tensors = open_tensor_names(file);
  return is_safetensors(io::base_name(file)) ? take_scales(std::move(tensors)) : std::move(tensors);
}

bool has_model_weights(const std::string& folder) {
  return is_weight_file(folder) || !find_weight_file(folder, kModelStems).empty() ||
         !find_torch_file(folder).empty();
}

std::unique_ptr<io::TensorSet> open_model_weights(const std::string& folder) {
  std::string file = is_weight_file(folder) ? folder : find_weight_file(folder, kModelStems);
  if (file.empty()) file = find_torch_file(folder);
  if (file.empty()) file = find_other_file(folder, {"gguf"}, "GGUF files");
  if (!file.empty()) return open_weight_file(file);
  fail(
      "'{}' has no weights: neither diffusion_pytorch_model.safetensors, nor model.safetensors, "
      "nor these in a variant or in shards with an index, nor a torch checkpoint, nor a GGUF "
      "file",
      folder);
}

}  // namespace vfm::models
