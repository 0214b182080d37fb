// Tokenizers of a folder: the numbers of diffusers, statistics, and folders that are not right.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "dist/threads.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/cosmos/tokenizer.h"
#include "models/folder/hf_folder.h"
#include "support/cosmos_drawn.h"
#include "support/distance.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"
#include "tensor/allocator.h"

using namespace vfm;
using namespace vfm::models;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr const char* kVae = VFM_GOLDEN "/cosmos_vae";
constexpr const char* kDiscrete = VFM_GOLDEN "/cosmos_dv";

std::vector<float> video(int frames, int height, int width) {
  return drawn("pixels", std::int64_t{3} * frames * height * width, 0.5f);
}

std::span<const float> golden(const io::SafetensorsSet& set, const std::string& name) {
  const io::TensorView* view = set.find(name);
  REQUIRE(view != nullptr);
  return {reinterpret_cast<const float*>(view->data.data()), view->data.size() / 4};
}

/// A copy of the golden folder, removed at the end.
class Folder {
 public:
  Folder() { fs::copy(kVae, path()); }
  const std::string& path() const { return folder_.path; }
  void change(const char* key, const Json& value) const {
    const std::string file = io::join_path(path(), "config.json");
    Json config = parse_json(io::read_file(file), file);
    config[key] = value;
    io::write_file(file, dump_json_pretty(config));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a tokenizer of a folder encodes and decodes as diffusers does") {
  const auto tokenizer = make_tokenizer(tokenizer_config(kVae));
  CHECK(tokenizer->name() == "AutoencoderKLCosmos");
  CHECK(tokenizer->channels() == 3);
  CHECK(tokenizer->time_factor() == 4);
  CHECK(tokenizer->space_factor() == 4);
  CHECK(tokenizer->vocabulary() == 0);
  const io::SafetensorsSet set(VFM_GOLDEN, "cosmos_vae");
  const std::vector<float> latents = tokenizer->encode(video(9, 16, 16), 9, 16, 16);
  CHECK(largest_difference(latents, golden(set, "folder.9x16x16.latents")) < 2e-5);
  const std::vector<float> frames = tokenizer->decode(latents, 3, 4, 4);
  std::vector<float> some;
  for (std::size_t i = 0; i < frames.size(); i += 7)
    some.push_back(frames[i]);
  CHECK(largest_difference(some, golden(set, "folder.9x16x16.frames")) < 2e-5);
  CHECK_THROWS_AS(tokenizer->encode(video(9, 16, 16), 8, 16, 16), Error);
  CHECK_THROWS_AS(tokenizer->encode_codes(video(9, 16, 16), 9, 16, 16), Error);
}

TEST_CASE("a long video is worked on in chunks, to the same bits on one thread and on several") {
  // Two latent frames at a time.
  const CosmosTokenizer tokenizer(tokenizer_config(kVae), Device::cpu, {.pixels = 2 * 4 * 16 * 32});
  const int frames = 17, height = 16, width = 32;
  const std::vector<float> pixels = video(frames, height, width);
  const std::vector<float> latents = tokenizer.encode(pixels, frames, height, width);
  int pieces = 0, shown = 0;
  std::vector<float> first;
  tokenizer.decode_stream(latents, 5, 4, 8, [&](std::span<const float> some, int count) {
    CHECK(some.size() == std::size_t{3} * count * height * width);
    if (pieces++ == 0) first.assign(some.begin(), some.end());
    shown += count;
  });
  CHECK(pieces == 3);
  CHECK(shown == frames);
  const CosmosTokenizer at_once(tokenizer_config(kVae));
  CHECK(at_once.encode(pixels, frames, height, width) == latents);
  const OneThread one;
  CHECK(tokenizer.encode(pixels, frames, height, width) == latents);
  const std::vector<float> decoded = tokenizer.decode(latents, 5, 4, 8);
  CHECK(at_once.decode(latents, 5, 4, 8) == decoded);
  CHECK(std::equal(first.begin(), first.begin() + height * width, decoded.begin()));
}

TEST_CASE("a limit of memory is kept, and gives the same bits") {
  const OneThread one;
  const int frames = 33, side = 32;
  const std::vector<float> pixels = video(frames, side, side);
  std::vector<float> latents, shown;
  const auto peak_of = [](const auto& work) {
    reset_memory_peak();
    const double before = static_cast<double>(cpu_memory().current);
    work();
    return static_cast<double>(cpu_memory().peak) - before;
  };
  const CosmosTokenizer free(tokenizer_config(kVae));
  const double encoding = peak_of([&] { latents = free.encode(pixels, frames, side, side); });
  const double decoding = peak_of([&] { shown = free.decode(latents, 9, 8, 8); });
  const auto within = [&](double memory) {
    return CosmosTokenizer(tokenizer_config(kVae), Device::cpu, {.memory = memory});
  };
  for (const double part : {0.9, 0.5}) {
    const CosmosTokenizer encoder = within(part * encoding), decoder = within(part * decoding);
    CHECK(peak_of([&] { CHECK(encoder.encode(pixels, frames, side, side) == latents); }) <=
          part * encoding);
    CHECK(peak_of([&] { CHECK(decoder.decode(latents, 9, 8, 8) == shown); }) <= part * decoding);
  }
  const CosmosTokenizer small = within(1000);
  CHECK_THAT(usage_error([&] { small.encode(pixels, frames, side, side); }),
             Contains("to encode 33 frames of 32x32 the tokenizer needs ") &&
                 Contains(" at least: --tokenizer-memory is 1000 B"));
  const std::string told = usage_error([&] { small.check_memory(false, 9, 8, 8, 1); });
  CHECK_THAT(told, Contains("to decode 33 frames of 32x32"));
  CHECK(usage_error([&] { small.decode(latents, 9, 8, 8); }) == told);
  CHECK_THAT(usage_error([] { make_tokenizer({.name = "builtin:wavelet"}, Device::cpu, 1); }),
             Contains("--tokenizer-memory"));
}

TEST_CASE("of a short video all frames at once may take less than one after the other") {
  // Of frames that come one after the other each convolution keeps two.
  const CosmosConfig config = CosmosConfig();
  const auto bytes = [&](std::int64_t frames, std::int64_t step) {
    return cosmos_cost(config, CosmosWork::decode, frames, 64, 64, step, Device::cpu, DType::f32)
        .activation_bytes;
  };
  CHECK(bytes(3, 3) < 0.7 * bytes(3, 1));
  CHECK(bytes(9, 9) > bytes(9, 1));
  const auto step = [&](std::int64_t frames, double memory) {
    return cosmos_split(config, CosmosWork::decode, frames, 64, 64, {.memory = memory}, Device::cpu,
                        DType::f32)
        .step;
  };
  CHECK(step(3, 0) == 1);
  CHECK(step(3, 1.2 * bytes(3, 1)) == 1);
  CHECK(step(3, 1.2 * bytes(3, 3)) == 3);
  CHECK_THROWS_AS(step(3, bytes(3, 3)), Error);
}

namespace {

/// The frames, one behind the other, that a tokenizer makes on so many ranks of latents that are
/// always the same.
std::vector<float> decoded_by(const VideoTokenizer& tokenizer, int ranks, int frames, int height,
                              int width) {
  const std::vector<float> latents =
      drawn("latents", std::int64_t{tokenizer.channels()} * frames * height * width);
  std::vector<float> shown;
  std::mutex mutex;
  dist::thread_worlds(ranks, [&](dist::World& world) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    const auto group = world.group("clip", all);
    tokenizer.decode_together(*group, latents, frames, height, width,
                              [&](std::span<const float> planes, int count) {
                                const std::lock_guard lock(mutex);
                                const std::size_t plane = planes.size() / 3 / count;
                                for (std::size_t t = 0; t < static_cast<std::size_t>(count); ++t)
                                  for (std::size_t c = 0; c < 3; ++c) {
                                    const auto one = planes.subspan((c * count + t) * plane, plane);
                                    shown.insert(shown.end(), one.begin(), one.end());
                                  }
                              });
  });
  return shown;
}

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a == b;
}

