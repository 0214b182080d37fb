// Clips that are encoded while training: the bits of vfm-pack, another crop and caption each epoch,
// and what is said of clips that are not what the dataset's index says.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "data/clips.h"
#include "dist/threads.h"
#include "io/atomic_file.h"
#include "io/npy.h"
#include "media/container/picture_file.h"
#include "media/encode/encoder.h"
#include "pack/sample.h"
#include "shard/dataset_meta.h"
#include "shard/reader.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"
#include "train/data/shared_files.h"
#include "train/encoded/encoded_clips.h"
#include "train/encoded/measured_scale.h"
#include "train/kind.h"
#include "train/latents_fixture.h"

using namespace vfm;
using namespace vfm::train;
using Catch::Contains;

namespace {

constexpr int kWidth = 96, kHeight = 64, kFrames = 12;

/// Another picture for each number: of each pixel the colours tell the place.
media::RgbImage image_of(int number) {
  media::RgbImage image{kWidth, kHeight, {}};
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (const int value : {2 * x, 3 * y, 20 * number})
        image.pixels.push_back(static_cast<std::uint8_t>(value));
  return image;
}

std::string video() {
  media::EncodeOptions options;
  options.width = kWidth, options.height = kHeight;
  options.time_base = {1, 12}, options.frame_rate = {12, 1};
  media::VideoEncoder encoder(options);
  for (int frame = 0; frame < kFrames; ++frame)
    encoder.add(image_of(frame), frame);
  return encoder.finish();
}

std::string embedding(float value) {
  return io::make_npy_half({2, 4}, std::vector<float>(8, value));
}

struct ClipsOptions {
  int promised = kFrames;  ///< what the index says of frames
  bool sizes = true;       ///< whether it says anything
  bool embeddings = true;  ///< else captions alone
};

/// What vfm-shard leaves: "film" and "picture" for training, "other" for validation, a shard each.
struct ClipFolder {
  TemporaryFolder folder;

  explicit ClipFolder(const ClipsOptions& options = {}) {
    std::vector<shard::DatasetShard> shards;
    Json plan = Json::array();
    for (const std::string key : {"film", "picture", "other"}) {
      const std::string split = key == "other" ? "val" : "train";
      const std::string stem = split + "/" + key + "/" + key + "-000000";
      std::filesystem::create_directories(folder / (split + "/" + key));
      shard::Writer writer(tar_of(key));
      add(writer, key,
          key == "picture" ? shard::Member{"png", media::encode_png(image_of(3))}
                           : shard::Member{"mp4", video()},
          options);
      Json notes = writer.finish();
      notes["split"] = split;
      folder.write(stem + ".json", dump_json(notes));
      plan.push_back({{"path", stem + ".tar"}});
      shards.push_back({stem + ".tar", split, notes["samples"], notes["bytes"], notes["xxh3"]});
    }
    shard::write_energon_meta(
        folder.path, shards,
        [&](std::size_t, std::int64_t, std::string_view, std::string_view extension) {
          return media_of(extension, options);
        });
    folder.write("plan.json", dump_json({{"shards", plan}}));
    folder.write("dataset.json", "{}");
  }

  std::string tar_of(const std::string& key) const {
    return folder / ((key == "other" ? "val/" : "train/") + key + "/" + key + "-000000.tar");
  }

  static void add(shard::Writer& writer, const std::string& key, shard::Member media,
                  const ClipsOptions& options) {
    const Json meta = {{"caption", "in words"}, {"text_encoder", {{"name", "x"}, {"dim", 4}}}};
    shard::Sample sample{key, {std::move(media), {"json", dump_json(meta)}}};
    if (options.embeddings) {
      sample.members.push_back({"short.text.npy", embedding(0.5f)});
      sample.members.push_back({"text.npy", embedding(0.25f)});
    } else {
      sample.members.push_back({"txt", "a red circle"});
    }
    writer.add(sample);
  }

