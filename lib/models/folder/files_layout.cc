// The files of a Wan beside each other, as its authors, ComfyUI, Kijai and city96 publish them:
//
//   the transformer    a .safetensors, .gguf, .pth or .pt file, or an index of several; or
//   config.json
//                      with "WanModel" and diffusion_pytorch_model*.safetensors. Of A14B, two files
//                      with "high" or "high_noise" and "low" or "low_noise" in their names, or the
//                      folders high_noise_model and low_noise_model.
//   the VAE            Wan2.1_VAE.pth, wan_2.1_vae.safetensors, ...
//   the text encoder   models_t5_umt5-xxl-enc-bf16.pth, umt5_xxl_fp16.safetensors, ...
//   its tokenizer      beside it, in google/umt5-xxl, or within its file (models/text_encoder.h)
//
// What a file is follows from the names of its tensors. Files that are none of these are ignored.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "io/file.h"
#include "models/folder/hf_folder.h"
#include "models/folder/model_layout.h"
#include "models/folder/weight_files.h"

namespace vfm::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHigh = kFirstNetwork, kLow = kSecondNetwork;
constexpr std::string_view kHighFolder = "high_noise_model", kLowFolder = "low_noise_model";
const std::vector<std::string> kAuthorsStem = {"diffusion_pytorch_model"};

/// A part of a Wan: a tensor has one of the signs in its name.
struct PartOfWan {
  std::string_view part, name, example;
  std::array<std::string_view, 3> signs;
};

constexpr PartOfWan kPartsOfWan[] = {
    {kHigh, "transformer", "wan2.1_t2v_1.3B_bf16.safetensors", {"head.modulation"}},
    {kLow, "transformer for low noise", "wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors", {}},
    {"vae",
     "VAE",
     "wan_2.1_vae.safetensors",
     {"decoder.middle.0.residual.2.", "decoder.mid_block.resnets.0.norm1.gamma"}},
    // T5 has its bias in the first block only.
    {"text_encoder",
     "text encoder",
     "umt5_xxl_fp8_e4m3fn_scaled.safetensors",
     {"block.1.layer.0.SelfAttention.relative_attention_bias.", "blocks.1.pos_embedding.",
      "enc.blk.1.attn_rel_b."}},
};

const PartOfWan* part_named(std::string_view part) {
  const auto* const found = std::ranges::find(kPartsOfWan, part, &PartOfWan::part);
  return found == std::end(kPartsOfWan) ? nullptr : found;
}

/// Null if the tensors are of none.
const PartOfWan* part_of(const io::TensorSet& tensors) {
  for (const io::TensorView& tensor : tensors.tensors())
    for (const PartOfWan& one : kPartsOfWan)
      for (const std::string_view sign : one.signs)
        if (!sign.empty() && tensor.name.find(sign) != std::string::npos) return &one;
  return nullptr;
}

/// The channels that go into a transformer; 0 if they cannot be told.
std::int64_t channels_in(const io::TensorSet& tensors) {
  for (const io::TensorView& tensor : tensors.tensors())
    if (tensor.name.ends_with("patch_embedding.weight") && tensor.shape.size() == 5)
      return tensor.shape[1];
  return 0;
}

/// "transformer" or "transformer_2" by a word of the file's name; empty if it has none.
std::string_view expert_of(const std::string& file) {
  std::string word;
  std::vector<std::string> words;
  for (const char c : fs::path(file).stem().string() + '.') {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    words.push_back(std::exchange(word, {}));
  }
  const auto has = [&](std::string_view one) {
    return std::ranges::find(words, one) != words.end();
  };
  const bool high = has("high") || has("highnoise"), low = has("low") || has("lownoise");
  return high == low ? std::string_view() : high ? kHigh : kLow;
}

/// Files of weights, without the parts of an index and what the authors' config.json is of.
std::vector<std::string> files_of_weights(const std::string& folder, bool has_config) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = io::extension(name);
    const bool weights = extension == "safetensors" || extension == "gguf" || extension == "pth" ||
                         extension == "pt";
    const bool index = name.ends_with(".safetensors.index.json");
    if (!(index || (weights && name.find("-of-") == std::string::npos))) continue;
    if (has_config && name.starts_with(kAuthorsStem[0])) continue;
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

class FilesOfWan final : public ModelLayout {
 public:
  explicit FilesOfWan(const std::string& path) : ModelLayout(path) {
    const bool has_config = find_folders();
    for (const std::string& file : files_of_weights(path, has_config))
      take(file);
    place_transformers();
  }

  /// Whether it is a Wan, and not one part of it with a config.json.
  bool is_one() const { return paths_.size() > (by_folder_ ? 1 : 0); }

