// Wan's video autoencoder: the numbers of diffusers, bands and memory, names, and configurations
// that are not right.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "dist/threads.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/tensor_set.h"
#include "models/folder/hf_folder.h"
#include "models/folder/hf_names.h"
#include "models/tokenizer.h"
#include "models/tokenizer_family.h"
#include "models/wan_vae/autoencoder.h"
#include "models/wan_vae/config_json.h"
#include "models/wan_vae/cost.h"
#include "models/wan_vae/names.h"
#include "models/wan_vae/tokenizer.h"
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

constexpr const char* kWan = VFM_GOLDEN "/wan_vae";

// The cases of scripts/golden/wan_vae.py.
WanVaeConfig wan_config(const std::string& name) {
  WanVaeConfig c;
  c.base_dim = c.decoder_base_dim = 4;
  if (name == "2.1") {
    c.base_dim = c.decoder_base_dim = 6, c.z_dim = 4;
    return c;
  }
  if (name != "early") c.is_residual = true, c.patch_size = 2, c.in_channels = c.out_channels = 12;
  if (name == "2.2") {
    c.decoder_base_dim = 6, c.z_dim = 5;
    return c;
  }
  c.z_dim = 3, c.num_res_blocks = 1, c.temperal_downsample = {1, 1};
  c.dim_mult = name == "early" ? std::vector{1, 2, 3} : std::vector{2, 2, 1};
  return c;
}

void fill_wan(const WanAutoencoder& model) {
  for (nn::Parameter* p : model.parameters()) {
    const bool norm = p->name.ends_with("gamma"), bias = p->shape().size() == 1;
    const double fan_in = static_cast<double>(p->elements() / p->shape()[0]);
    const float factor = norm || bias ? 0.2f : static_cast<float>(1 / std::sqrt(fan_in));
    std::vector<float> values = drawn(p->name, p->elements(), factor);
    if (norm)
      for (float& v : values)
        v += 1;
    p->write(Tensor::from(values, p->shape()));
  }
}

WanAutoencoder wan_model(const std::string& name, DType compute = DType::f32) {
  WanAutoencoder model(wan_config(name), compute);
  fill_wan(model);
  return model;
}

struct WanPlanes {
  std::vector<float> values;  // (C, T, H, W)
  std::int64_t channels, frames, height, width;
  float& at(std::int64_t c, std::int64_t t, std::int64_t y, std::int64_t x) {
    return values[static_cast<std::size_t>(((c * frames + t) * height + y) * width + x)];
  }
};

WanPlanes wan_planes(const std::string& name, std::int64_t channels, std::int64_t frames,
                     std::int64_t height, std::int64_t width, float factor) {
  return {drawn(name, channels * frames * height * width, factor), channels, frames, height, width};
}

// Frame t of the planes as [H / p, W / p, C p p], or that written to the planes.
Tensor wan_frame(WanPlanes& planes, std::int64_t t, int p, const Tensor* given) {
  const std::int64_t pp = std::int64_t{p} * p;
  const Tensor frame = given != nullptr
                           ? *given
                           : Tensor({planes.height / p, planes.width / p, planes.channels * pp});
  for (std::int64_t c = 0; c < planes.channels; ++c)
    for (std::int64_t y = 0; y < planes.height; ++y)
      for (std::int64_t x = 0; x < planes.width; ++x) {
        const std::int64_t channel = c * pp + x % p * p + y % p;
        float& value =
            frame.data<float>()[(y / p * (planes.width / p) + x / p) * frame.size(2) + channel];
        float& pixel = planes.at(c, t, y, x);
        given != nullptr ? pixel = value : value = pixel;
      }
  return frame;
}

std::vector<float> wan_encoded(const WanAutoencoder& model, WanPlanes video, std::int64_t band) {
  const WanVaeConfig& c = model.config();
  WanPlanes latents{{},
                    c.z_dim,
                    1 + (video.frames - 1) / 4,
                    video.height / c.space_factor(),
                    video.width / c.space_factor()};
  latents.values.resize(
      static_cast<std::size_t>(latents.channels * latents.frames * latents.height * latents.width));
  auto stream = model.encoder(band);
  std::int64_t made = 0;
  for (std::int64_t t = 0; t < video.frames; ++t) {
    const Tensor latent =
        stream.push(wan_frame(video, t, c.patch_size, nullptr), t + 1 == video.frames);
    CHECK(latent.defined() == (t % 4 == 0));
    if (latent.defined()) wan_frame(latents, made++, 1, &latent);
  }
  return latents.values;
}