  static shard::MediaMetadata media_of(std::string_view extension, const ClipsOptions& options) {
    if (!options.sizes || (extension != "mp4" && extension != "png")) return {};
    if (extension == "png")
      return {"image", Json{{"width", kWidth}, {"height", kHeight}, {"format", "PNG"}}};
    return {"av", Json{{"video_num_frames", options.promised},
                       {"video_width", kWidth},
                       {"video_height", kHeight},
                       {"video_fps", 12.0},
                       {"video_duration", kFrames / 12.0}}};
  }
};

RunOptions options_of(const ClipFolder& clips, const std::string& data = "",
                      const std::string& tokenizer = "builtin:wavelet", int frames = 9) {
  RunOptions options;
  options.recipe =
      tiny_recipe("data: {tokens: 256, size: 48, frames: " + std::to_string(frames) + data + "}\n");
  options.data = clips.folder.path;
  options.encoders.tokenizer = tokenizer;
  return options;
}

std::unique_ptr<Dataset> open(const RunOptions& options, const std::string& split = "train") {
  return kind_of(options.recipe.model.type).open(options, split);
}

CleanSample at_epoch(const Dataset& data, std::size_t i, std::uint32_t epoch) {
  return data.read(i, SeenAt{epoch * 7 + 1, epoch});
}

data::PixelOptions packing_options() {
  data::PixelOptions clip;
  clip.size = 48, clip.frames = 9, clip.time_step = 8, clip.multiple = 16;
  return clip;
}

}  // namespace

TEST_CASE("in the middle, latents as halves have the bits of vfm-pack's") {
  const ClipFolder clips;
  const auto data = open(options_of(clips, ", crop: centre"));
  const auto tokenizer = models::make_tokenizer({"builtin:wavelet"});
  const data::PixelOptions clip = packing_options();
  const auto encoder = pack::make_clip_encoder(*tokenizer, clip, nullptr);
  REQUIRE(data->size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const shard::Sample sample =
        shard::IndexedReader(clips.tar_of(i == 0 ? "film" : "picture")).read(0);
    const pack::ClipLatents made = pack::make_latents(sample, *tokenizer, *encoder);
    REQUIRE(made.windows.size() == 1);
    const pack::LatentOutput& packed = made.windows[0];
    const data::Entry sizes = data->entry(i);
    INFO(sizes.key);
    CHECK(sizes.frames == packed.entry.frames);
    CHECK(sizes.height == packed.entry.height);
    CHECK(sizes.width == packed.entry.width);
    CHECK(sizes.fps == packed.entry.fps);
    CHECK(sizes.text_tokens == packed.entry.text_tokens);
    const CleanSample read = at_epoch(*data, i, i == 0 ? 3 : 0);
    CHECK(io::make_npy_half({24, sizes.frames, sizes.height, sizes.width}, read.x0) ==
          *packed.sample.find("latent.npy"));
    CHECK(io::make_npy_half({2, 4}, read.text) == *packed.sample.find("text.npy"));
    CHECK(read.fps == packed.entry.fps);
    CHECK(read.read_bytes == sample.bytes());
  }
}

TEST_CASE("one rank lists the clips of a dataset for all") {
  for (const bool sizes : {true, false}) {
    const ClipFolder clips({.sizes = sizes, .embeddings = sizes});
    clips.folder.write("dataset.json", R"({"splits": {"val": {"samples": 1}}})");
    RunOptions options = options_of(clips);
    if (!sizes) {  // nor embeddings: then there is an encoder of captions
      options.encoders.text = clips.folder / "t5";
      std::filesystem::copy(std::string(VFM_GOLDEN) + "/t5/v1_1", options.encoders.text,
                            std::filesystem::copy_options::recursive);
    }
    const auto facts_of = [&] {
      const auto train = open(options);
      const auto val = train->other_split("val");
      if (train->size() != 2) fail("not all clips");
      return train->fingerprint() + val->fingerprint() + dump_json(train->info()) +
             dump_json(Json(train->remarks()));
    };
    const std::string expected = facts_of();
    dist::thread_worlds(3, [&](dist::World& world) {
      const data::GivenTexts given(share_small_files(world, options));
      world.barrier();
      if (world.rank() == 0)
        for (const char* name :
             {"plan.json", "dataset.json", "samples.bin", ".nv-meta", "train", "val", "t5"})
          std::filesystem::remove_all(clips.folder / name);
      world.barrier();
      if (facts_of() != expected) fail("opened something else");
      if (!kind_of(options.recipe.model.type).has_split(options.data, "val"))
        fail("has no validation");
    });
  }
}

