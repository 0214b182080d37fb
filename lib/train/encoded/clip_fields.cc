// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/clip_fields.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "train/kind.h"
#include "train/recipe/recipe_field.h"
#include "train/run.h"

namespace vfm::train {
namespace {

/// The keys that are not as they are by default.
std::vector<std::string> clip_settings(DataRecipe data) {
  DataRecipe usual;
  FieldList now, before;
  add_clip_fields(now.section("data"), data);
  add_clip_fields(before.section("data"), usual);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < now.fields.size(); ++i)
    if (now.fields[i].get() != before.fields[i].get()) keys.push_back(now.fields[i].key);
  return keys;
}

}  // namespace

void add_clip_fields(FieldList& list, DataRecipe& data) {
  list.number("frames", data.frames, between(1, 65536))
      .number("size", data.size, between(16, 8192))
      .number("fps", data.fps, between(0, 1000))
      .number("windows", data.windows, between(0, 65536))
      .number("overlap", data.overlap, between(0, 65535))
      .choice("crop", data.crop, {"random", "centre"})
      .number("flip", data.flip, between(0, 1))
      .names("captions", data.captions);
}

void check_clip_options(const RunOptions& options) {
  const EncoderNames& names = options.encoders;
  const bool encoded = !names.tokenizer.empty();
  for (const auto& [name, given] :
       {std::pair("--text", names.text), {"--latent-scale", names.scale}})
    if (!given.empty() && !encoded)
      fail_usage("{} is for clips that are encoded while training: add --tokenizer", name);
  if (encoded && !options.synthetic.empty())
    fail_usage("--tokenizer encodes the clips of --data; leave it out with --synthetic");
  if (encoded && options.data.empty()) fail_usage("--tokenizer needs --data: the clips to encode");
  if (encoded && !options.blend.empty())
    fail_usage(
        "--tokenizer encodes the clips of one folder, and {} are given: encode them with vfm-pack "
        "first, or train on them in stages",
        options.blend.size());
  const bool clips = kind_of(options.recipe.model.type).data_tool() == "vfm-shard";  // on pixels
  if (clips && encoded)
    fail_usage("'model.type' is {}, which trains on clips themselves: leave --tokenizer out",
               options.recipe.model.type);
  if (!names.text.empty() && !options.recipe.takes_text())
    fail_usage("--text encodes captions, and the model to begin from has no text: leave it out");
}

void warn_of_clip_settings(const RunOptions& options) {
  const bool clips = kind_of(options.recipe.model.type).data_tool() == "vfm-shard";
  if (clips || !options.encoders.tokenizer.empty() || options.data.empty()) return;
  if (const auto keys = clip_settings(options.recipe.data); !keys.empty())
    log_warning(
        "these keys are for clips that are encoded while training (--tokenizer) and change nothing "
        "here: {}",
        fmt::join(keys, ", "));
}

}  // namespace vfm::train
