// The Cosmos tokenizer's network against diffusers' (scripts/golden/cosmos_tokenizer.py), and
// against itself: chunks, parts, memory, gradients.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "io/safetensors.h"
#include "models/cosmos/autoencoder.h"
#include "models/cosmos/config_json.h"
#include "models/fsq.h"
#include "support/cosmos_drawn.h"
#include "support/distance.h"
#include "tensor/tensor.h"

using namespace vfm;
using namespace vfm::models;

namespace {

CosmosConfig wide() {
  CosmosConfig c;
  c.encoder_block_out_channels = {8, 12, 16, 16};
  c.decode_block_out_channels = {12, 16, 16, 16};
  c.latent_channels = c.z_channels = 4;
  return c;
}

CosmosConfig config_of(const std::string& name) {
  CosmosConfig c = wide();
  if (name == "cv4x8x8") c.patch_size = 2, c.temporal_compression_ratio = 4;
  if (name == "cv8x16x16") c.spatial_compression_ratio = 16;
  if (name == "attending") c.resolution = 64, c.attention_resolutions = {8};
  if (name == "discrete") c.levels = kFsqLevels, c.z_channels = 5, c.latent_channels = 6;
  return c;
}

CosmosAutoencoder filled(const CosmosConfig& config, DType compute = DType::f32) {
  CosmosAutoencoder model(config, 0, compute, Device::cpu, false);
  fill(model);
  return model;
}

Tensor video(std::int64_t t, std::int64_t h, std::int64_t w) {
  return channels_last(drawn("pixels", 3 * t * h * w, 0.5f), t, h, w);
}

std::span<const float> floats_of(const io::SafetensorsSet& set, const std::string& name) {
  const io::TensorView* view = set.find(name);
  REQUIRE(view != nullptr);
  return {reinterpret_cast<const float*>(view->data.data()), view->data.size() / 4};
}

struct Case {
  std::string config;
  std::int64_t t, h, w;
  std::string name() const { return fmt::format("{}.{}x{}x{}", config, t, h, w); }
};

}  // namespace

TEST_CASE("encode and decode are diffusers'") {
  const io::SafetensorsSet golden(VFM_GOLDEN, "cosmos_vae");
  ops::Tape silent(false);
  for (const Case& c : {Case{"cv8x8x8", 1, 16, 32},
                        {"cv8x8x8", 9, 32, 16},
                        {"cv8x8x8", 17, 16, 16},
                        {"cv4x8x8", 1, 16, 16},
                        {"cv4x8x8", 9, 16, 32},
                        {"cv8x16x16", 9, 32, 48},
                        {"attending", 17, 32, 16},
                        {"discrete", 9, 32, 32}}) {
    INFO(c.name());
    const CosmosAutoencoder model = filled(config_of(c.config));
    Tensor latents = model.encode(silent, video(c.t, c.h, c.w));
    CHECK(distance(planar(latents), floats_of(golden, c.name() + ".latents")) < 1e-5);
    if (model.config().discrete()) {
      const Fsq fsq(model.config().levels);
      const io::TensorView* codes = golden.find(c.name() + ".codes");
      REQUIRE(codes != nullptr);
      const auto* expected = reinterpret_cast<const std::int32_t*>(codes->data.data());
      for (std::int64_t i = 0; i < latents.elements() / 6; ++i) {
        const std::int32_t code = fsq.encode(latents.data<float>() + 6 * i, 1);
        CHECK(code == expected[i]);
        fsq.values(code, latents.data<float>() + 6 * i, 1);
      }
    }
    const std::vector<float> frames = planar(model.decode(silent, latents));
    std::vector<float> some;
    for (std::size_t i = 0; i < frames.size(); i += 7)
      some.push_back(frames[i]);
    CHECK(distance(some, floats_of(golden, c.name() + ".frames")) < 1e-5);
  }
}