std::vector<float> wan_decoded(const WanAutoencoder& model, WanPlanes latents, std::int64_t band) {
  const WanVaeConfig& c = model.config();
  WanPlanes video{{},
                  3,
                  1 + 4 * (latents.frames - 1),
                  latents.height * c.space_factor(),
                  latents.width * c.space_factor()};
  video.values.resize(static_cast<std::size_t>(3 * video.frames * video.height * video.width));
  auto stream = model.decoder(band);
  std::int64_t made = 0;
  for (std::int64_t t = 0; t < latents.frames; ++t) {
    stream.push(wan_frame(latents, t, 1, nullptr), t + 1 == latents.frames,
                [&](const Tensor& frame) { wan_frame(video, made++, c.patch_size, &frame); });
    CHECK(made == 1 + 4 * t);
  }
  return video.values;
}

std::span<const float> wan_golden(const io::SafetensorsSet& set, const std::string& name) {
  const io::TensorView* view = set.find(name);
  REQUIRE(view != nullptr);
  return {reinterpret_cast<const float*>(view->data.data()), view->data.size() / 4};
}

std::vector<float> wan_seventh(const std::vector<float>& values) {
  std::vector<float> some;
  for (std::size_t i = 0; i < values.size(); i += 7)
    some.push_back(std::clamp(values[i], -1.f, 1.f));
  return some;
}

constexpr std::int64_t kWanWhole = std::int64_t{1} << 30;

}  // namespace

TEST_CASE("Wan's autoencoder makes the latents and frames of diffusers") {
  const io::SafetensorsSet set(kWan, "latents");
  const std::map<std::string, std::vector<std::array<int, 3>>> cases = {
      {"2.1", {{1, 1, 1}, {5, 2, 3}, {9, 3, 1}, {21, 2, 2}}},
      {"2.2", {{1, 1, 1}, {5, 2, 3}, {9, 3, 1}, {21, 2, 2}}},
      {"early", {{9, 3, 2}}},
      {"wide", {{9, 2, 3}}}};
  for (const auto& [name, sizes] : cases) {
    const WanAutoencoder model = wan_model(name);
    const int space = model.config().space_factor();
    for (const auto& [frames, height, width] : sizes) {
      const std::string size =
          std::to_string(frames) + "x" + std::to_string(height) + "x" + std::to_string(width);
      const std::string key = name + "." + size;
      const WanPlanes video = wan_planes("pixels", 3, frames, height * space, width * space, 0.5f);
      const WanPlanes latents =
          wan_planes("latents", model.config().z_dim, 1 + (frames - 1) / 4, height, width, 1);
      const double of_latents =
          distance(wan_encoded(model, video, kWanWhole), wan_golden(set, key + ".latents"));
      const double of_frames = distance(wan_seventh(wan_decoded(model, latents, kWanWhole)),
                                        wan_golden(set, key + ".frames"));
      INFO(key << ": latents " << of_latents << ", frames " << of_frames);
      CHECK(of_latents < 1e-5);
      CHECK(of_frames < 1e-5);
    }
  }
}

TEST_CASE("bands of rows give the bits of whole frames, on one thread and on several") {
  for (const char* name : {"2.1", "2.2"}) {
    const WanAutoencoder model = wan_model(name);
    const int space = model.config().space_factor();
    const WanPlanes video = wan_planes("pixels", 3, 13, 3 * space, 2 * space, 0.5f);
    const WanPlanes latents = wan_planes("latents", model.config().z_dim, 4, 3, 2, 1);
    const std::vector<float> made = wan_encoded(model, video, kWanWhole);
    const std::vector<float> shown = wan_decoded(model, latents, kWanWhole);
    for (const std::int64_t band : {1, 30, 100}) {
      CHECK(wan_encoded(model, video, band) == made);
      CHECK(wan_decoded(model, latents, band) == shown);
    }
    const OneThread one;
    CHECK(wan_encoded(model, video, 30) == made);
    CHECK(wan_decoded(model, latents, 30) == shown);
  }
}