TEST_CASE("each window of a clip is a sample, with the bits of vfm-pack's") {
  const ClipFolder clips;
  const auto data = open(options_of(clips, ", crop: centre", "builtin:fsq", 5));
  const auto tokenizer = models::make_tokenizer({"builtin:fsq"});
  data::PixelOptions clip = packing_options();
  clip.frames = 5, clip.time_step = 4, clip.multiple = 8, clip.windows = 0;
  const auto encoder = pack::make_clip_encoder(*tokenizer, clip, nullptr);
  const shard::Sample film = shard::IndexedReader(clips.tar_of("film")).read(0);
  const pack::ClipLatents made = pack::make_latents(film, *tokenizer, *encoder);
  REQUIRE(made.windows.size() == 2);  // of 12 frames
  REQUIRE(data->size() == 3);         // and the picture
  CHECK(made.frames.latents == 10);
  CHECK(made.frames.remainder == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const pack::LatentOutput& packed = made.windows[i];
    const data::Entry sizes = data->entry(i);
    CHECK(sizes.key == packed.entry.key);
    CHECK(sizes.key == "film-w00" + std::to_string(i));
    CHECK(sizes.frames == packed.entry.frames);
    CHECK(sizes.fps == packed.entry.fps);
    const CleanSample read = at_epoch(*data, i, 0);
    CHECK(read.key == sizes.key);
    const std::vector<std::uint16_t> codes(read.codes.begin(), read.codes.end());
    CHECK(io::make_npy("<u2", {sizes.frames, sizes.height, sizes.width}, codes.data(),
                       codes.size() * 2) == *packed.sample.find("codes.npy"));
    const Json meta = parse_json(*packed.sample.find("json"), "its json");
    CHECK(meta["clip"] == "film");
    CHECK(meta["first_frame"] == 1 + 5 * i);
    CHECK(meta["clip_begin"].get<double>() == Approx((1 + 5 * i) / 12.0));
    CHECK(meta["clip_end"].get<double>() == Approx((6 + 5 * i) / 12.0));
  }
  CHECK(*made.windows[0].sample.find("codes.npy") != *made.windows[1].sample.find("codes.npy"));
}

TEST_CASE(
    "each epoch takes another crop and one of the captions, whatever the step; validation does "
    "not") {
  const ClipFolder clips;
  const auto data = open(options_of(clips, ", captions: [caption, short]"));
  std::set<std::vector<float>> latents;
  std::set<float> texts;
  for (std::uint32_t epoch = 0; epoch < 12; ++epoch) {
    const CleanSample read = at_epoch(*data, 1, epoch);
    latents.insert(read.x0);
    texts.insert(read.text.at(0));
    const CleanSample again = data->read(1, SeenAt{900, epoch});
    CHECK(again.x0 == read.x0);
    CHECK(again.text == read.text);
  }
  CHECK(latents.size() > 3);  // of the few places that the picture has
  CHECK(texts == std::set<float>{0.25f, 0.5f});
  const auto centre = open(options_of(clips, ", crop: centre"));
  CHECK(data->read(1).x0 == at_epoch(*centre, 1, 5).x0);
  CHECK(data->read(1).text.at(0) == 0.25f);
  CHECK(data->read(1).x0 == data->read(1).x0);  // the second time from memory
}

