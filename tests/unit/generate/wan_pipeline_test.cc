// Whole pipelines of Wan, from prompt to frames, against diffusers
// (scripts/golden/wan_pipeline.py): 2.1, 2.2 from an image by 36 channels, and the 5B of 2.2 with
// and without an image.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "generate/request/given_files.h"
#include "generate/sampling/generator.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/npy.h"
#include "models/folder/load_model.h"
#include "models/text_encoder.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::generate;
using Catch::Contains;

namespace {

namespace fs = std::filesystem;

const std::string kGolden = std::string(VFM_GOLDEN) + "/";
const std::string kClips = kGolden + "wan_pipeline/";

std::vector<float> npy(const std::string& name) {
  return io::npy_floats(io::read_file(kClips + name), name);
}

/// A whole folder of tests/golden/wan_pipeline/NAME, with the tokenizer of `vae`.
struct WanFolder {
  WanFolder(const std::string& name, const std::string& vae) {
    fs::copy(kClips + name, path(), fs::copy_options::recursive);
    if (vae != name) fs::copy(kClips + vae + "/vae", path() + "/vae", fs::copy_options::recursive);
    fs::create_directories(path() + "/tokenizer");
    fs::copy(kGolden + "t5/umt5", path() + "/text_encoder");
    fs::copy(kGolden + "t5/v1_0/tokenizer/tokenizer.json", path() + "/tokenizer/tokenizer.json");
  }
  std::string path() const { return folder / "wan"; }
  models::OpenedModel open() const { return {path(), false}; }
  Generator load() const { return Generator(models::load_model(open())); }

  const TemporaryFolder folder;
};

/// What the script asked of diffusers.
ClipRequest wan_request(const std::string& noise) {
  ClipRequest request;
  request.prompt = " a red fox &amp;amp; its  cubs\n";
  request.negative = "blurry";
  request.frames = 9;
  request.height = request.width = 32;
  request.fps = 16;
  request.noise = std::make_shared<const std::vector<float>>(npy(noise));
  return request;
}

SampleOptions wan_sampling(const Generator& generator) {
  SampleOptions options = generator.sampling();
  CHECK(options.sampler == models::Sampler::unipc);
  options.as = models::SampledAs::diffusers;
  options.shift = 3;
  options.steps = 6;
  options.guidance = 3;
  return options;
}

ClipRequest with_image(ClipRequest request, const Generator& generator) {
  GivenFiles files;
  files.condition.path = kClips + "image.png";
  read_given_files(files, generator.shape(), request);
  return request;
}

/// The largest difference to a latent of the golden data, which is in model units.
double latent_error(const Generator& generator, Latent latent, const std::string& name) {
  const std::vector<float> theirs = npy(name);
  generator.facts().scale->to_model(latent.values, latent.frames, models::Process::flow);
  REQUIRE(latent.values.size() == theirs.size());
  double most = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i)
    most = std::max(most, std::abs(double{latent.values[i]} - theirs[i]));
  return most;
}

/// The largest difference to frames of the golden data, in levels of 255.
int frame_error(const Generator& generator, const Latent& latent, const std::string& name) {
  const std::string theirs = io::read_file(kClips + name);
  const std::vector<float> ours =
      generator.tokenizer().decode(latent.values, latent.frames, latent.height, latent.width);
  REQUIRE(ours.size() == theirs.size());
  const std::size_t plane = ours.size() / 3;
  int most = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const float level = (std::clamp(ours[i % 3 * plane + i / 3], -1.0f, 1.0f) + 1) * 127.5f;
    const int their = static_cast<unsigned char>(theirs[i]);
    most = std::max(most, std::abs(static_cast<int>(std::lround(level)) - their));
  }
  return most;
}

void change_json(const std::string& path, const Json& changes) {
  Json json = parse_json(io::read_file(path), path);
  json.update(changes);
  io::write_file(path, dump_json(json));
}

constexpr double kLatentError = 1e-4;

}  // namespace

TEST_CASE("Wan 2.1 makes diffusers' latents and frames from a prompt", "[wan]") {
  const Generator generator = WanFolder("t2v", "t2v").load();
  CHECK_FALSE(generator.video_to_world());
  const ClipRequest request = wan_request("noise.npy");
  SampleOptions options = wan_sampling(generator);
  const Latent latent = generator.denoise(request, options);
  const double error = latent_error(generator, latent, "t2v.latent.npy");
  const int levels = frame_error(generator, latent, "t2v.rgb");
  INFO("latent " << error << ", frames " << levels);
  CHECK(error < kLatentError);
  CHECK(levels <= 1);
  // With another scheduler of theirs.
  options.sampler = models::Sampler::flow;
  CHECK(latent_error(generator, generator.denoise(request, options), "t2v_euler.latent.npy") <
        kLatentError);
  // A prompt that differs only in what is cleaned away is the same; the noise is given.
  ClipRequest plain = request;
  plain.prompt = "a red fox & its cubs";
  options = wan_sampling(generator);
  CHECK(generator.denoise(plain, options).values == latent.values);
}