TEST_CASE("frames do not depend on later ones") {
  const WanAutoencoder model = wan_model("2.2");
  const int z = model.config().z_dim;
  const WanPlanes all = wan_planes("latents", z, 4, 2, 2, 1);
  WanPlanes two{{}, z, 2, 2, 2};
  for (int c = 0; c < z; ++c)
    two.values.insert(two.values.end(), all.values.begin() + c * 16,
                      all.values.begin() + c * 16 + 8);
  const std::vector<float> longer = wan_decoded(model, all, kWanWhole),
                           shorter = wan_decoded(model, two, kWanWhole);
  const std::size_t plane = shorter.size() / 3 / 5;
  for (std::size_t c = 0; c < 3; ++c)
    CHECK(std::equal(shorter.begin() + static_cast<std::ptrdiff_t>(c * 5 * plane),
                     shorter.begin() + static_cast<std::ptrdiff_t>((c + 1) * 5 * plane),
                     longer.begin() + static_cast<std::ptrdiff_t>(c * 13 * plane)));
}

TEST_CASE("Wan's autoencoder in bf16 is near f32") {
  for (const char* name : {"2.1", "2.2"}) {
    const WanAutoencoder exact = wan_model(name), low = wan_model(name, DType::bf16);
    const int space = exact.config().space_factor();
    const WanPlanes video = wan_planes("pixels", 3, 5, 2 * space, 2 * space, 0.5f);
    const WanPlanes latents = wan_planes("latents", exact.config().z_dim, 2, 2, 2, 1);
    CHECK(distance(wan_encoded(low, video, kWanWhole), wan_encoded(exact, video, kWanWhole)) <
          0.05);
    CHECK(distance(wan_decoded(low, latents, kWanWhole), wan_decoded(exact, latents, kWanWhole)) <
          0.05);
  }
}

TEST_CASE("the memory of Wan's autoencoder is told before, and flat in the length of the video") {
  const OneThread one_thread;
  for (const char* name : {"2.1", "2.2"}) {
    WanVaeConfig config = wan_config(name);
    config.base_dim = config.decoder_base_dim = 16;
    const WanAutoencoder model(config);
    for (nn::Parameter* p : model.parameters())
      p->write(Tensor::zeros(p->shape()));
    std::map<bool, double> longest;
    for (const std::int64_t frames : {1, 2, 3, 7, 20})
      for (const bool encodes : {true, false}) {
        const std::int64_t side = 4, space = config.space_factor() / config.patch_size;
        const WanVaeWork work{encodes, frames, side, side};
        const double told =
            wan_vae_cost(config, work, 512, Device::cpu, DType::f32).activation_bytes;
        reset_memory_peak();
        const double before = static_cast<double>(cpu_memory().current);
        auto encoder = model.encoder(512);
        auto decoder = model.decoder(512);
        for (std::int64_t t = 0; encodes && t < 4 * frames - 3; ++t)
          encoder.push(Tensor::zeros({side * space, side * space, config.in_channels}),
                       t == 4 * frames - 4);
        for (std::int64_t t = 0; !encodes && t < frames; ++t)
          decoder.push(Tensor::zeros({side, side, config.z_dim}), t + 1 == frames,
                       [](const Tensor&) {});
        const double taken = static_cast<double>(cpu_memory().peak) - before;
        INFO(name << (encodes ? " encodes " : " decodes ") << frames << ": " << told << " of "
                  << taken);
        CHECK(told == Approx(taken).epsilon(0.03));
        if (frames == 7) longest[encodes] = taken;
        if (frames == 20) CHECK(taken == longest[encodes]);
      }
    // The same work, whether its frames were run or counted.
    const auto flops = [&](std::int64_t frames) {
      return wan_vae_cost(config, {false, frames, 4, 4}, 512, Device::cpu, DType::f32).flops;
    };
    CHECK(flops(9) - flops(8) == Approx(flops(5) - flops(4)));
    CHECK(flops(5) - flops(4) == Approx(flops(4) - flops(3)));
  }
}