TEST_CASE("a mirrored clip is the same from right to left") {
  data::PixelOptions clip = packing_options();
  clip.crop = data::CropMode::random;
  const std::string png = media::encode_png(image_of(1));
  const data::ClipPixels plain = data::clip_pixels(png, "a picture", "k", clip);
  clip.flip = 1;
  data::ClipPixels mirrored = data::clip_pixels(png, "a picture", "k", clip);
  REQUIRE(mirrored.pixels != plain.pixels);
  for (auto row = mirrored.pixels.begin(); row != mirrored.pixels.end(); row += mirrored.width)
    std::reverse(row, row + mirrored.width);
  CHECK(mirrored.pixels == plain.pixels);
}

TEST_CASE("a tokenizer sees another part of a clip each step, and each time that it comes in one") {
  const ClipFolder clips;
  RunOptions options;
  options.recipe = make_recipe(
      parse_yaml("model: {type: tokenizer}\ndata: {size: 16, shorter_side: 0}\n", "cropped"));
  options.data = clips.folder.path;
  const auto data = open(options);
  const std::vector<float> first = data->read(1, SeenAt{3}).pixels;
  CHECK(data->read(1, SeenAt{3}).pixels == first);
  CHECK(data->read(1, SeenAt{4}).pixels != first);
  CHECK(data->read(1, SeenAt{3, 0, 1}).pixels != first);
}

TEST_CASE("a caption that was written for a part of a clip stays with it") {
  const auto window = [](double start, double end, const char* caption) {
    return Json{{"start", start}, {"end", end}, {"caption", caption}};
  };
  const Json meta = {
      {"caption", "one two three"},
      {"caption_windows", {window(0, 2, "one"), window(2, 4, "two"), window(4, 6, "three")}}};
  CHECK(data::caption_of_part(meta, {0, 1}) == "one");
  CHECK(data::caption_of_part(meta, {1.5, 2.2}) == "one");  // there is more of it
  CHECK(data::caption_of_part(meta, {1, 4}) == "one two");
  CHECK(data::caption_of_part(meta, {5.9, 9}) == "three");
  CHECK(data::caption_of_part(meta, {7, 9}).empty());
  CHECK(data::caption_of_part(meta, {}).empty());  // a picture
  CHECK(data::caption_of_part({{"caption", "x"}}, {0, 1}).empty());
  CHECK_THROWS_WITH(data::caption_of_part({{"caption_windows", {1}}}, {0, 1}),
                    Contains("caption_windows"));
  const std::vector<float> rows = {1, 1, 2, 2, 3, 3, 4, 4};
  const shard::Sample embedded{"k", {{"text.windows.npy", io::make_npy_half({4, 2}, rows)}}};
  Json counted = meta;
  counted["text_windows"] = {1, 2, 1};
  counted["text_encoder"] = {{"name", "x"}, {"dim", 2}};
  CHECK(data::text_of_part(embedded, counted, {2, 3})->values == std::vector<float>{2, 2, 3, 3});
  CHECK(data::text_of_part(embedded, counted, {3, 7})->tokens == 3);
  CHECK_FALSE(data::text_of_part(embedded, counted, {}));
  for (const Json& wrong : {Json{1, 2}, Json{1, 1, 1}, Json{5, -2, 1}, Json("3")}) {
    counted["text_windows"] = wrong;
    CHECK_THROWS_WITH(data::text_of_part(embedded, counted, {2, 3}), Contains("text_windows"));
  }
  const shard::Sample sample{"k", {{"txt", "one two three"}}};
  CHECK(data::choose_text(sample, meta, {{"caption"}, true}, 0, {2, 3}).caption == "two");
  CHECK(data::choose_text(sample, meta, {{"caption"}, true}, 0).caption == "one two three");
}

