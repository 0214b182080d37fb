// SPDX-License-Identifier: Apache-2.0
#include "models/folder/lora_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "models/dit/architecture.h"
#include "models/dit/lora.h"

namespace vfm::models {
namespace {

constexpr std::array<std::string_view, 4> kPrefixes = {"base_model.model.", "transformer.",
                                                       "diffusion_model.", "unet."};
constexpr std::array<std::string_view, 3> kFlatPrefixes = {"lora_transformer_", "lora_unet_",
                                                           "lora_"};
constexpr std::pair<std::string_view, AdapterPart> kEnds[] = {
    {".lora_A.weight", AdapterPart::a},
    {".lora_B.weight", AdapterPart::b},
    {".lora_A.default.weight", AdapterPart::a},
    {".lora_B.default.weight", AdapterPart::b},
    {".lora_down.weight", AdapterPart::a},
    {".lora_up.weight", AdapterPart::b},
    {".lora.down.weight", AdapterPart::a},
    {".lora.up.weight", AdapterPart::b},
    {".lora_linear_layer.down.weight", AdapterPart::a},
    {".lora_linear_layer.up.weight", AdapterPart::b},
    {"_lora.down.weight", AdapterPart::a},
    {"_lora.up.weight", AdapterPart::b},
    {".alpha", AdapterPart::alpha},
};

// Stands for the number of a block.
constexpr int kNumber = 987654321;

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

/// A spelling of the name of a matrix in any block: the name before and after the block's number.
struct Spelling {
  std::string before, after;  // in a file; `after` is empty for a matrix outside the blocks
  std::string before_here, after_here;
  bool in_blocks = false;
};

/// How files may spell the matrices of an architecture.
struct Spellings {
  std::vector<Spelling> dotted;  // in files of other forms
  std::vector<Spelling> flat;    // with underscores
};

Spelling spelling_of(const std::string& there, const std::string& here) {
  // No name of a network has it.
  const std::string number = std::to_string(kNumber);
  const std::size_t at = there.find(number), at_here = here.find(number);
  if (at == std::string::npos || at_here == std::string::npos) return {there, "", here, "", false};
  return {there.substr(0, at), there.substr(at + number.size()), here.substr(0, at_here),
          here.substr(at_here + number.size()), true};
}

Spellings spellings_of(const Architecture& architecture) {
  Spellings all;
  std::set<std::string> seen;
  for (const NetworkMatrix& matrix : network_matrices(default_config(architecture))) {
    std::string here = without_block(matrix.module);
    if (!seen.insert(here).second) continue;
    if (block_of(matrix.module)) here.insert(here.find('.') + 1, vfm::format("{}.", kNumber));
    all.flat.push_back(spelling_of(with_underscores(here), here));
    if (architecture.foreign == nullptr) continue;
    for (const TensorForm& form : architecture.foreign->tensors) {
      std::string there = name_there(form, here + ".").substr(form.prefix.size());
      there.pop_back();
      if (there == here) continue;
      all.dotted.push_back(spelling_of(there, here));
      all.flat.push_back(spelling_of(with_underscores(there), here));
    }
  }
  return all;
}

/// Those of all architectures. They are found once for each.
std::vector<const Spellings*> all_spellings() {
  static std::mutex mutex;
  static std::map<std::string, Spellings, std::less<>> known;  // by class
  const std::lock_guard lock(mutex);
  std::vector<const Spellings*> all;
  for (const Architecture* one : architectures()) {
    auto found = known.find(one->class_name);
    if (found == known.end()) found = known.emplace(one->class_name, spellings_of(*one)).first;
    all.push_back(&found->second);
  }
  return all;
}

/// The name here if this is the spelling; else "".
std::string spelled(const Spelling& spelling, std::string_view name) {
  if (!spelling.in_blocks) return name == spelling.before ? spelling.before_here : "";
  if (!name.starts_with(spelling.before) || !name.ends_with(spelling.after)) return {};
  if (name.size() <= spelling.before.size() + spelling.after.size()) return {};
  const std::string_view number = name.substr(
      spelling.before.size(), name.size() - spelling.before.size() - spelling.after.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return spelling.before_here + std::string(number) + spelling.after_here;
}

/// The name here of a matrix that a file spells so; "" if no network has it.
std::string module_spelled(std::string_view name, std::vector<Spelling> Spellings::*which) {
  for (const Spellings* one : all_spellings())
    for (const Spelling& spelling : one->*which)
      if (std::string module = spelled(spelling, name); !module.empty()) return module;
  return {};
}

/// Before peft an attention's adapters stood in its processor: "attn1.processor.to_q" of its to_q.
std::string out_of_processor(std::string module) {
  constexpr std::string_view kProcessor = ".processor.";
  const std::size_t at = module.find(kProcessor);
  if (at == std::string::npos) return module;
  module.replace(at, kProcessor.size(), ".");
  if (module.ends_with(".to_out")) module += ".0";
  return module;
}

}  // namespace

AdapterName parse_adapter_name(std::string_view name) {
  AdapterName parsed;
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  parsed.module = name;
  for (const auto& [end, part] : kEnds) {
    if (!name.ends_with(end) || name.size() == end.size()) continue;
    name.remove_suffix(end.size());
    parsed = {out_of_processor(std::string(name)), part};
    break;
  }
  if (parsed.part == AdapterPart::other) return parsed;
  if (name.find('.') != std::string_view::npos) {
    if (std::string module = module_spelled(parsed.module, &Spellings::dotted); !module.empty())
      parsed.module = std::move(module);
    return parsed;
  }
  for (const std::string_view prefix : kFlatPrefixes)
    if (name.starts_with(prefix))
      if (std::string module = module_spelled(name.substr(prefix.size()), &Spellings::flat);
          !module.empty()) {
        parsed.module = std::move(module);
        break;
      }
  return parsed;
}

}  // namespace vfm::models