TEST_CASE("Wan's autoencoder refuses frames of another form") {
  const WanAutoencoder model = wan_model("2.1");
  const auto refused = [&](const Tensor& frame, bool encodes) {
    auto encoder = model.encoder(kWanWhole);
    auto decoder = model.decoder(kWanWhole);
    CHECK_THROWS_WITH(
        encodes ? static_cast<void>(encoder.push(frame, true))
                : decoder.push(frame, true, [](const Tensor&) {}),
        Contains(encodes ? "rows and columns must be multiples of 8" : "4 channels are needed"));
  };
  for (const Shape& shape : {Shape{8, 3}, {0, 8, 3}, {12, 8, 3}, {8, 12, 3}, {8, 8, 4}})
    refused(Tensor::zeros(shape), true);
  for (const Shape& shape : {Shape{2, 4}, {0, 2, 4}, {2, 2, 3}})
    refused(Tensor::zeros(shape), false);
  refused(Tensor::zeros({8, 8, 3}).to(DType::bf16), true);
  refused(Tensor::zeros({2, 2, 4}).to(DType::bf16), false);
}

TEST_CASE("the host has the pixels of a latent frame of Wan's autoencoder on their way") {
  const WanVaeConfig config = wan_config("2.2");
  const auto host = [&](bool encodes, std::int64_t frames) {
    return wan_vae_cost(config, {encodes, frames, 4, 6}, kWanWhole, Device::cuda, DType::f32)
        .host_bytes;
  };
  const double pixels = 3.0 * 4 * 6 * config.space_factor() * config.space_factor();
  const double of_frame = 4 * pixels, kept = host(true, 1) - of_frame;
  CHECK(kept >= 0);
  CHECK(host(false, 1) - host(true, 1) == Approx(0).margin(of_frame / 2));
  CHECK(host(false, 3) - host(false, 1) == Approx(3 * of_frame).margin(of_frame / 2));
  // Bands that keep a GPU at work are larger.
  const WanVaeWork work{false, 3, 40, 40};
  CHECK(wan_vae_band(config, work, 0, Device::cuda, DType::bf16) >
        wan_vae_band(config, work, 0, Device::cpu, DType::bf16));
}

TEST_CASE("a folder of Wan's autoencoder is a tokenizer") {
  const io::SafetensorsSet set(kWan, "latents");
  for (const std::string name : {"2.1", "2.2"}) {
    const TokenizerConfig config = tokenizer_config(std::string(kWan) + "/" + name);
    const auto tokenizer = make_tokenizer(config);
    CHECK(tokenizer->name() == "AutoencoderKLWan");
    CHECK(tokenizer->channels() == 3);
    CHECK(tokenizer->time_factor() == 4);
    const int space = tokenizer->space_factor();
    CHECK(space == (name == "2.1" ? 4 : 8));
    REQUIRE(tokenizer->statistics());
    CHECK(tokenizer->statistics()->mean == std::vector{-0.3, -0.2, -0.1});
    CHECK(tokenizer->statistics()->std == std::vector{0.5, 0.6, 0.7});
    CHECK(tokenizer->statistics()->frames == 1);

    const int height = 2 * space, width = 3 * space;
    const std::vector<float> pixels = drawn("pixels", std::int64_t{3} * 9 * height * width, 0.5f);
    const std::string key = "folder" + name + ".9x2x3";
    CHECK(distance(tokenizer->encode(pixels, 9, height, width), wan_golden(set, key + ".latents")) <
          1e-5);
    const std::vector<float> latents = drawn("latents", 3 * 3 * 2 * 3);
    const std::vector<float> frames = tokenizer->decode(latents, 3, 2, 3);
    CHECK(distance(wan_seventh(frames), wan_golden(set, key + ".frames")) < 1e-5);
    CHECK(std::ranges::all_of(frames, [](float v) { return v >= -1 && v <= 1; }));

    std::vector<int> counts;
    tokenizer->decode_stream(latents, 3, 2, 3, [&](std::span<const float> some, int count) {
      CHECK(some.size() == static_cast<std::size_t>(3 * count * height * width));
      counts.push_back(count);
    });
    CHECK(counts == std::vector{1, 4, 4});
    const std::size_t eight = pixels.size() / 9 * 8;
    CHECK_THROWS_WITH(tokenizer->encode(std::span(pixels).first(eight), 8, height, width),
                      Contains("cannot encode 8 frames"));
    std::vector<float> damaged = pixels;
    damaged.back() = NAN;
    CHECK_THROWS_WITH(tokenizer->encode(damaged, 9, height, width), Contains("not finite"));

    // Bytes are the same pixels.
    const Tensor bytes({5, height, width, 3}, DType::u8);
    std::vector<float> same(static_cast<std::size_t>(bytes.elements()));
    for (std::int64_t i = 0; i < bytes.elements(); ++i) {
      const auto value = static_cast<std::uint8_t>(i * 37 % 256);
      bytes.data<std::uint8_t>()[i] = value;
      const std::int64_t places = bytes.elements() / 3;
      same[static_cast<std::size_t>(i % 3 * places + i / 3)] =
          static_cast<float>(value) / 127.5f - 1;
    }
    CHECK(tokenizer->encode_bytes(bytes) == tokenizer->encode(same, 5, height, width));
  }
}

