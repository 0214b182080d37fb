// SPDX-License-Identifier: Apache-2.0
#include "models/text_encoder.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/dit/architecture.h"
#include "models/encoder/packed_text_encoder.h"
#include "models/encoder/sentence_encoder.h"
#include "models/encoder/sentence_folder.h"
#include "models/folder/hf_folder.h"
#include "models/folder/inner_tokenizer.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_layout.h"
#include "models/folder/other_models.h"
#include "models/folder/weight_files.h"
#include "tensor/device.h"
#include "text/clean_prompt.h"
#include "text/tokenizer.h"

namespace vfm::models {
namespace {

/// T5's, where the tokenizer does not say.
constexpr int kSentinels = 100;

/// Where Wan's authors have the tokenizer.
constexpr const char* kAuthorsTokenizer = "google/umt5-xxl";

/// The tokenizer's file in a folder, or nothing. `folder` may be a file of weights that holds it.
std::string find_tokenizer(const std::string& folder) {
  if (is_weight_file(folder)) return folder;
  for (const char* name : {"tokenizer.json", "spiece.model"})
    if (std::string path = io::join_path(folder, name); io::file_exists(path)) return path;
  return {};
}

std::string tokenizer_file(const std::string& folder) {
  if (std::string path = find_tokenizer(folder); !path.empty()) return path;
  fail_usage("'{}' has no tokenizer: neither tokenizer.json nor spiece.model", folder);
}

/// "extra_ids" of tokenizer_config.json.
int sentinels_of(const std::string& folder) {
  const std::string path = io::join_path(folder, "tokenizer_config.json");
  if (!io::file_exists(path)) return kSentinels;
  const Json config =
      parse_json(io::read_file(path, io::kMostModelJson), fmt::format("'{}'", path));
  return static_cast<int>(
      std::clamp<std::int64_t>(get_integer(config, "extra_ids").value_or(kSentinels), 0, 10000));
}

/// The spiece.model in a file of weights.
std::string need_inner_tokenizer(const std::string& file) {
  std::string inner = inner_tokenizer(file);
  if (inner.empty())
    fail_usage(
        "the text encoder '{}' has no tokenizer: put tokenizer.json or spiece.model beside it, or "
        "into {}",
        file, kAuthorsTokenizer);
  return inner;
}

std::unique_ptr<text::Tokenizer> open_tokenizer(const std::string& folder) {
  const std::string path = tokenizer_file(folder);
  const std::string what = fmt::format("'{}'", path);
  if (path == folder)
    return text::make_sentencepiece_tokenizer(need_inner_tokenizer(path), kSentinels, what);
  const io::MappedFile file(path);
  return path.ends_with(".json")
             ? text::make_json_tokenizer(file.text(), what)
             : text::make_sentencepiece_tokenizer(file.text(), sentinels_of(folder), what);
}

/// Changes with the model and with the tokenizer.
std::string hash_of(const HfComponent& component, const std::string& tokenizer_folder) {
  const std::string path = tokenizer_file(tokenizer_folder);
  return hash_hex(component.hash() + (path == tokenizer_folder
                                          ? hash_hex(need_inner_tokenizer(path))
                                          : io::hash_file(path)));
}

T5Config config_of(const HfComponent& component) {
  return T5Config::from_json(component.config(), component.type(),
                             fmt::format("'{}'", component.config_path()));
}

class T5TextEncoder final : public PackedTextEncoder {
 public:
  /// `shared`: the tensors to compute with; null: those of the component.
  T5TextEncoder(const TextFolders& folders, std::unique_ptr<HfComponent> component,
                std::unique_ptr<io::TensorSet> shared, text::EncoderConfig config, int max_tokens,
                DType compute, Device device)
      : PackedTextEncoder(device),
        component_(std::move(component)),
        shared_(std::move(shared)),
        config_(std::move(config)),
        max_tokens_(static_cast<std::size_t>(max_tokens)),
        tokenizer_(open_tokenizer(folders.tokenizer)),
        model_(config_of(*component_), shared_ ? *shared_ : component_->weights(), compute,
               device) {}

  int dim() const override { return model_.config().width; }
  text::EncoderConfig config() const override { return config_; }

  int tokens_left_out(std::string_view utf8) const override {
    const std::size_t all = encode_text(utf8, std::numeric_limits<std::size_t>::max()).size();
    return static_cast<int>(all - std::min(all, max_tokens_));
  }