CosmosConfig network_of_vae() {
  return cosmos_config_from_json(read_config(kVae, "config.json"), "the golden folder");
}

CosmosSplit split_of(int ranks, int frames, int height, int width, const CosmosRoom& room) {
  return cosmos_split(network_of_vae(), CosmosWork::decode, frames, height, width, room,
                      Device::cpu, DType::f32, ranks);
}

}  // namespace

TEST_CASE("ranks decode one video by time, and where there are more of them by rows, to the bits") {
  struct Case {
    int ranks, frames, height, bands, turns;
  };
  const CosmosRoom room{.pixels = 1};  // a latent frame at a time
  for (const char* const folder : {kVae, kDiscrete}) {
    const CosmosTokenizer one(tokenizer_config(folder));
    const CosmosTokenizer many(tokenizer_config(folder), Device::cpu, room);
    for (const Case& c : {Case{3, 1, 5, 3, 1}, Case{4, 1, 2, 2, 1}, Case{4, 2, 4, 2, 2},
                          Case{2, 5, 4, 1, 2}, Case{3, 2, 6, 3, 1}, Case{4, 5, 2, 2, 2}}) {
      INFO(folder << " ranks " << c.ranks << " frames " << c.frames << " rows " << c.height);
      const CosmosSplit split = split_of(c.ranks, c.frames, c.height, 4, room);
      CHECK(split.bands == c.bands);
      CHECK(split.turns == c.turns);
      CHECK(equal(decoded_by(many, c.ranks, c.frames, c.height, 4),
                  decoded_by(one, 1, c.frames, c.height, 4)));
    }
  }
}

