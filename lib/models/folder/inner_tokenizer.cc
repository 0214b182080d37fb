// SPDX-License-Identifier: Apache-2.0
#include "models/folder/inner_tokenizer.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "models/folder/hf_names.h"

namespace vfm::models {
namespace {

/// A message of protocol buffers: fields one after the other.
class ProtoMessage {
 public:
  void integer(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
  }
  void number(int field, float value) {
    key(field, 5);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  const std::string& all() const { return bytes_; }

 private:
  void key(int field, unsigned type) { varint(static_cast<unsigned>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7)
      bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

constexpr const char* kSetting = "tokenizer.ggml.";

const io::GgufList* list_of(const io::GgufFile& file, const char* name) {
  const auto found = file.lists().find(std::string(kSetting) + name);
  return found == file.lists().end() ? nullptr : &found->second;
}

std::int64_t setting_of(const io::GgufFile& file, const char* name, std::int64_t fallback) {
  const auto found = file.counts().find(std::string(kSetting) + name);
  return found == file.counts().end() ? fallback : found->second;
}

/// Numbers of fields are those of sentencepiece_model.proto. llama.cpp has its types of pieces.
std::string of_gguf(const io::GgufFile& file) {
  const auto kind = file.texts().find(std::string(kSetting) + "model");
  if (kind == file.texts().end() || kind->second != "t5") return {};
  const io::GgufList *const tokens = list_of(file, "tokens"),
                            *const scores = list_of(file, "scores"),
                            *const types = list_of(file, "token_type");
  const std::string what = vfm::format("'{}'", file.path());
  if (!tokens || !scores || !types || scores->count != tokens->count ||
      types->count != tokens->count)
    fail("the tokenizer in {} has not a score and a type for each token", what);
  const std::vector<std::string_view> names = tokens->texts(what);
  const std::vector<float> values = scores->floats(what);
  const std::vector<std::int32_t> kinds = types->integers(what);
  ProtoMessage model;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ProtoMessage piece;
    piece.bytes(1, names[i]);
    piece.number(2, values[i]);
    piece.integer(3, kinds[i]);
    model.bytes(1, piece.all());
  }
  ProtoMessage trainer;
  trainer.integer(3, 1);  // Unigram
  trainer.integer(40, setting_of(file, "unknown_token_id", 2));
  trainer.integer(41, -1);  // no begin
  trainer.integer(42, setting_of(file, "eos_token_id", 1));
  trainer.integer(43, setting_of(file, "padding_token_id", 0));
  model.bytes(2, trainer.all());
  ProtoMessage normalizer;
  if (const io::GgufList* const map = list_of(file, "precompiled_charsmap"))
    normalizer.bytes(2, {reinterpret_cast<const char*>(map->data.data()), map->data.size()});
  normalizer.integer(3, setting_of(file, "add_space_prefix", 1));
  normalizer.integer(4, setting_of(file, "remove_extra_whitespaces", 1));
  model.bytes(3, normalizer.all());
  return model.all();
}

}  // namespace

std::string inner_tokenizer(const std::string& file) {
  if (file.ends_with(".gguf")) return of_gguf(io::GgufFile(file));
  if (!file.ends_with(".safetensors")) return {};
  const io::SafetensorsSet set(file);
  const io::TensorView* const found = set.find(kInnerTokenizer);
  if (!found) return {};
  io::need_bytes(found->data);
  return {reinterpret_cast<const char*>(found->data.data()), found->data.size()};
}

}  // namespace vfm::models