TEST_CASE("captions without an embedding are encoded, to the bits of an embedding on disk") {
  const ClipFolder clips({.embeddings = false});
  RunOptions options = options_of(clips);
  CHECK(at_epoch(*open(options), 1, 0).text.empty());
  options.encoders.text = "builtin:hash";
  const auto data = open(options);
  CHECK(data->info()["text_encoder"]["dim"] == 64);
  const auto encoder = models::make_text_encoder({.name = "builtin:hash", .dim = 64});
  const std::vector<float> values = encoder->encode("a red circle").values;
  const CleanSample read = at_epoch(*data, 1, 0);
  CHECK(io::make_npy_half({3, 64}, read.text) == io::make_npy_half({3, 64}, values));
  CHECK(data->sizes(1).text_tokens >= 3);
  RunOptions sentence = options;
  sentence.encoders.text = std::string(VFM_GOLDEN) + "/sentences/bert";
  CHECK(open(sentence)->sizes(1).text_tokens == 1);
  const ClipFolder embedded;
  options.data = embedded.folder.path;
  CHECK_THROWS_WITH(open(options), Contains("embeddings of another text encoder"));
}

TEST_CASE(
    "a clip that gives fewer frames than the index says, or has no sizes there, is not read") {
  const ClipFolder longer({.promised = 40});
  const auto data = open(options_of(longer, "", "builtin:wavelet", 33));
  CHECK(data->sizes(0).frames == 5);  // 1 + 32 / 8
  CHECK_THROWS_WITH(
      at_epoch(*data, 0, 0),
      Contains("sample 'film'") && Contains("has 12 frames, and by the dataset's index 40"));
  CHECK_NOTHROW(at_epoch(*data, 1, 0));
  const ClipFolder silent({.sizes = false});
  const auto unknown = open(options_of(silent));
  CHECK_THROWS_WITH(at_epoch(*unknown, 1, 0), Contains("does not say its frames"));
}

TEST_CASE("frames at a rate follow from a clip's length") {
  const data::ClipFacts two_seconds{24, 96, 64, 2.0, 12.0};
  CHECK(data::frames_at(two_seconds, {0, 1}) == 24);
  CHECK(data::frames_at(two_seconds, {6, 1}) == 12);
  CHECK(data::frames_at(two_seconds, {5, 1}) == 10);
  CHECK(data::frames_at(two_seconds, {7, 2}) == 7);
  CHECK(data::frames_at(two_seconds, {12, 1}) == 24);
  CHECK(data::frames_at(two_seconds, {24, 1}) == 24);  // slower than that
  CHECK(data::frames_at({24, 96, 64, 2.000001, 12.0}, {6, 1}) == 12);
  CHECK(data::frames_at({1, 96, 64, 0, 0}, {6, 1}) == 1);
  const ClipFolder clips;
  for (const int fps : {3, 4, 6, 8, 12, 30}) {
    const auto data = open(options_of(clips, ", fps: " + std::to_string(fps)));
    INFO(fps);
    CHECK_NOTHROW(at_epoch(*data, 0, 0));
  }
}

TEST_CASE("mean and deviation are measured alike on any number of ranks, or given, or kept") {
  const auto latent = [](std::size_t i) {
    if (i == 5) fail("damaged");
    std::vector<float> values(2 * 3);
    Random(4, Purpose::test, 0, i).fill_normal(values);
    return values;
  };
  std::string alone;
  for (const int ranks : {1, 3}) {
    std::vector<std::string> scales(static_cast<std::size_t>(ranks));
    dist::thread_worlds(ranks, [&](dist::World& world) {
      scales[static_cast<std::size_t>(world.rank())] =
          dump_json(measure_scale(world, 2, 3000, 2, latent).to_json());
    });
    if (ranks == 1) alone = scales[0];
    for (const std::string& scale : scales)
      CHECK(scale == alone);
  }
  const ClipFolder clips;
  const auto data = open(options_of(clips));
  const auto measured = [&] { return data->facts()["latent_scale"]; };
  CHECK(measured().is_null());
  data->settle(*dist::self_world(), {});
  const Json scale = measured();
  REQUIRE(scale["mean"].size() == 24);
  CHECK(data->other_split("val")->facts()["latent_scale"] == scale);
  RunOptions options = options_of(clips);
  clips.folder.write("latents.json", dump_json(scale));
  options.encoders.scale = clips.folder / "latents.json";
  const auto given = open(options);
  given->settle(*dist::self_world(), {});
  CHECK(given->facts()["latent_scale"] == scale);
  CHECK(at_epoch(*given, 0, 2).x0 == at_epoch(*data, 0, 2).x0);
  Json kept = {{"latent_scale", scale}};
  kept["latent_scale"]["mean"][0] = 7.0;
  const auto resumed = open(options_of(clips));
  resumed->settle(*dist::self_world(), kept);
  CHECK(resumed->facts()["latent_scale"] == kept["latent_scale"]);
  CHECK_THROWS_WITH(given->settle(*dist::self_world(), kept),
                    Contains("another mean and deviation"));
}