TEST_CASE("where one latent frame is too large for a rank, ranks have bands of its rows") {
  const int frames = 2, height = 9, width = 8;
  const CosmosConfig config = network_of_vae();
  const auto least = [&](int bands) {
    const auto bytes = [&](std::int64_t step) {
      return cosmos_cost(config, CosmosWork::decode, frames, height, width, step, Device::cpu,
                         DType::f32, bands)
          .activation_bytes;
    };
    return 1.03 * std::min(bytes(1), bytes(2));
  };
  CHECK(least(3) < 0.6 * least(1));
  const double memory = (least(2) + least(1)) / 2;
  const CosmosTokenizer free(tokenizer_config(kVae));
  const CosmosTokenizer small(tokenizer_config(kVae), Device::cpu, {.memory = memory});
  CHECK_THROWS_AS(small.check_memory(false, frames, height, width, 1), Error);
  CHECK_NOTHROW(small.check_memory(false, frames, height, width, 2));
  CHECK(split_of(2, frames, height, width, {.memory = memory}).bands == 2);
  CHECK(split_of(2, frames, height, width, {}).bands == 1);
  // All threads together have what is told of each.
  const std::vector<float> wanted = decoded_by(free, 1, frames, height, width);
  reset_memory_peak();
  const double before = static_cast<double>(cpu_memory().current);
  CHECK(equal(decoded_by(small, 2, frames, height, width), wanted));
  CHECK(static_cast<double>(cpu_memory().peak) - before <= 2 * memory);
  CHECK_THAT(usage_error([&] { split_of(4, frames, height, width, {.memory = 1000}); }),
             Contains(" at least on each of 4 ranks: --tokenizer-memory is 1000 B"));
}

TEST_CASE("trap 4: the folder's statistics are for each latent frame") {
  const auto tokenizer = make_tokenizer(tokenizer_config(kVae));
  const LatentScale statistics = tokenizer->statistics().value();
  CHECK(statistics.frames == 3);
  CHECK(statistics.mean.size() == 9);
  CHECK(statistics.mean[3] == Approx(0.0).margin(1e-12));
  CHECK(statistics.std[8] == Approx(1.3));
  CHECK_FALSE(make_tokenizer({.name = "builtin:wavelet"})->statistics());
}

