// How long a training waits for samples in a bucket: until it has its first batch, and at each step
// of an epoch. Run by bucket_epoch.sh.
//
//   bucket_epoch make DIR SAMPLES MEGABYTES   latents of this size, ten of them in a shard
//   bucket_epoch make-clips DIR SHARDS COUNT  a dataset of small pictures, COUNT in each shard
//   bucket_epoch put DIR ADDRESS              the files of a folder into a bucket
//   bucket_epoch first DIR                    seconds from the open of DIR to the first batch
//   bucket_epoch first-clips DIR              the same of clips for a tokenizer
//   bucket_epoch epoch DIR RATE               an epoch of RATE samples a second, ten in a step
//
// Results are lines of JSON. DIR may be an address. Nothing is computed: a step sleeps.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "dist/world.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/file_cache.h"
#include "io/folder.h"
#include "io/npy.h"
#include "media/container/picture_file.h"
#include "shard/dataset_meta.h"
#include "shard/sample.h"
#include "shard/sample_list.h"
#include "shard/writer.h"
#include "train/data/step_reader.h"
#include "train/diffusion/data.h"
#include "train/recipe/recipe_file.h"
#include "train/step/parallel.h"
#include "train/tokenizer/clips.h"

using namespace vfm;
using namespace vfm::train;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Latents of 16 channels and of 16 x 64 frames and rows, as wide as the bytes want.
void make(const std::string& folder, int samples, double megabytes) {
  constexpr int kChannels = 16, kFrames = 16, kRows = 64, kInShard = 10, kWidth = 8;
  const int columns = 2 * std::max(1, static_cast<int>(std::lround(
                                          megabytes * 1e6 / (4 * kChannels * kFrames * kRows))));
  std::filesystem::create_directories(folder + "/train");
  std::vector<float> latent(static_cast<std::size_t>(kChannels) * kFrames * kRows *
                            static_cast<std::size_t>(columns));
  const std::vector<float> text(2 * kWidth, 0.25F);
  std::string lines;
  std::unique_ptr<shard::Writer> writer;
  for (int i = 0; i < samples; ++i) {
    data::Entry entry{.key = fmt::format("s{:06}", i),
                      .shard = fmt::format("m-{:06}.tar", i / kInShard),
                      .row = i % kInShard,
                      .frames = kFrames,
                      .height = kRows,
                      .width = columns,
                      .fps = 24,
                      .text_tokens = 2,
                      .xxh3 = {}};
    for (std::size_t k = 0; k < latent.size(); ++k)
      latent[k] = static_cast<float>((k * 7 + static_cast<std::size_t>(i)) % 97) / 50 - 1;
    const shard::Sample sample{
        entry.key,
        {{"latent.npy", io::make_npy_half({kChannels, kFrames, kRows, columns}, latent)},
         {"text.npy", io::make_npy_half({2, kWidth}, text)},
         {"json", "{}"}}};
    entry.xxh3 = shard::hash_sample(sample);
    if (entry.row == 0) {
      if (writer) writer->finish();
      writer = std::make_unique<shard::Writer>(folder + "/train/" + entry.shard);
    }
    writer->add(sample);
    lines += dump_json(to_json(entry)) + "\n";
  }
  if (writer) writer->finish();
  io::write_file(folder + "/train/index.jsonl", lines);
  io::write_file(folder + "/latents.json",
                 dump_json_pretty({{"version", 1},
                                   {"tokenizer", {{"name", "builtin:wavelet"}}},
                                   {"text_encoder", {{"name", "builtin:hash"}, {"dim", kWidth}}},
                                   {"channels", kChannels},
                                   {"mean", std::vector<double>(kChannels, 0.0)},
                                   {"std", std::vector<double>(kChannels, 1.0)}}));
}

/// What vfm-shard writes, as far as training on clips reads it. All shards are one tar.
void make_clips(const std::string& folder, int shards, int count) {
  media::RgbImage image{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, 100)};
  const std::string picture = media::encode_png(image);
  std::filesystem::create_directories(folder + "/train/a");
  const auto stem = [](int shard) { return fmt::format("train/a/a-{:06}", shard); };
  shard::Writer writer(folder + "/" + stem(0) + ".tar");
  for (int row = 0; row < count; ++row)
    writer.add(shard::Sample{fmt::format("clip-{:06}-{:08x}", row, row * 2654435761U),
                             {{"png", picture}, {"json", "{}"}}});
  Json notes = writer.finish();
  notes["split"] = "train";
  Json plan = Json::array();
  shard::SampleListWriter list(shard::sample_list_path(folder));
  for (int shard = 0; shard < shards; ++shard) {
    io::write_file(folder + "/" + stem(shard) + ".json", dump_json(notes));
    for (const char* end : {".tar", ".tar.idx", ".idx"})
      if (shard > 0)
        std::filesystem::create_hard_link(folder + "/" + stem(0) + end,
                                          folder + "/" + stem(shard) + end);
    plan.push_back({{"path", stem(shard) + ".tar"}});
    shard::for_each_indexed(folder + "/" + stem(0) + ".tar",
                            [&](const shard::IndexedSample& sample) { list.add(sample); });
    list.add(shard::DatasetShard{stem(shard) + ".tar", "train", count, 0,
                                 notes["xxh3"].get<std::string>()});
  }
  list.finish();
  io::write_file(folder + "/plan.json", dump_json({{"shards", plan}}));
  io::write_file(folder + "/dataset.json", "{}");
}

