// A small folder of latents, as vfm-pack writes it, for the training tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/hash.h"
#include "base/json.h"
#include "base/philox.h"
#include "io/atomic_file.h"
#include "io/npy.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"
#include "train/recipe/recipe_file.h"

namespace vfm {

/// A folder that is removed at the end.
struct LatentsOptions {
  int samples = 12;
  int broken = -1;     ///< this one holds an infinity, or what is no code
  int vocabulary = 0;  ///< of codes, which take the place of latents; 0: latents
  bool mixed = false;  ///< of sizes from 1 x 4 x 4 up to 4 x 8 x 8
};

/// Of a sample: the same numbers for the same key.
inline shard::Member made_up_codes(const LatentsOptions& options,
                                   const std::vector<std::int64_t>& shape, std::uint32_t key,
                                   bool broken) {
  std::vector<float> uniform(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
  Random(8, Purpose::test, key).fill_uniform(uniform);
  std::vector<std::int32_t> codes;
  for (const float u : uniform)
    codes.push_back(static_cast<std::int32_t>(u * static_cast<float>(options.vocabulary)));
  if (broken) codes[3] = options.vocabulary;
  return {"codes.npy", io::make_npy("<i4", shape, codes.data(), codes.size() * 4)};
}

/// Images and videos of 4 channels, 1 or 2 latent frames of 4 x 4, two text tokens of width 8.
/// Mixed ones have long captions now and then, too.
inline void write_latents(const std::string& folder, const LatentsOptions& options = {}) {
  const int channels = 4, width = 8;
  const std::string long_caption = R"({"caption":")" + std::string(600, 'x') + R"("})";
  for (const std::string split : {"train", "val"}) {
    const std::string directory = folder + "/" + split;
    std::filesystem::create_directories(directory);
    shard::Writer writer(directory + "/a-000000.tar");
    std::string index;
    const int count = split == "train" ? options.samples : 4;
    for (int i = 0; i < count; ++i) {
      const int frames = options.mixed ? 1 << (i % 3) : i % 3 == 0 ? 1 : 2;
      const int side = options.mixed && i % 4 > 1 ? 8 : 4;
      const std::string key = hash_hex(split + std::to_string(i));
      const Random random(7, Purpose::test, static_cast<std::uint32_t>(i % 4));
      std::vector<float> latent(static_cast<std::size_t>(channels * frames * side * side));
      std::vector<float> text(static_cast<std::size_t>(2 * width));
      random.fill_normal(latent);
      random.fill_normal(text, 1000);
      const bool broken = split == "train" && i == options.broken;
      if (broken) latent[3] = INFINITY;
      writer.add(shard::Sample{
          key,
          {options.vocabulary > 0
               ? made_up_codes(options, {frames, side, side}, static_cast<std::uint32_t>(i), broken)
               : shard::Member{"latent.npy",
                               io::make_npy_half({channels, frames, side, side}, latent)},
           {"text.npy", io::make_npy_half({2, width}, text)},
           {"json", options.mixed && i % 5 == 0 ? long_caption : "{}"}}});
      index += dump_json({{"key", key},
                          {"shard", "a-000000.tar"},
                          {"row", i},
                          {"frames", frames},
                          {"height", side},
                          {"width", side},
                          {"fps", frames == 1 ? 0 : 8},
                          {"text_tokens", 2}}) +
               "\n";
    }
    writer.finish();
    io::write_file(directory + "/index.jsonl", index);
  }
  Json info = {{"version", 1},
               {"tokenizer", {{"name", "builtin:wavelet"}}},
               {"text_encoder", {{"name", "builtin:hash"}, {"dim", width}}},
               {"channels", channels},
               {"mean", std::vector<double>(channels, 0.0)},
               {"std", std::vector<double>(channels, 1.0)}};
  if (options.vocabulary > 0) info["vocabulary"] = options.vocabulary;
  io::write_file(folder + "/latents.json", dump_json_pretty(info));
}

/// A model of some thousand parameters, 16 tokens a pack, 3 packs a step.
inline train::Recipe tiny_recipe(const std::string& more = "") {
  auto settings = train::parse_yaml(
      "model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 2, adaln_lora_dim: 4, "
      "max_size: [4, 8, 8]}\n"
      "data: {tokens: 16, packs: 3, window: 8}\n"
      "optimizer: {lr: 0.003, weight_decay: 0.01}\n"
      "schedule: {warmup: 2}\n"
      "validation: {every: 2, samples: 3, sigmas: [0.3, 3]}\n"
      "train: {steps: 6, checkpoint_every: 2, log_every: 1}\n",
      "tiny");
  for (const auto& setting : train::parse_yaml(more, "more"))
    settings.push_back(setting);
  return train::make_recipe(settings);
}

}  // namespace vfm
