// SPDX-License-Identifier: Apache-2.0
#include "models/folder/gguf_folder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/folder.h"
#include "io/gguf.h"

namespace vfm::models {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 9> kTextParts{{{"attn_norm", "input_layernorm"},
                                              {"ffn_norm", "post_attention_layernorm"},
                                              {"attn_q", "self_attn.q_proj"},
                                              {"attn_k", "self_attn.k_proj"},
                                              {"attn_v", "self_attn.v_proj"},
                                              {"attn_output", "self_attn.o_proj"},
                                              {"ffn_gate", "mlp.gate_proj"},
                                              {"ffn_up", "mlp.up_proj"},
                                              {"ffn_down", "mlp.down_proj"}}};
constexpr std::array<NamePair, 10> kVisionParts{{{"ln1", "norm1"},
                                                 {"ln2", "norm2"},
                                                 {"attn_q", "attn.q"},
                                                 {"attn_k", "attn.k"},
                                                 {"attn_v", "attn.v"},
                                                 {"attn_qkv", "attn.qkv"},
                                                 {"attn_out", "attn.proj"},
                                                 {"ffn_gate", "mlp.gate_proj"},
                                                 {"ffn_up", "mlp.up_proj"},
                                                 {"ffn_down", "mlp.down_proj"}}};
constexpr std::array<NamePair, 6> kOutside{{{"token_embd", "embed_tokens"},
                                            {"output_norm", "norm"},
                                            {"output", "lm_head"},
                                            {"v.post_ln", "visual.merger.ln_q"},
                                            {"mm.0", "visual.merger.mlp.0"},
                                            {"mm.2", "visual.merger.mlp.2"}}};
constexpr const char* kFirstFrame = "v.patch_embd.weight";
constexpr const char* kSecondFrame = "v.patch_embd.weight.1";

std::string_view other_name(std::span<const NamePair> pairs, std::string_view name) {
  for (const auto& [from, to] : pairs)
    if (from == name) return to;
  return {};
}

/// What transformers calls it; a name that is not known stays, so that messages can tell it.
std::string transformers_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::string(name);
  const std::string_view stem = name.substr(0, dot), suffix = name.substr(dot);
  if (const std::string_view to = other_name(kOutside, stem); !to.empty())
    return vfm::format("{}{}", to, suffix);
  const bool sees = stem.starts_with("v.blk.");
  if (!sees && !stem.starts_with("blk.")) return std::string(name);
  const std::string_view rest = stem.substr(sees ? 6 : 4);
  const std::size_t end = rest.find('.');
  if (end == std::string_view::npos) return std::string(name);
  const std::string_view part =
      other_name(sees ? std::span<const NamePair>(kVisionParts) : kTextParts, rest.substr(end + 1));
  if (part.empty()) return std::string(name);
  return vfm::format("{}.{}.{}{}", sees ? "visual.blocks" : "layers", rest.substr(0, end), part,
                     suffix);
}

class GgufSet final : public io::TensorSet {
 public:
  GgufSet(const std::string& folder, std::vector<std::unique_ptr<io::GgufFile>> files)
      : TensorSet(folder), files_(std::move(files)) {
    std::map<std::string, io::TensorView> all;
    for (const auto& file : files_)
      for (io::TensorView view : file->tensors()) {
        view.name = transformers_name(view.name);
        if (!all.emplace(view.name, view).second)
          fail("'{}' has tensor '{}' twice", folder, view.name);
      }
    join_frames(all);
    join_heads(all);
    for (auto& [name, view] : all)
      add(std::move(view));
  }
  void release(const io::TensorView& tensor) const override {
    for (const auto& file : files_)
      file->release(tensor);
  }

 private:
  using Views = std::map<std::string, io::TensorView>;

  /// Memory for a tensor that is put together.
  std::byte* room(std::size_t bytes) {
    return joined_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
  }

  /// Two [O, 3, P, P] to [O, 3, 2, P, P].
  void join_frames(Views& all) {
    const auto first = all.find(kFirstFrame), second = all.find(kSecondFrame);
    if (first == all.end() || second == all.end()) return;
    const io::TensorView a = first->second, b = second->second;
    if (a.shape != b.shape || a.dtype != b.dtype || a.shape.size() != 4 ||
        io::safetensors_item_size(a.dtype) == 0)
      fail("'{}' and '{}' of '{}' are not a convolution of two frames", kFirstFrame, kSecondFrame,
           path());
    all.erase(first);
    all.erase(second);
    const std::size_t rows = static_cast<std::size_t>(a.shape[0] * a.shape[1]);
    const std::size_t each = a.data.size() / rows;
    std::byte* to = room(2 * a.data.size());
    const std::span<const std::byte> whole(to, 2 * a.data.size());
    for (std::size_t row = 0; row < rows; ++row)
      for (const io::TensorView* from : {&a, &b}) {
        std::memcpy(to, from->data.data() + row * each, each);
        to += each;
      }
    const std::string name = "visual.patch_embed.proj.weight";
    all[name] = {name, a.dtype, {a.shape[0], a.shape[1], 2, a.shape[2], a.shape[3]}, whole};
  }