TEST_CASE("a prefix of a video has the prefix of its latents, and the other way") {
  const CosmosAutoencoder model = filled(wide());
  ops::Tape silent(false);
  const Tensor pixels = video(17, 16, 32);
  const Tensor latents = model.encode(silent, pixels), frames = model.decode(silent, latents);
  REQUIRE(frames.shape() == pixels.shape());
  for (const int k : {0, 1}) {
    const Tensor part = model.encode(silent, pixels.rows(0, 1 + 8 * k).clone());
    CHECK(distance(part.floats(), latents.rows(0, 1 + k).clone().floats()) == 0);
    const Tensor decoded = model.decode(silent, latents.rows(0, 1 + k).clone());
    CHECK(distance(decoded.floats(), frames.rows(0, 1 + 8 * k).clone().floats()) == 0);
  }
}

TEST_CASE("chunks give the same bits") {
  for (const std::string name : {"cv8x8x8", "cv4x8x8", "cv8x16x16", "attending"})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && name != "attending") continue;
      INFO(name << " " << dtype_name(dtype));
      const CosmosAutoencoder model = filled(config_of(name), dtype);
      const int time = model.config().temporal_compression_ratio;
      ops::Tape silent(false);
      const Tensor pixels = video(1 + 4 * time, 32, 16);
      const Tensor latents = model.encode(silent, pixels), frames = model.decode(silent, latents);
      for (const std::int64_t chunk : {1, 3}) {
        auto encoding = model.encode_stream(), decoding = model.decode_stream();
        for (std::int64_t at = 0; at < 5; at += chunk) {
          const std::int64_t end = std::min<std::int64_t>(5, at + chunk);
          const std::int64_t from = at == 0 ? 0 : 1 + (at - 1) * time, to = 1 + (end - 1) * time;
          const Tensor made = encoding.push(pixels.rows(from, to).clone());
          CHECK(distance(made.floats(), latents.rows(at, end).clone().floats()) == 0);
          const Tensor shown = decoding.push(latents.rows(at, end).clone());
          CHECK(distance(shown.floats(), frames.rows(from, to).clone().floats()) == 0);
        }
      }
    }
}

TEST_CASE("ranks that have a chunk each in turn decode to the bits of one") {
  for (const std::string name : {"cv8x8x8", "cv4x8x8", "attending"})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && name != "attending") continue;
      const CosmosAutoencoder model = filled(config_of(name), dtype);
      const int time = model.config().temporal_compression_ratio;
      ops::Tape silent(false);
      const Tensor latents = model.encode(silent, video(1 + 6 * time, 32, 16));
      const Tensor frames = model.decode(silent, latents);
      // Of 7 latent frames one, two or three a chunk, on ranks that are fewer or more than these.
      for (const std::int64_t chunk : {1, 2, 3})
        for (const int ranks : {2, 3, 8}) {
          INFO(name << " " << dtype_name(dtype) << " chunks of " << chunk << ", ranks " << ranks);
          std::atomic<std::int64_t> equal = 0;
          dist::thread_worlds(ranks, [&](dist::World& world) {
            std::vector<int> all(static_cast<std::size_t>(ranks));
            std::iota(all.begin(), all.end(), 0);
            const auto group = world.group("clip", all);
            TimeExchange exchange(RankLine(*group), (7 + chunk - 1) / chunk);
            auto stream = model.decode_stream(nullptr, &exchange);
            while (exchange.next_round() && exchange.takes_part()) {
              const std::int64_t at = (exchange.begin() + world.rank()) * chunk;
              const std::int64_t end = std::min<std::int64_t>(7, at + chunk);
              const Tensor shown = stream.push(latents.rows(at, end).clone());
              const std::int64_t from = at == 0 ? 0 : 1 + (at - 1) * time;
              const Tensor wanted = frames.rows(from, 1 + (end - 1) * time).clone();
              if (shown.shape() == wanted.shape() && distance(shown.floats(), wanted.floats()) == 0)
                equal += end - at;
            }
          });
          CHECK(equal == 7);
        }
    }
}