void put(const std::string& folder, const std::string& address) {
  const std::vector<io::FolderEntry> files = io::files_below(folder);
  io::for_each_at_once(files.size(), 4, [&](std::size_t i) {
    io::write_file(io::join_path(address, files[i].name),
                   io::read_file(io::join_path(folder, files[i].name)));
  });
}

Recipe recipe_of(const Dataset& data) {
  std::int64_t most = 0;
  int frames = 1, height = 2, width = 2;
  for (const data::Form& form : data.index().forms()) {
    frames = std::max(frames, form.frames);
    height = std::max(height, form.height);
    width = std::max(width, form.width);
    most = std::max(most, data::token_count(data.sizes(form.first)));
  }
  // Ten of the largest samples are a step.
  Recipe recipe = make_recipe(parse_yaml(
      fmt::format("model: {{num_attention_heads: 4, attention_head_dim: 48, num_layers: 2, "
                  "adaln_lora_dim: 16, max_size: [{}, {}, {}]}}\n"
                  "data: {{tokens: {}, packs: 10}}\noptimizer: {{lr: 1e-6}}\n"
                  "train: {{steps: 1000000}}\n",
                  frames, height, width, most),
      "bucket_epoch"));
  data.fit(recipe);
  return recipe;
}

/// Waits for all samples of the next step. Returns how many there are.
std::size_t take_step(StepReader& reader) {
  const StepPlan plan = reader.next();
  std::size_t samples = 0;
  for (const StepPlan::Pack& pack : plan.packs)
    for (std::size_t i = 0; i < pack.samples.size(); ++i, ++samples)
      if (const ReadSample read = reader.take(); !read.failure.empty()) fail("{}", read.failure);
  return samples;
}

Recipe recipe_of_clips() {
  return make_recipe(parse_yaml(
      "model: {type: tokenizer, latent_channels: 6, encoder_block_out_channels: [8, 8, 16, 32], "
      "decode_block_out_channels: [8, 8, 16, 32], num_layers: 1, patch_size: 2, "
      "spatial_compression_ratio: 4, temporal_compression_ratio: 4}\n"
      "data: {tokens: 16, packs: 10, size: 16, frames: 9}\ntrain: {steps: 1000000}\n",
      "bucket_epoch"));
}

int first(const std::string& folder, bool clips) {
  const double begin = now();
  Recipe recipe = clips ? recipe_of_clips() : Recipe();
  const auto data = clips ? open_clips(folder, "train", recipe) : open_latents(folder, "train");
  const double opened = now() - begin;
  if (clips)
    data->fit(recipe);
  else
    recipe = recipe_of(*data);
  const auto world = dist::self_world();
  const Parallel parallel(recipe, *world);
  StepReader reader(recipe, *data, parallel);
  const std::size_t samples = take_step(reader);
  std::printf("{\"opened\":%.3f,\"seconds\":%.3f,\"samples\":%zu,\"of\":%zu}\n", opened,
              now() - begin, samples, data->size());
  std::fflush(stdout);
  std::_Exit(0);  // what is fetched for later steps is of no use
}

int epoch(const std::string& folder, double rate) {
  const auto data = open_latents(folder, "train");
  const Recipe recipe = recipe_of(*data);
  const auto world = dist::self_world();
  const Parallel parallel(recipe, *world);
  StepReader reader(recipe, *data, parallel);
  std::size_t done = take_step(reader);  // the first batch is measured on its own
  const double begin = now(), processor = processor_seconds();
  const std::size_t first_samples = done;
  double waited = 0;
  while (done < data->size()) {
    const double before = now();
    const std::size_t samples = take_step(reader);
    waited += now() - before;
    done += samples;
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(samples) / rate));
  }
  const double seconds = now() - begin;
  std::printf("{\"samples\":%zu,\"seconds\":%.2f,\"waited\":%.4f,\"processor\":%.4f}\n",
              done - first_samples, seconds, waited / seconds,
              (processor_seconds() - processor) / seconds);
  return 0;
}

int run(const std::vector<std::string>& words) {
  const std::string& verb = words.at(0);
  if (const char* cache = std::getenv("VFM_CACHE"); cache != nullptr) io::set_cache(cache);
  if (verb == "make") make(words.at(1), std::stoi(words.at(2)), std::stod(words.at(3)));
  if (verb == "put") put(words.at(1), words.at(2));
  if (verb == "make-clips") make_clips(words.at(1), std::stoi(words.at(2)), std::stoi(words.at(3)));
  if (verb == "first" || verb == "first-clips") return first(words.at(1), verb == "first-clips");
  if (verb == "epoch") return epoch(words.at(1), std::stod(words.at(2)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bucket_epoch: %s\n", error.what());
    return 1;
  }
}