TEST_CASE("a discrete tokenizer of a folder") {
  const auto tokenizer = make_tokenizer(tokenizer_config(kDiscrete));
  CHECK(tokenizer->vocabulary() == 64000);
  CHECK(tokenizer->channels() == 6);
  CHECK_FALSE(tokenizer->statistics());
  const std::vector<float> pixels = video(5, 16, 16);
  const auto codes = tokenizer->encode_codes(pixels, 5, 16, 16);
  REQUIRE(codes.size() == 2 * 4 * 4);
  const std::vector<float> values = tokenizer->encode(pixels, 5, 16, 16);
  REQUIRE(values.size() == 6 * codes.size());
  CHECK(tokenizer->decode(values, 2, 4, 4) == tokenizer->decode_codes(codes, 2, 4, 4));
  CHECK_THROWS_AS(tokenizer->decode_codes(std::vector<std::int32_t>(32, 64000), 2, 4, 4), Error);
  // In pieces of a latent frame.
  const CosmosTokenizer pieces(tokenizer_config(kDiscrete), Device::cpu, {.pixels = 1});
  CHECK(pieces.latent_of_codes(codes) == values);
  CHECK(pieces.decode_codes(codes, 2, 4, 4) == tokenizer->decode_codes(codes, 2, 4, 4));
}

TEST_CASE("a tokenizer that was moved, or is another, is refused and says what to do") {
  const Folder folder;
  const TokenizerConfig config = make_tokenizer(tokenizer_config(folder.path()))->config();
  CHECK(config.path == folder.path());
  CHECK(make_tokenizer(config)->config() == config);
  // The golden folder is the same tokenizer elsewhere.
  CHECK(make_tokenizer(moved_tokenizer(config, kVae))->name() == "AutoencoderKLCosmos");
  CHECK_THAT(usage_error([&] { moved_tokenizer(config, kDiscrete); }), Contains("is needed"));
  TokenizerConfig gone = config;
  gone.path = folder.path() + "/nowhere";
  CHECK_THAT(usage_error([&] { make_tokenizer(gone); }), Contains("--tokenizer DIR"));
  folder.change("scaling_factor", 2.0);
  CHECK_THAT(usage_error([&] { make_tokenizer(config); }), Contains("holds another tokenizer"));
}

TEST_CASE("folders that are not right are refused before anything is computed") {
  const Folder folder;
  const auto make = [&] { make_tokenizer(tokenizer_config(folder.path())); };
  const auto error = [&] { return usage_error(make); };
  folder.change("num_layers", 2);
  CHECK_THAT(error(), Contains("'encoder.down_blocks.0.resnets.1.conv1.conv_s.weight'"));
  folder.change("num_layers", 1);
  folder.change("latents_mean", Json{1, 2});
  CHECK_THAT(error(), Contains("statistics"));
  folder.change("latents_mean", nullptr);
  CHECK_NOTHROW(make());
  folder.change("patch_type", "rearrange");
  CHECK_THAT(error(), Contains("haar"));
  folder.change("_class_name", "AutoencoderDC");
  CHECK_THAT(error(), Contains("AutoencoderKLCosmos"));
  CHECK_THAT(usage_error([] { tokenizer_config("/nowhere"); }), Contains("/nowhere"));
  TokenizerConfig config = tokenizer_config(kVae);
  config.compute = "f16";
  CHECK_THAT(usage_error([&] { make_tokenizer(config); }), Contains("bf16"));
}

TEST_CASE("of a pipeline the component vae is taken") {
  const Folder vae;
  const TemporaryFolder pipeline;
  fs::copy(vae.path(), pipeline.path + "/vae");
  pipeline.write(
      "model_index.json",
      R"({"_class_name":"CosmosTextToWorldPipeline","vae":["diffusers","AutoencoderKLCosmos"]})");
  const auto tokenizer = make_tokenizer(tokenizer_config(pipeline.path));
  CHECK(tokenizer->channels() == 3);
  CHECK(tokenizer->config().path == pipeline.path);
}