TEST_CASE("a limit of memory makes the bands of Wan's autoencoder smaller, or is refused") {
  WanVaeConfig config = wan_config("2.1");
  config.base_dim = config.decoder_base_dim = 16;
  const WanVaeWork work{false, 3, 40, 40};
  const auto cost = [&](std::int64_t band) {
    return wan_vae_cost(config, work, band, Device::cpu, DType::f32).activation_bytes;
  };
  const auto band = [&](double memory) {
    return wan_vae_band(config, work, memory, Device::cpu, DType::f32);
  };
  const std::int64_t usual = band(0);
  CHECK(band(1.04 * cost(usual)) == usual);
  const std::int64_t smaller = band(1.02 * cost(usual));
  CHECK(smaller < usual);
  CHECK(1.03 * cost(smaller) <= 1.02 * cost(usual));

  const TokenizerConfig folder = tokenizer_config(std::string(kWan) + "/2.1");
  const auto small = make_tokenizer(folder, Device::cpu, 1000);
  const std::string told = usage_error([&] { small->check_memory(false, 3, 20, 30, 1); });
  CHECK_THAT(told, Contains("to decode 9 frames of 120x80 the tokenizer needs ") &&
                       Contains(" at least: --tokenizer-memory is 1000 B"));
  const std::vector<float> latents = drawn("latents", 3 * 3 * 20 * 30);
  CHECK(usage_error([&] { small->decode(latents, 3, 20, 30); }) == told);
  const TokenizerFacts facts = inspect_tokenizer(folder);
  CHECK(usage_error([&] { facts.cost({false, 3, 20, 30, 1000, 1}); }) == told);
  const std::vector<float> pixels = drawn("pixels", std::int64_t{3} * 80 * 80);
  CHECK_THAT(usage_error([&] { small->encode(pixels, 1, 80, 80); }),
             Contains("to encode 1 frame of 80x80"));
}

TEST_CASE("ranks that have some rows each decode with Wan's autoencoder what one rank does") {
  for (const std::string name : {"2.1", "2.2"}) {
    const auto tokenizer = make_tokenizer(tokenizer_config(std::string(kWan) + "/" + name));
    CHECK(tokenizer->shares_decoding());
    const int height = 7, width = 3, space = tokenizer->space_factor();
    const std::vector<float> latents = drawn("latents", 3 * 3 * height * width);
    std::vector<std::vector<float>> alone;
    tokenizer->decode_stream(latents, 3, height, width, [&](std::span<const float> some, int) {
      alone.emplace_back(some.begin(), some.end());
    });
    for (const int ranks : {1, 2, 3, 5}) {
      std::vector<std::vector<float>> shown;
      std::mutex mutex;
      dist::thread_worlds(ranks, [&](dist::World& world) {
        std::vector<int> all(static_cast<std::size_t>(ranks));
        std::iota(all.begin(), all.end(), 0);
        const auto group = world.group("clip", all);
        tokenizer->decode_together(
            *group, latents, 3, height, width, [&](std::span<const float> some, int count) {
              const std::lock_guard lock(mutex);
              CHECK(some.size() ==
                    static_cast<std::size_t>(3 * count * height * width) * space * space);
              shown.emplace_back(some.begin(), some.end());
            });
      });
      INFO(name << " on " << ranks);
      CHECK(shown == alone);
      const auto stop = [](std::span<const float>, int) { fail("the disk is full"); };
      CHECK_THROWS_AS(dist::thread_worlds(ranks,
                                          [&](dist::World& world) {
                                            std::vector<int> all(static_cast<std::size_t>(ranks));
                                            std::iota(all.begin(), all.end(), 0);
                                            const auto group = world.group("clip", all);
                                            tokenizer->decode_together(*group, latents, 3, height,
                                                                       width, stop);
                                          }),
                      Error);
    }
  }
  const TokenizerFacts facts = inspect_tokenizer(tokenizer_config(std::string(kWan) + "/2.2"));
  const TokenizerCost one = facts.cost({false, 5, 8, 8, 0, 1}),
                      four = facts.cost({false, 5, 8, 8, 0, 4}),
                      many = facts.cost({false, 5, 8, 8, 0, 9});
  CHECK(four.split->bands == 4);
  CHECK(many.split->bands == 4);
  CHECK(four.cost.flops == one.cost.flops);
  CHECK(four.cost.activation_bytes < one.cost.activation_bytes);
}