TEST_CASE("Wan 2.2's 36 channels make diffusers' latents and frames from an image", "[wan]") {
  const Generator generator = WanFolder("i2v", "t2v").load();
  const ClipRequest request = wan_request("noise.npy");
  const SampleOptions options = wan_sampling(generator);
  CHECK_THAT(usage_error([&] { generator.denoise(request, options); }),
             Contains("the model only continues videos"));
  const Latent latent = generator.denoise(with_image(request, generator), options);
  const double error = latent_error(generator, latent, "i2v.latent.npy");
  const int levels = frame_error(generator, latent, "i2v.rgb");
  INFO("latent " << error << ", frames " << levels);
  CHECK(error < kLatentError);
  CHECK(levels <= 1);
}

TEST_CASE("Wan 2.2's 5B makes diffusers' latents and frames with an image and without", "[wan]") {
  const Generator generator = WanFolder("ti2v", "ti2v").load();
  CHECK(generator.video_to_world());
  const ClipRequest request = wan_request("ti2v_noise.npy");
  const SampleOptions options = wan_sampling(generator);
  CHECK(latent_error(generator, generator.denoise(request, options), "ti2v_text.latent.npy") <
        kLatentError);
  const Latent latent = generator.denoise(with_image(request, generator), options);
  const double error = latent_error(generator, latent, "ti2v.latent.npy");
  const int levels = frame_error(generator, latent, "ti2v.rgb");
  INFO("latent " << error << ", frames " << levels);
  CHECK(error < kLatentError);
  CHECK(levels <= 1);
}

TEST_CASE("captions for a Wan are cleaned for training as prompts are for generation", "[wan]") {
  const WanFolder wan("t2v", "t2v");
  const auto encoder_of = [](const std::string& folder) {
    return models::make_text_encoder(models::text_encoder_config(folder, 512, DType::f32));
  };
  const auto whole = encoder_of(wan.path()), part = encoder_of(wan.path() + "/text_encoder"),
             alone = encoder_of(kGolden + "t5/umt5");
  CHECK((whole->config().clean && part->config().clean && !alone->config().clean));
  const std::string given = wan_request("noise.npy").prompt, clean = "a red fox & its cubs";
  const text::TokenEmbeddings expected = alone->encode(clean);
  CHECK(whole->encode(given).values == expected.values);
  CHECK(part->encode(given).values == expected.values);
  CHECK(alone->encode(given).values != expected.values);
  // What is stored with the captions is what generation does.
  CHECK(models::text_config_from_json(whole->config().to_json()).clean);
  CHECK_FALSE(models::text_config_from_json(alone->config().to_json()).clean);
}

TEST_CASE("a Wan has the sizes and the sampling of its authors' program", "[wan]") {
  const models::ModelFacts small = WanFolder("t2v", "t2v").open().facts();
  CHECK((small.usual.frames == 21 && small.usual.height == 60 && small.usual.width == 104));
  CHECK((small.fps == 16 && small.text_padding == 512 && small.encode_empty));
  CHECK((small.text_encoder->clean && !small.clean_time && small.no_guidance == 0));
  CHECK((small.sampling.steps == 50 && small.sampling.guidance == 5));
  CHECK((small.sampling.shift == 8 && small.sampling.diffusers == models::InDiffusers{50, 4, 3}));
  const models::ModelFacts five = WanFolder("ti2v", "ti2v").open().facts();
  CHECK((five.usual.frames == 31 && five.usual.height == 44 && five.usual.width == 80));
  CHECK((five.fps == 24 && five.clean_time && five.sampling.guidance == 4));
  const models::ModelFacts image = WanFolder("i2v", "t2v").open().facts();
  CHECK((image.sampling.steps == 40 && image.sampling.guidance == 2.5));
  CHECK((image.sampling.shift == 5 && image.sampling.diffusers == small.sampling.diffusers));
  // A wider one than that of 1.3 billion parameters, and one of two networks.
  const WanFolder wide("t2v", "t2v"), two("t2v", "t2v");
  change_json(wide.path() + "/transformer/config.json", {{"num_attention_heads", 129}});
  const models::ModelFacts large = wide.open().facts();
  CHECK((large.sampling.steps == 50 && large.sampling.guidance == 4 && !large.boundary));
  CHECK((large.sampling.shift == 5 && large.sampling.scheduler_shift() == 3));
  fs::copy(two.path() + "/transformer", two.path() + "/transformer_2");
  change_json(
      two.path() + "/model_index.json",
      {{"transformer_2", {"diffusers", "WanTransformer3DModel"}}, {"boundary_ratio", 0.875}});
  const models::ModelFacts experts = two.open().facts();
  CHECK((experts.sampling.steps == 40 && experts.boundary == 0.875));
  CHECK((experts.sampling.guidance == 3 && experts.sampling.guidance_low == 2));
  CHECK((experts.sampling.shift == 12 && experts.sampling.scheduler_shift() == 3));
}