  /// Queries, keys and values below each other; where they lie so in the file they stay there.
  void join_heads(Views& all) {
    std::vector<std::string> begins;
    for (const auto& [name, view] : all)
      if (name.starts_with("visual.") && name.find(".attn.q.") != std::string::npos)
        begins.push_back(name);
    for (const std::string& name : begins) {
      const std::size_t at = name.find(".attn.q.") + 6;
      std::array<io::TensorView, 3> parts;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto found =
            all.find(name.substr(0, at) + std::string("qkv").substr(i, 1) + name.substr(at + 1));
        if (found == all.end() || found->second.shape != all.at(name).shape ||
            found->second.dtype != all.at(name).dtype)
          fail("'{}' of '{}' has no keys and values of its shape and type", name, path());
        parts[i] = found->second;
      }
      for (const io::TensorView& part : parts)
        all.erase(part.name);
      io::TensorView whole = parts[0];
      whole.name = name.substr(0, at) + "qkv" + name.substr(at + 1);
      whole.shape[0] *= 3;
      whole.data = below_each_other(parts);
      all[whole.name] = whole;
    }
  }

  std::span<const std::byte> below_each_other(const std::array<io::TensorView, 3>& parts) {
    const std::size_t each = parts[0].data.size();
    const std::byte* const begin = parts[0].data.data();
    if (parts[1].data.data() == begin + each && parts[2].data.data() == begin + 2 * each)
      return {begin, 3 * each};
    std::byte* const to = room(3 * each);
    for (std::size_t i = 0; i < parts.size(); ++i)
      std::memcpy(to + i * each, parts[i].data.data(), each);
    return {to, 3 * each};
  }

  std::vector<std::unique_ptr<io::GgufFile>> files_;
  std::vector<std::unique_ptr<std::byte[]>> joined_;
};

std::vector<std::string> gguf_files(const std::string& folder) {
  std::vector<std::string> files;
  if (!io::is_folder(folder)) return files;
  for (const io::FolderEntry& entry : io::entries(folder))
    if (entry.name.ends_with(".gguf")) files.push_back(io::join_path(folder, entry.name));
  return files;
}

std::string text_of(const io::GgufFile& file, const char* name) {
  const auto found = file.texts().find(name);
  return found == file.texts().end() ? std::string() : found->second;
}

std::int64_t count_of(const io::GgufFile& file, const char* name, std::int64_t fallback) {
  const auto found = file.counts().find(name);
  return found == file.counts().end() ? fallback : found->second;
}

/// Whether it is the tower that sees; else it is the text model, or a part of it.
bool is_tower(const io::GgufFile& file) {
  const std::string architecture = text_of(file, "general.architecture");
  // Of a file that is split the first part alone says what it is.
  if (architecture == "qwen2vl" || (architecture.empty() && count_of(file, "split.count", 1) > 1))
    return false;
  std::string projector = text_of(file, "clip.projector_type");
  if (projector.empty()) projector = text_of(file, "clip.vision.projector_type");
  if (architecture == "clip" && projector == "qwen2.5vl_merger") return true;
  fail(
      "'{}' is of the architecture '{}'{}: here qwen2vl works, and clip with the projector "
      "qwen2.5vl_merger",
      file.path(), architecture,
      projector.empty() ? "" : vfm::format(" with the projector '{}'", projector));
}

/// Throws Error unless the files are one model.
void need_one(const std::vector<const io::GgufFile*>& files, const std::string& folder,
              const char* what) {
  if (files.empty()) fail("'{}' has no GGUF file of {}", folder, what);
  const std::int64_t count = count_of(*files.front(), "split.count", 1);
  if (count <= 1 && files.size() > 1)
    fail("'{}' has several GGUF files of {}, '{}' and '{}' are two of them: leave one", folder,
         what, files.front()->path(), files.back()->path());
  std::set<std::int64_t> numbers;
  for (const io::GgufFile* file : files) {
    if (count_of(*file, "split.count", 1) != count)
      fail("'{}' and '{}' are not parts of one file", files.front()->path(), file->path());
    const std::int64_t number = count_of(*file, "split.no", 0);
    if (number < 0 || number >= std::max<std::int64_t>(count, 1) || !numbers.insert(number).second)
      fail("'{}' is part {} of {}, which it cannot be", file->path(), number + 1, count);
  }
  if (static_cast<std::int64_t>(files.size()) < count)
    fail("'{}' has {} of {} parts of {}", folder, files.size(), count, what);
}

}  // namespace

bool has_gguf_weights(const std::string& folder) {
  return !gguf_files(folder).empty();
}

std::unique_ptr<io::TensorSet> open_gguf_weights(const std::string& folder) {
  std::vector<std::unique_ptr<io::GgufFile>> files;
  std::vector<const io::GgufFile*> towers, texts;
  for (const std::string& path : gguf_files(folder)) {
    files.push_back(std::make_unique<io::GgufFile>(path));
    (is_tower(*files.back()) ? towers : texts).push_back(files.back().get());
  }
  need_one(texts, folder, "a text model (architecture qwen2vl)");
  need_one(towers, folder, "the tower that sees (mmproj)");
  return std::make_unique<GgufSet>(folder, std::move(files));
}

}  // namespace vfm::models
