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
// What a file is follows from the names of its tensors. The names of files are free, so the header
// of each file of weights is read, but no data. Files that are none of these are ignored.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/folder/hf_folder.h"
#include "models/folder/model_layout.h"
#include "models/folder/weight_files.h"
#include "models/wan_vae/names.h"

namespace vfm::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHigh = kFirstNetwork, kLow = kSecondNetwork;
constexpr std::string_view kVae = "vae", kText = "text_encoder";
constexpr std::string_view kHighFolder = "high_noise_model", kLowFolder = "low_noise_model";
const std::vector<std::string> kAuthorsStem = {"diffusion_pytorch_model"};

using Names = std::vector<std::string>;

bool any_has(const Names& names, std::initializer_list<std::string_view> signs) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return std::ranges::any_of(
        signs, [&](std::string_view sign) { return name.find(sign) != std::string::npos; });
  });
}

bool are_transformer_names(const Names& names) {
  return any_has(names, {"head.modulation"});
}

// T5 has its bias in the first block only.
bool are_text_encoder_names(const Names& names) {
  return any_has(names, {"block.1.layer.0.SelfAttention.relative_attention_bias.",
                         "blocks.1.pos_embedding.", "enc.blk.1.attn_rel_b."});
}

/// A part of a Wan. `are_names`: whether the tensors of a file are of it; null: see expert_of().
struct PartOfWan {
  std::string_view part, name, example;
  bool (*are_names)(const Names& names);
};

constexpr PartOfWan kPartsOfWan[] = {
    {kHigh, "transformer", "wan2.1_t2v_1.3B_bf16.safetensors", are_transformer_names},
    {kLow, "transformer for low noise", "wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors", nullptr},
    {kVae, "VAE", "wan_2.1_vae.safetensors", are_wan_vae_names},
    {kText, "text encoder", "umt5_xxl_fp8_e4m3fn_scaled.safetensors", are_text_encoder_names},
};
constexpr std::string_view kLargerVae = "wan2.2_vae.safetensors";  // of TI2V-5B
/// TI2V-5B is the only one whose latents have 48 channels. I2V has a mask and a latent besides.
constexpr std::int64_t kOfTi2v = 48, kOfImages = 36;

const PartOfWan* part_named(std::string_view part) {
  const auto* const found = std::ranges::find(kPartsOfWan, part, &PartOfWan::part);
  return found == std::end(kPartsOfWan) ? nullptr : found;
}

/// Null if the tensors are of none.
const PartOfWan* part_of(const io::TensorSet& tensors) {
  Names names;
  for (const io::TensorView& tensor : tensors.tensors())
    names.push_back(tensor.name);
  for (const PartOfWan& one : kPartsOfWan)
    if (one.are_names != nullptr && one.are_names(names)) return &one;
  return nullptr;
}

/// The channels that go into a transformer; 0 if they cannot be told.
std::int64_t channels_in(const io::TensorSet& tensors) {
  for (const io::TensorView& tensor : tensors.tensors())
    if (tensor.name.ends_with("patch_embedding.weight") && tensor.shape.size() == 5)
      return tensor.shape[1];
  return 0;
}

/// The part's name with that of a file, beside a transformer with so many channels.
std::string with_example(const PartOfWan& part, std::int64_t channels) {
  const bool larger = part.part == kVae && channels == kOfTi2v;
  return fmt::format("{} (such as {})", part.name, larger ? kLargerVae : part.example);
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
  for (const io::FolderEntry& entry : io::entries(folder)) {
    const std::string& name = entry.name;
    const std::string extension = io::extension(name);
    const bool weights = extension == "safetensors" || extension == "gguf" || extension == "pth" ||
                         extension == "pt";
    const bool index = name.ends_with(".safetensors.index.json");
    if (!(index || (weights && name.find("-of-") == std::string::npos))) continue;
    if (has_config && name.starts_with(kAuthorsStem[0])) continue;
    if (!entry.folder) files.push_back(io::join_path(folder, name));
  }
  return files;
}