TEST_CASE("129 frames take no more memory than 9, but for keys and values") {
  const CosmosAutoencoder model = filled(wide());
  const auto kept_after = [&](int latent_frames) {
    auto encoding = model.encode_stream(), decoding = model.decode_stream();
    std::size_t kept = 0;
    for (int i = 0; i < latent_frames; ++i) {
      decoding.push(encoding.push(video(i == 0 ? 1 : 8, 64, 64)));
      kept = cpu_memory().current;
    }
    return kept;
  };
  const std::size_t kept_small = kept_after(2), peak_small = cpu_memory().peak;
  const std::size_t kept_large = kept_after(17), peak_large = cpu_memory().peak;
  // Two attentions along time, each keys and values of 16 channels for 8 x 8 pixels.
  const std::size_t each = 2 * 2 * 16 * 8 * 8 * sizeof(float);
  CHECK(kept_large - kept_small <= 15 * each);
  CHECK(peak_large - peak_small <= 15 * each);
}

TEST_CASE("bands of rows give the whole picture, to the bit") {
  for (const std::string name : {"cv8x8x8", "cv8x16x16", "attending"})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && name != "attending") continue;
      const CosmosAutoencoder model = filled(config_of(name), dtype);
      ops::Tape silent(false);
      const std::int64_t space = model.config().spatial_compression_ratio, rows = 5;
      const Tensor pixels = video(9, rows * space, 48);
      const Tensor latents = model.encode(silent, pixels), frames = model.decode(silent, latents);
      const auto band = [](const Tensor& x, std::int64_t begin, std::int64_t end) {
        const Tensor part({x.size(0), end - begin, x.size(2), x.size(3)});
        const std::int64_t row = x.size(2) * x.size(3);
        for (std::int64_t t = 0; t < x.size(0); ++t)
          std::copy_n(x.data<float>() + (t * x.size(1) + begin) * row, (end - begin) * row,
                      part.data<float>() + t * (end - begin) * row);
        return part;
      };
      for (const int ranks : {1, 2, 3, 5}) {
        INFO(name << " " << dtype_name(dtype) << " on " << ranks);
        std::vector<double> off(static_cast<std::size_t>(ranks));
        dist::thread_worlds(ranks, [&](dist::World& world) {
          std::vector<int> all(static_cast<std::size_t>(ranks));
          std::iota(all.begin(), all.end(), 0);
          const auto group = world.group("clip", all);
          const SpatialExchange exchange(RankLine(*group), rows);
          const std::int64_t begin = exchange.begin(world.rank()), end = exchange.end(world.rank());
          const Tensor own = model.encode_part(exchange, band(pixels, begin * space, end * space));
          const Tensor shown = model.decode_part(exchange, band(latents, begin, end));
          const auto apart = [&](const Tensor& a, const Tensor& b) {
            return a.shape() == b.shape() ? distance(a.floats(), b.floats()) : 1;
          };
          off[static_cast<std::size_t>(world.rank())] =
              std::max(apart(own, band(latents, begin, end)),
                       apart(shown, band(frames, begin * space, end * space)));
        });
        // In bf16 oneDNN adds up the convolutions of small pictures in orders of their own.
        CHECK(*std::ranges::max_element(off) <= (dtype == DType::f32 ? 0 : 1e-3));
      }
    }
}

TEST_CASE("bf16 is near f32") {
  ops::Tape silent(false);
  const Tensor pixels = video(9, 32, 32);
  const CosmosAutoencoder fine = filled(wide()), low = filled(wide(), DType::bf16);
  const Tensor latents = fine.encode(silent, pixels);
  CHECK(distance(low.encode(silent, pixels).floats(), latents.floats()) < 0.05);
  CHECK(distance(low.decode(silent, latents).floats(), fine.decode(silent, latents).floats()) <
        0.05);
}