 protected:
  std::vector<std::int32_t> tokens(std::string_view utf8) const override {
    return encode_text(utf8, max_tokens_);
  }
  std::vector<text::TokenEmbeddings> encode_pack(
      std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const override {
    const Tensor values = model_.encode(ids, lengths);
    const float* from = values.data<float>();
    std::vector<text::TokenEmbeddings> all;
    for (const std::int64_t length : lengths) {
      const std::int64_t count = length * dim();
      all.push_back({{from, from + count}, static_cast<int>(length), dim()});
      from += count;
    }
    return all;
  }

 private:
  std::vector<std::int32_t> encode_text(std::string_view utf8, std::size_t most) const {
    return config_.clean ? tokenizer_->encode(text::clean_prompt(utf8), most)
                         : tokenizer_->encode(utf8, most);
  }

  std::unique_ptr<HfComponent> component_;
  std::unique_ptr<io::TensorSet> shared_;
  text::EncoderConfig config_;
  std::size_t max_tokens_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  T5 model_;
};

DType parse_compute(const std::string& name) {
  if (name == "f32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  fail_usage("a text encoder computes in f32 or bf16, not '{}'", name);
}

const TextEncoderFamily& need_family(const text::EncoderConfig& config) {
  const TextEncoderFamily* const family = find_text_encoder_family(config.name);
  if (family && family->make) return *family;
  std::string names;
  for (const TextEncoderFamily& one : text_encoder_families())
    names += (names.empty()                             ? ""
              : &one == &text_encoder_families().back() ? " or "
                                                        : ", ") +
             std::string(one.name);
  fail_usage("unknown text encoder '{}': choose {}", config.name, names);
}

std::unique_ptr<HfComponent> open_model(const std::string& folder) {
  auto component = std::make_unique<HfComponent>(folder);
  component->need_type(text_encoder_types());
  if (!find_text_encoder_family(component->type()))
    fail_usage("'{}' is of type {}, which gives one vector a text: T5 is needed", folder,
               component->type());
  return component;
}

text::EncoderConfig describe(const HfComponent& component, const std::string& path,
                             const std::string& hash, int max_tokens, DType compute, bool clean) {
  return {.name = component.type(),
          .path = path,
          .hash = hash,
          .dim = need_integer(component.config(), "d_model", "config.json"),
          .max_tokens = max_tokens,
          .compute = compute == DType::bf16 ? "bf16" : "f32",
          .clean = clean};
}

/// The settings of a configuration, and the folder that it names, which is there.
struct Settings {
  Settings(const text::EncoderConfig& config, const TextEncoderOptions& options)
      : path(options.folder.empty() ? config.path : options.folder),
        max_tokens(static_cast<int>(config.max_tokens.value_or(512))) {
    if (!config.unknown.empty())
      fail_usage("text encoder {} has no setting '{}'", config.name, config.unknown);
    if (options.folder.empty() && !io::path_exists(path))
      fail_usage("the text encoder's folder '{}' is not there{}", path,
                 options.folder_option.empty()
                     ? ""
                     : "; say with " + options.folder_option + " where it is");
    const std::int64_t most = config.max_tokens.value_or(512);
    if (most < 1 || most > (1 << 20)) fail_usage("a text encoder of at most {} tokens", most);
    compute =
        options.compute.value_or(parse_compute(config.compute.empty() ? "f32" : config.compute));
  }
  std::string path;
  int max_tokens;
  DType compute = DType::f32;
};

/// Those of a T5, with its model, but for the weights.
struct Opened : Settings {
  Opened(const text::EncoderConfig& config, const TextEncoderOptions& options)
      : Settings(config, options),
        folders(text_encoder_folders(path)),
        component(open_model(folders.model)) {}
  /// Of model and tokenizer, which must be that of `config` if that has one.
  std::string hash(const text::EncoderConfig& config) const {
    std::string own = hash_of(*component, folders.tokenizer);
    if (!config.hash.empty() && config.hash != own)
      fail_usage("'{}' is not the text encoder that the embeddings were made with", path);
    return own;
  }
  TextFolders folders;
  std::unique_ptr<HfComponent> component;
};

/// Of one with a rule, which must be the folder's own.
std::unique_ptr<text::TextEncoder> make_sentence(const text::EncoderConfig& config,
                                                 const TextEncoderOptions& options) {
  std::optional<Settings> settings;
  options.ranks.agree([&] { as_usage([&] { settings.emplace(config, options); }); });
  auto encoder = make_sentence_encoder(settings->path, settings->max_tokens, settings->compute,
                                       options, config);
  options.ranks.agree([&] {
    const text::EncoderConfig own = encoder->config();
    if (own.name != config.name || (!config.rule.empty() && own.rule != config.rule))
      fail_usage("'{}' holds {} ({}), not {} ({})", settings->path, own.name, own.rule, config.name,
                 config.rule);
  });
  return encoder;
}

std::unique_ptr<text::TextEncoder> make_t5(const text::EncoderConfig& config,
                                           const TextEncoderOptions& options) {
  std::optional<Opened> opened;
  text::EncoderConfig own;
  const auto agree = [&](const auto& act) { options.ranks.agree([&] { as_usage(act); }); };
  agree([&] {
    opened.emplace(config, options);
    const bool hashes = options.ranks.rank() == 0 || config.hash.empty();
    own = describe(*opened->component, opened->path, hashes ? opened->hash(config) : config.hash,
                   opened->max_tokens, opened->compute, config.clean);
    check_t5(config_of(*opened->component), opened->component->weights());
  });
  auto shared = options.share ? options.share(opened->component->weights()) : nullptr;
  std::unique_ptr<text::TextEncoder> encoder;
  agree([&] {
    encoder = std::make_unique<T5TextEncoder>(opened->folders, std::move(opened->component),
                                              std::move(shared), own, opened->max_tokens,
                                              opened->compute, options.device);
  });
  return encoder;
}

TextEncoderFolder inspect_sentence(const text::EncoderConfig& config,
                                   const TextEncoderOptions& options) {
  const Settings settings(config, options);
  return inspect_sentence_encoder(settings.path, settings.max_tokens, settings.compute);
}

TextEncoderFolder inspect_t5(const text::EncoderConfig& config, const TextEncoderOptions& options) {
  const Opened opened(config, options);
  open_tokenizer(opened.folders.tokenizer);
  const io::TensorSet& weights = opened.component->weights();
  const T5Config t5 = config_of(*opened.component);
  check_t5(t5, weights);
  if (!config.hash.empty()) opened.hash(config);
  const io::TensorView& table = *weights.find("shared.weight");
  const DType stored = is_coded(table) ? DType::f32 : float_type(table.dtype);
  return {t5.width, static_cast<double>(weights.bytes()),
          static_cast<double>(dtype_size(stored)) * t5.vocabulary * t5.width,
          [t5, stored, compute = opened.compute](std::int64_t tokens, Device device) {
            return t5_cost(t5, tokens, stored, compute, device);
          }};
}

constexpr std::string_view kBuiltinKeys[] = {"name", "dim", "max_tokens", "version"};
constexpr std::string_view kSentenceKeys[] = {
    "name", "dim", "max_tokens", "path", "hash", "compute", "rule", "prompt", "query_prompt"};
constexpr std::string_view kT5Keys[] = {"name", "dim",     "max_tokens", "path",
                                        "hash", "compute", "clean"};
constexpr std::string_view kT5Types[] = {"t5"}, kUmt5Types[] = {"umt5"};

constexpr TextEncoderFamily kTextEncoders[] = {
    {.name = "builtin:hash", .keys = kBuiltinKeys},
    {"t5", kT5Keys, kT5Types, "T5EncoderModel", make_t5, inspect_t5},
    {"umt5", kT5Keys, kUmt5Types, "UMT5EncoderModel", make_t5, inspect_t5},
    {"sentence:...", kSentenceKeys, kSentenceTypes, "", make_sentence, inspect_sentence},
};

/// Whether it is a pipeline, or a Wan in files, that cleans its texts.
bool cleans_texts(const ModelLayout* layout) {
  const Architecture* const found = layout ? architecture_of_pipeline(layout->type()) : nullptr;
  return found && found->foreign->pipeline->clean_texts;
}

/// The same of the folder above a part.
bool is_cleaned_above(const std::string& part) {
  const auto pipeline = open_pipeline(folder_above(part));
  if (!cleans_texts(pipeline.get()) || !pipeline->has("text_encoder")) return false;
  const std::string of_pipeline = pipeline->folder_of("text_encoder");
  return io::canonical_path(of_pipeline) == io::canonical_path(part);
}

/// A text encoder of Wan in a file, with the tokenizer that is beside it or in it.
TextFolders folders_of_file(const std::string& file) {
  const std::string beside = io::dir_name(file);
  const bool clean = as_usage([&] { return is_text_encoder_of_wan(file); });  // as Wan does
  for (const std::string& place : {beside, io::join_path(beside, kAuthorsTokenizer)})
    if (!find_tokenizer(place).empty()) return {file, place, clean};
  return {file, file, clean};
}

}  // namespace

std::span<const TextEncoderFamily> text_encoder_families() {
  return kTextEncoders;
}

const TextEncoderFamily* find_text_encoder_family(std::string_view name) {
  for (const TextEncoderFamily& one : kTextEncoders) {
    const std::size_t kind = one.name.find(':') + 1;  // 0: one name
    if (kind > 0 ? name.starts_with(one.name.substr(0, kind)) : name == one.name) return &one;
  }
  return nullptr;
}

std::vector<std::string_view> text_encoder_types() {
  std::vector<std::string_view> types;
  for (const TextEncoderFamily& one : kTextEncoders)
    for (const std::string_view type : one.types)
      if (!type.ends_with("_text_model")) types.push_back(type);
  return types;
}

text::EncoderConfig text_config_from_json(const Json& json) {
  if (!json.is_object()) fail_usage("a text encoder's config is not a JSON object");
  return as_usage([&] {
    const auto text = [&](const char* key) { return get_string(json, key).value_or(""); };
    text::EncoderConfig config{.name = text("name"), .path = text("path"), .hash = text("hash")};
    config.dim = get_integer(json, "dim");
    const TextEncoderFamily* const family = find_text_encoder_family(config.name);
    config.others = !family;
    if (!family) return config;
    Json known = json;
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(family->keys, key) != family->keys.end()) continue;
      if (config.unknown.empty()) config.unknown = key;
      known.erase(key);
    }
    config.max_tokens = get_integer(known, "max_tokens");
    config.rule = get_string(known, "rule").value_or("");
    config.prompt = get_string(known, "prompt");
    config.query_prompt = get_string(known, "query_prompt");
    config.version = get_integer(known, "version");
    config.compute = get_string(known, "compute").value_or("");
    config.clean = get_bool(known, "clean").value_or(false);
    return config;
  });
}

TextFolders text_encoder_folders(const std::string& folder) {
  need_model_folder(folder);
  if (is_weight_file(folder)) return folders_of_file(folder);
  if (const auto pipeline = open_pipeline(folder)) {
    // Texts may be encoded by that of a pipeline of which nothing else works here.
    if (!pipeline->has("text_encoder")) refuse_other_models(folder);
    return {pipeline->folder_of("text_encoder"), pipeline->folder_of("tokenizer"),
            cleans_texts(pipeline.get())};
  }
  if (const auto files = open_files(folder); files && files->has("text_encoder"))
    return text_encoder_folders(files->folder_of("text_encoder"));
  const std::string model = io::join_path(folder, "text_encoder");
  if (io::file_exists(model)) return {model, io::join_path(folder, "tokenizer")};
  const std::string beside = io::join_path(folder_above(folder), "tokenizer");
  return {folder, find_tokenizer(folder).empty() && io::file_exists(beside) ? beside : folder,
          is_cleaned_above(folder)};
}

text::EncoderConfig text_encoder_config(const std::string& folder, int max_tokens, DType compute) {
  if (is_sentence_folder(folder)) return sentence_encoder_config(folder, max_tokens, compute);
  return as_usage([&] {
    const TextFolders folders = text_encoder_folders(folder);
    const auto component = open_model(folders.model);
    return describe(*component, io::canonical_path(folder), hash_of(*component, folders.tokenizer),
                    max_tokens, compute, folders.clean);
  });
}

text::EncoderConfig searched_encoder_config(const std::string& folder, int max_tokens,
                                            DType compute, const std::optional<std::string>& prompt,
                                            const std::optional<std::string>& query_prompt) {
  if (is_sentence_folder(folder))
    return searched_sentence_config(folder, max_tokens, compute, prompt, query_prompt);
  if (prompt || query_prompt)
    fail_usage("'{}' is not a sentence encoder: only these take a prompt before texts", folder);
  return text_encoder_config(folder, max_tokens, compute);
}

std::unique_ptr<text::TextEncoder> make_text_encoder(const text::EncoderConfig& config,
                                                     const TextEncoderOptions& options) {
  if (config.path.empty()) return text::make_encoder(config);
  const TextEncoderFamily& family = need_family(config);
  return family.make(config, options);
}

TextEncoderFolder inspect_text_encoder(const text::EncoderConfig& config,
                                       const TextEncoderOptions& options) {
  const TextEncoderFamily& family = need_family(config);
  return as_usage([&] { return family.inspect(config, options); });
}

}  // namespace vfm::models
