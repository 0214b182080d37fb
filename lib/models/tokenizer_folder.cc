// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer_folder.h"

#include "base/error.h"
#include "io/folder.h"
#include "models/tokenizer_family.h"

namespace vfm::models {
namespace {

DType compute_of(const TokenizerConfig& config, Device device) {
  const std::string& name = config.compute;
  if (name != "" && name != "f32" && name != "bf16")
    fail_usage("'compute' is '{}': it must be f32 or bf16", name);
  const bool low = name.empty() ? device == Device::cuda : name == "bf16";
  return low ? DType::bf16 : DType::f32;
}

std::string existing_folder(const TokenizerConfig& config) {
  std::string folder = config.path;
  if (folder.empty()) fail("the tokenizer has no 'path'");
  if (!io::path_exists(folder))
    fail_usage("the tokenizer is not in '{}' any more; give its folder with --tokenizer DIR",
               folder);
  return folder;
}

}  // namespace

TokenizerFolder::TokenizerFolder(const TokenizerConfig& config, Device device)
    : folder(existing_folder(config)),
      compute(compute_of(config, device)),
      model(folder, {.part = "vae", .types = tokenizer_class_names()}) {
  const std::string& type = config.name;
  model.component().need_type({type});
}

std::string TokenizerFolder::hash(const TokenizerConfig& config) const {
  std::string own = model.hash();
  if (!config.hash.empty() && config.hash != own)
    fail_usage(
        "'{}' holds another tokenizer (hash {}) than the latents were made with ({}); give the "
        "folder of that one with --tokenizer DIR",
        folder, own, config.hash);
  return own;
}

}  // namespace vfm::models