namespace {

/// The authors' names of the tensors of a network, from diffusers'.
std::string name_of_authors(std::string name, const WanVaeConfig& c) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
    return at != std::string::npos;
  };
  const int blocks = c.num_res_blocks;
  for (int i = 0; i < c.levels(); ++i) {
    const std::string level = std::to_string(i) + ".";
    if (c.is_residual) {
      replace("down_blocks." + level + "downsampler.",
              "downsamples." + level + "downsamples." + std::to_string(blocks) + ".");
      replace("up_blocks." + level + "upsampler.",
              "upsamples." + level + "upsamples." + std::to_string(blocks + 1) + ".");
      replace("down_blocks." + level + "resnets.", "downsamples." + level + "downsamples.");
      replace("up_blocks." + level + "resnets.", "upsamples." + level + "upsamples.");
      continue;
    }
    for (int j = 0; j <= blocks; ++j)
      replace("up_blocks." + level + "resnets." + std::to_string(j) + ".",
              "upsamples." + std::to_string(i * (blocks + 2) + j) + ".");
    replace("up_blocks." + level + "upsamplers.0.",
            "upsamples." + std::to_string(i * (blocks + 2) + blocks + 1) + ".");
  }
  replace("encoder.down_blocks.", "encoder.downsamples.");
  replace("mid_block.resnets.0.", "middle.0.");
  replace("mid_block.resnets.1.", "middle.2.");
  replace("mid_block.attentions.0.", "middle.1.");
  if (!replace("post_quant_conv.", "conv2.") && !replace("quant_conv.", "conv1.")) {
    if (name.find("samples.") != std::string::npos || name.find("middle.") != std::string::npos) {
      replace("norm1.", "residual.0."), replace("conv1.", "residual.2.");
      replace("norm2.", "residual.3."), replace("conv2.", "residual.6.");
      replace("conv_shortcut.", "shortcut.");
    }
    replace("conv_in.", "conv1.");
    replace("norm_out.", "head.0."), replace("conv_out.", "head.2.");
  }
  return name;
}

}  // namespace

TEST_CASE("the authors' names of Wan's autoencoder are those of diffusers") {
  for (const char* name : {"2.1", "2.2", "early", "wide"}) {
    const WanAutoencoder model(wan_config(name));
    std::vector<std::string> theirs, ours;
    for (const nn::Parameter* p : model.parameters()) {
      ours.push_back(p->name);
      theirs.push_back(name_of_authors(p->name, model.config()));
    }
    CHECK(names_today(kWanVaeClass, Json::object(), theirs) == ours);
    CHECK(names_today(kWanVaeClass, Json::object(), ours) == ours);
  }
  // Some of them as they stand in Wan2.1_VAE.pth and Wan2.2_VAE.pth.
  const std::vector<std::pair<std::string, std::string>> known = {
      {"encoder.middle.0.residual.2.weight", "encoder.mid_block.resnets.0.conv1.weight"},
      {"conv1.weight", "quant_conv.weight"},
      {"encoder.conv1.bias", "encoder.conv_in.bias"},
      {"encoder.downsamples.5.time_conv.weight", "encoder.down_blocks.5.time_conv.weight"},
      {"decoder.upsamples.3.resample.1.weight",
       "decoder.up_blocks.0.upsamplers.0.resample.1.weight"},
      {"decoder.upsamples.7.time_conv.bias", "decoder.up_blocks.1.upsamplers.0.time_conv.bias"},
      {"decoder.upsamples.4.shortcut.weight", "decoder.up_blocks.1.resnets.0.conv_shortcut.weight"},
      {"decoder.upsamples.14.residual.6.weight", "decoder.up_blocks.2.resnets.6.conv2.weight"},
      {"decoder.upsamples.0.upsamples.3.time_conv.weight",
       "decoder.up_blocks.0.upsampler.time_conv.weight"},
      {"decoder.head.0.gamma", "decoder.norm_out.gamma"}};
  std::vector<std::string> there, here;
  for (const auto& [one, other] : known)
    there.push_back(one), here.push_back(other);
  CHECK(names_today(kWanVaeClass, Json::object(), there) == here);
}