  bool is_pipeline() const override { return true; }
  bool is_files() const override { return true; }
  std::string type() const override {
    return of_images() ? "WanImageToVideoPipeline" : "WanPipeline";
  }
  std::vector<std::string> networks() const override {
    if (!of_two_) return {std::string(kHigh)};
    return {std::string(kHigh), std::string(kLow)};
  }
  /// Of the authors' configurations.
  double boundary() const override { return of_images() ? 0.9 : 0.875; }
  bool has(const std::string& part) const override {
    return part == "tokenizer" ? paths_.contains("text_encoder") : paths_.contains(part);
  }
  bool flag(const std::string& name) const override {
    return name == "expand_timesteps" && channels_ == kOfTi2v;
  }
  std::string folder_of(const std::string& part) const override {
    const auto found = paths_.find(part == "tokenizer" ? "text_encoder" : part);
    const bool expert = part == kHigh || part == kLow;
    const std::string_view other = part == kHigh ? kLow : kHigh;
    const bool alone = expert && of_two_ && !paths_.contains(std::string(other));
    if (found != paths_.end() && !alone) return found->second;
    const PartOfWan* const missing = part_named(alone && found != paths_.end() ? other : part);
    if (!missing) fail_usage("the files in '{}' have no component '{}'", folder(), part);
    std::vector<std::string> there;
    for (const auto& [name, path] : paths_)
      there.push_back(fmt::format("'{}' is the {}", io::base_name(path), part_named(name)->name));
    std::string others;
    for (const std::string& file : others_)
      others += fmt::format("; '{}' is no part of a Wan", io::base_name(file));
    for (const std::string& why : unreadable_)
      others += fmt::format("; a file cannot be used: {}", why);
    fail_usage("'{}' has no {} of Wan, such as {}: {}{}", folder(), missing->name, missing->example,
               listed(std::vector<std::string_view>(there.begin(), there.end()), " and "), others);
  }

 private:
  /// TI2V-5B is the only one whose latents have 48 channels. I2V has a mask and a latent besides.
  static constexpr std::int64_t kOfTi2v = 48, kOfImages = 36;

  bool of_images() const { return channels_ == kOfImages; }

  /// Takes transformers with a config.json. Returns whether the folder itself has one.
  bool find_folders() {
    for (const auto& [part, name] : {std::pair(kHigh, kHighFolder), std::pair(kLow, kLowFolder)})
      if (const std::string path = io::join_path(folder(), std::string(name));
          io::file_exists(io::join_path(path, "config.json"))) {
        of_two_ = true;
        take_folder(part, path);
      }
    const std::string config = io::join_path(folder(), "config.json");
    if (!io::file_exists(config) || find_weight_file(folder(), kAuthorsStem).empty()) return false;
    by_folder_ = true;
    take_folder(kHigh, folder());
    return true;
  }

  void take_folder(std::string_view part, const std::string& path) {
    const std::string file = find_weight_file(path, kAuthorsStem);
    if (file.empty()) return;
    channels_ = channels_in(*open_weight_file(file));
    paths_.emplace(part, path);
  }

  void take(const std::string& file) {
    std::unique_ptr<io::TensorSet> tensors;
    try {
      tensors = open_weight_file(file);
    } catch (const Error& error) {
      unreadable_.emplace_back(error.what());
      return;
    }
    const PartOfWan* const part = part_of(*tensors);
    if (!part) {
      others_.push_back(file);
    } else if (part->part == kHigh) {
      transformers_.push_back(file);
      channels_ = channels_in(*tensors);
    } else if (const auto [at, first] = paths_.emplace(part->part, file); !first) {
      refuse_two(at->second, file, part->name);
    }
  }

  [[noreturn]] void refuse_two(const std::string& a, const std::string& b,
                               std::string_view name) const {
    fail_usage("'{}' has two files of the {} of Wan, '{}' and '{}': leave one", folder(), name,
               io::base_name(a), io::base_name(b));
  }

  void place_transformers() {
    for (const std::string& file : transformers_) {
      std::string_view part = expert_of(file);
      of_two_ = of_two_ || !part.empty();
      if (part.empty()) part = kHigh;
      if (const auto [at, first] = paths_.emplace(part, file); !first)
        refuse_two(at->second, file, part_named(part)->name);
    }
  }

  std::map<std::string, std::string> paths_;  // by part
  std::vector<std::string> transformers_, others_;
  std::vector<std::string> unreadable_;  // what is wrong with files that cannot be opened
  std::int64_t channels_ = 0;
  bool by_folder_ = false;  // the folder is the transformer's, with its config.json
  bool of_two_ = false;     // a transformer is for a part of the noise levels
};

bool may_have_files(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  const std::string config = io::join_path(path, "config.json");
  if (!io::file_exists(config)) return true;
  const Json said = read_config(path, "config.json");
  return get_string(said, "_class_name").value_or("") == "WanModel";
}

}  // namespace

std::unique_ptr<ModelLayout> open_files(const std::string& path) {
  if (!may_have_files(path)) return nullptr;
  auto files = std::make_unique<FilesOfWan>(path);
  if (!files->is_one()) return nullptr;
  return files;
}

}  // namespace vfm::models