TEST_CASE("a gradient reaches every parameter, and is the slope") {
  for (const std::string name : {"cv8x8x8", "attending"}) {
    const CosmosAutoencoder model(config_of(name), 0);
    fill(model);
    const Tensor pixels = video(9, 16, 16);
    const auto loss = [&](ops::Tape& tape) {
      return model.decode(tape, model.encode(tape, pixels));
    };
    ops::Tape tape;
    const Tensor out = loss(tape);
    const Tensor cotangent = Tensor::from(drawn("cotangent", out.elements()), out.shape());
    tape.backward(out, cotangent);
    const auto objective = [&] {
      ops::Tape silent(false);
      const Tensor y = loss(silent);
      double sum = 0;
      for (std::size_t i = 0; i < y.floats().size(); ++i)
        sum += double{y.floats()[i]} * cotangent.floats()[i];
      return sum;
    };
    double expected = 0, size = 0;
    std::vector<std::vector<float>> directions;
    for (nn::Parameter* p : model.parameters()) {
      INFO(p->name);
      double own = 0;
      directions.push_back(drawn("towards " + p->name, p->elements()));
      for (std::size_t i = 0; i < directions.back().size(); ++i) {
        const double g = p->grad.floats()[i];
        own += g * g;
        expected += g * directions.back()[i];
      }
      size += own;
      // A key's bias adds the same to all of a query's scores.
      if (!p->name.ends_with("to_k.bias")) CHECK(own > 0);
    }
    const float h = 2e-4f;
    const auto shift = [&](float by) {
      for (std::size_t n = 0; n < directions.size(); ++n)
        for (std::size_t i = 0; i < directions[n].size(); ++i)
          model.parameters()[n]->value.floats()[i] += by * directions[n][i];
    };
    shift(h);
    const double above = objective();
    shift(-2 * h);
    const double slope = (above - objective()) / (2 * double{h});
    CHECK(std::abs(slope - expected) < 0.02 * std::sqrt(size));
  }
}

TEST_CASE("configurations that no tokenizer has are refused") {
  const auto refused = [](const std::function<void(CosmosConfig&)>& change) {
    CosmosConfig c;
    change(c);
    try {
      c.validate("'config.json'");
      return false;
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage;
    }
  };
  CHECK_FALSE(refused([](CosmosConfig&) {}));
  CHECK(refused([](CosmosConfig& c) { c.patch_size = 3; }));
  CHECK(refused([](CosmosConfig& c) { c.temporal_compression_ratio = 16; }));
  CHECK(refused([](CosmosConfig& c) { c.spatial_compression_ratio = 64; }));
  CHECK(refused([](CosmosConfig& c) { c.decode_block_out_channels = {128, 256}; }));
  CHECK(refused([](CosmosConfig& c) { c.levels = {8, 0}; }));
  CHECK_THROWS_AS(cosmos_config_from_json({{"patch_type", "rearrange"}}, "x"), Error);
  CHECK_THROWS_WITH(cosmos_config_from_json({{"temporal_compression_ratio", 1}}, "x"),
                    Catch::Contains("a tokenizer of pictures (CI, DI)"));
  // A new one has no statistics, and must not be taken for a published one.
  CHECK(cosmos_config_to_json(CosmosConfig()).at("latents_mean") == nullptr);
  const CosmosConfig discrete = config_of("discrete");
  CHECK(cosmos_config_to_json(cosmos_config_from_json(cosmos_config_to_json(discrete), "x")) ==
        cosmos_config_to_json(discrete));
  const CosmosAutoencoder model = filled(wide());
  ops::Tape silent(false);
  CHECK_THROWS_AS(model.encode(silent, video(8, 16, 16)), Error);
  CHECK_THROWS_AS(model.encode(silent, video(9, 16, 12)), Error);
}