TEST_CASE("weights of Wan's autoencoder without a config.json are a tokenizer") {
  for (const std::string name : {"2.1", "2.2"}) {
    const std::string given = std::string(kWan) + "/" + name;
    const HfComponent folder(given);
    const WanVaeConfig network = wan_vae_config_from_json(folder.config(), "the golden folder");
    const TemporaryFolder bare;
    std::vector<io::TensorView> tensors = {folder.weights().tensors().begin(),
                                           folder.weights().tensors().end()};
    for (io::TensorView& tensor : tensors)
      tensor.name = name_of_authors(tensor.name, network);
    io::write_safetensors(bare.path, "diffusion_pytorch_model", tensors);
    const auto tokenizer = make_tokenizer(tokenizer_config(bare.path));
    CHECK(tokenizer->name() == "AutoencoderKLWan");
    CHECK_FALSE(tokenizer->statistics());
    const std::vector<float> latents = drawn("latents", 3 * 3 * 2 * 3);
    CHECK(tokenizer->decode(latents, 3, 2, 3) ==
          make_tokenizer(tokenizer_config(given))->decode(latents, 3, 2, 3));
  }
}

TEST_CASE("a configuration of Wan's autoencoder that is not right is refused by its field") {
  const auto refused = [](const char* field, const Json& value) {
    const std::string path = std::string(kWan) + "/2.2/config.json";
    Json config = parse_json(io::read_file(path), path);
    config[field] = value;
    return usage_error([&] { wan_vae_config_from_json(config, "config.json"); });
  };
  for (const auto& [field, value, words] :
       {std::tuple{"dim_mult", Json({1, 2}), "'temperal_downsample' has 2 values, must have 1"},
        {"dim_mult", Json("1"), "'dim_mult' is not a short list"},
        {"temperal_downsample", Json({true, false}), "must be a fourth"},
        {"attn_scales", Json({0.5}), "'attn_scales' is [0.5]"},
        {"patch_size", Json(3), "'in_channels' is 12 and 'out_channels' 12, must be 27"},
        {"in_channels", Json(3), "'in_channels' is 3 and 'out_channels' 12, must be 12"},
        {"base_dim", Json(0), "'base_dim' is 0"},
        {"dim_mult", Json({1, 3, 7}), "level 1 of the encoder cannot divide"},
        {"scale_factor_spatial", Json(16), "'scale_factor_spatial' is 16, but the levels make 8"}})
    CHECK_THAT(refused(field, value), Contains("config.json: ") && Contains(words));
  // What is absent is as in diffusers, whose 2.1 this is.
  const WanVaeConfig least = wan_vae_config_from_json(Json::object(), "config.json");
  CHECK((!least.is_residual && least.base_dim == 96 && least.z_dim == 16 &&
         least.decoder_base_dim == 96 && least.patch_size == 1));
  Json config = {{"z_dim", 4}, {"latents_mean", {0, 1}}, {"latents_std", {1, 1, 1, 1}}};
  CHECK_THAT(usage_error([&] { wan_vae_statistics(config, "config.json"); }),
             Contains("'latents_mean' is not a list of 4 numbers"));
  config["latents_mean"] = {0, 0, 0, 0};
  config["latents_std"] = {1, 0, 1, 1};
  CHECK_THAT(usage_error([&] { wan_vae_statistics(config, "config.json"); }),
             Contains("not positive"));
}