class FilesOfWan final : public ModelLayout {
 public:
  explicit FilesOfWan(const std::string& path) : ModelLayout(path) {
    const bool has_config = find_folders();
    for (const std::string& file : files_of_weights(path, has_config))
      take(file);
    place_transformers();
    compare_channels();
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
    return name == "expand_timesteps" && channels() == kOfTi2v;
  }
  std::string folder_of(const std::string& part) const override {
    const auto found = paths_.find(part == "tokenizer" ? "text_encoder" : part);
    const bool expert = part == kHigh || part == kLow;
    const std::string_view other = part == kHigh ? kLow : kHigh;
    const bool alone = expert && of_two_ && !paths_.contains(std::string(other));
    if (found != paths_.end() && !alone) return found->second;
    refuse_missing(alone && found != paths_.end() ? std::string(other) : part);
  }

 private:
  /// Tells all that is missing besides `part`, so that the user looks for it once.
  [[noreturn]] void refuse_missing(const std::string& part) const {
    if (!part_named(part)) fail_usage("the files in '{}' have no component '{}'", folder(), part);
    std::vector<std::string> missing, there;
    for (const std::string_view one : {std::string_view(part), kHigh, kLow, kVae, kText}) {
      const bool needless = one == part ? !missing.empty() : one == kLow && !of_two_;
      if (needless || (one != part && paths_.contains(std::string(one)))) continue;
      missing.push_back(with_example(*part_named(one), channels()));
    }
    for (const auto& [name, path] : paths_)
      there.push_back(fmt::format("'{}' is the {}", io::base_name(path), part_named(name)->name));
    for (const std::string& file : others_)
      there.push_back(fmt::format("'{}' is no part of a Wan", io::base_name(file)));
    for (const std::string& why : unreadable_)
      there.push_back(fmt::format("a file cannot be used: {}", why));
    const auto list = [](const std::vector<std::string>& words, std::string_view last) {
      return listed(std::vector<std::string_view>(words.begin(), words.end()), last);
    };
    fail_usage("'{}' lacks the {} of a Wan: put what is missing beside the other files; {}",
               folder(), list(missing, " and the "), list(there, ", "));
  }

  /// The channels that go into the transformer, or into each of the two; 0 if they cannot be told.
  std::int64_t channels() const { return channels_.empty() ? 0 : channels_.begin()->second; }
  bool of_images() const { return channels() == kOfImages; }

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
    note_channels(path, *open_tensor_names(file));
    paths_.emplace(part, path);
  }

  void note_channels(const std::string& path, const io::TensorSet& tensors) {
    if (const std::int64_t channels = channels_in(tensors); channels > 0)
      channels_[path] = channels;
  }

  void take(const std::string& file) {
    std::unique_ptr<io::TensorSet> tensors;
    try {
      tensors = open_tensor_names(file);
    } catch (const Error& error) {
      unreadable_.emplace_back(error.what());
      return;
    }
    const PartOfWan* const part = part_of(*tensors);
    if (!part) {
      others_.push_back(file);
    } else if (part->part == kHigh) {
      transformers_.push_back(file);
      note_channels(file, *tensors);
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

  /// Two transformers are for parts of the noise levels of one model.
  void compare_channels() const {
    for (const auto& [path, channels] : channels_)
      if (channels != this->channels())
        fail_usage(
            "{} channels go into '{}', and {} into '{}': they are transformers of two models; "
            "leave those of one",
            this->channels(), channels_.begin()->first, channels, path);
  }

  std::map<std::string, std::string> paths_;  // by part
  std::vector<std::string> transformers_, others_;
  std::vector<std::string> unreadable_;  // what is wrong with files that cannot be opened
  std::map<std::string, std::int64_t> channels_;  // by path of a transformer, where they are told
  bool by_folder_ = false;  // the folder is the transformer's, with its config.json
  bool of_two_ = false;     // a transformer is for a part of the noise levels
};

bool may_have_files(const std::string& path) {
  if (!io::is_folder(path)) return false;
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

bool is_text_encoder_of_wan(const std::string& file) {
  return part_of(*open_tensor_names(file)) == part_named(kText);
}

std::string beside_transformer(const std::string& path) {
  const std::string file = is_weight_file(path) ? path : find_weight_file(path, kAuthorsStem);
  if (file.empty()) return {};
  const auto tensors = open_tensor_names(file);
  const PartOfWan* const part = part_of(*tensors);
  if (!part || part->part != kHigh) return {};
  const std::int64_t channels = channels_in(*tensors);
  return fmt::format("the {} and the {}", with_example(*part_named(kVae), channels),
                     with_example(*part_named(kText), channels));
}

}  // namespace vfm::models