TEST_CASE("a scale that is named must be that of the model to begin from") {
  const ClipFolder clips;
  const auto data = open(options_of(clips));
  data->settle(*dist::self_world(), {});
  const Json scale = data->facts()["latent_scale"];
  RunOptions options = options_of(clips);
  options.encoders.scale = clips.folder / "scale.json";
  options.base.scale = models::LatentScale::from_json(scale, "test");
  clips.folder.write("scale.json", dump_json(scale));
  CHECK_NOTHROW(open(options));
  Json other = scale;
  other["std"][3] = 9.0;
  clips.folder.write("scale.json", dump_json(other));
  CHECK_THROWS_WITH(open(options), Contains("leave --latent-scale out"));
  options.encoders.scale.clear();
  const auto begun = open(options);
  begun->settle(*dist::self_world(), {});
  CHECK(begun->facts()["latent_scale"] == scale);
}

TEST_CASE("texts are left aside for a model that has none, and what the index lacks is remarked") {
  const ClipFolder clips;
  RunOptions options = options_of(clips, "", "builtin:fsq");
  options.recipe.model.type = "autoregressive";
  const auto with = open(options);
  CHECK(with->remarks().empty());
  CHECK(!at_epoch(*with, 0, 0).text.empty());
  options.recipe.model.begun = true;
  options.recipe.model.decoder.text_embed_dim = 0;
  const auto without = open(options);
  REQUIRE(without->remarks().size() == 1);
  CHECK_THAT(without->remarks()[0], Contains("is left aside"));
  CHECK(at_epoch(*without, 0, 0).text.empty());
  CHECK(at_epoch(*without, 0, 0).codes == at_epoch(*with, 0, 0).codes);
  CHECK(without->facts()["text_encoder"].is_null());
  CHECK(!with->facts()["text_encoder"].is_null());
  CHECK(without->fingerprint() == with->fingerprint());
  const ClipFolder unknown({.sizes = false});
  REQUIRE(open(options_of(unknown))->remarks().size() == 1);
  CHECK_THAT(open(options_of(unknown))->remarks()[0], Contains("of 2 clips"));
}

TEST_CASE("what names the data are tokenizer, texts, sizes and clips") {
  const ClipFolder clips, shorter({.promised = 8}), spoken({.embeddings = false});
  const std::string name = open(options_of(clips))->fingerprint();
  CHECK(open(options_of(clips))->fingerprint() == name);
  CHECK(open(options_of(shorter))->fingerprint() != name);
  CHECK(open(options_of(spoken))->fingerprint() != name);
  RunOptions others = options_of(clips, "", "builtin:fsq");
  others.recipe.model.type = "autoregressive";
  const auto codes = open(others);
  CHECK(codes->fingerprint() != name);
  const CleanSample read = at_epoch(*codes, 0, 0);
  const data::Entry sizes = codes->sizes(0);
  CHECK(read.codes.size() == static_cast<std::size_t>(sizes.frames * sizes.height * sizes.width));
  CHECK(read.x0.empty());
  others.recipe.model.type = "dit";
  Recipe recipe = others.recipe;
  CHECK_THROWS_WITH(open(others)->fit(recipe), Contains("the tokenizer is discrete"));
}
