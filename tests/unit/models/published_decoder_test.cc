// Autoregressive models as NVIDIA publishes them: what its own network of Cosmos-1.0 computed
// (scripts/golden/cosmos_autoregressive.py), computed by the decoder from the same files.
// SPDX-License-Identifier: Apache-2.0
#include "models/folder/published_decoder.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "generate/sampling/codes.h"
#include "io/safetensors.h"
#include "models/decoder/decoder_json.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_config.h"
#include "models/folder/model_folder.h"
#include "support/golden.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using Catch::Contains;
using models::CausalDecoder;
using models::CodeBatch;
using models::DecoderConfig;
using models::ModelFolder;

namespace {

const std::string kFolder = std::string(VFM_GOLDEN) + "/cosmos_ar/";

/// A narrow model of theirs, and what it computed of one video of 3 x 2 x 3 codes.
struct PublishedModel {
  explicit PublishedModel(const std::string& name)
      : folder(kFolder + name),
        golden("cosmos_ar/" + name),
        config(std::get<DecoderConfig>(models::read_model_config(folder))) {}

  CausalDecoder load(DType compute = DType::f32) const {
    CausalDecoder decoder(config, 1, compute);
    models::load_parameters(folder.weights(), decoder.parameters());
    return decoder;
  }
  CodeBatch batch() const {
    CodeBatch made;
    made.samples = {{3, 2, 3, config.text_embed_dim > 0 ? 5 : 1}};
    made.codes = codes("codes");
    if (config.text_embed_dim > 0) made.text = Tensor::from(golden["text"], {5, 6});
    return made;
  }
  std::vector<std::int32_t> codes(const char* name) const {
    const io::TensorView& view = golden.view(name);
    std::vector<std::int32_t> values(static_cast<std::size_t>(view.elements()));
    std::memcpy(values.data(), view.data.data(), view.data.size());
    return values;
  }

  ModelFolder folder;
  Golden golden;
  DecoderConfig config;
};

/// The gradients of a file, under our names.
class GradientSet final : public io::TensorSet {
 public:
  explicit GradientSet(const io::SafetensorsSet& file) : TensorSet(file.path()) {
    constexpr std::string_view kPrefix = "gradient.";
    for (io::TensorView tensor : file.tensors())
      if (tensor.name.starts_with(kPrefix)) {
        tensor.name.erase(0, kPrefix.size());
        add(std::move(tensor));
      }
  }
};

Json changed(const Json& settings, const char* name, const Json& value) {
  Json made = settings;
  made[name] = value;
  return made;
}

}  // namespace

TEST_CASE("published decoder: what the files say of the model") {
  const DecoderConfig base = PublishedModel("base").config;
  CHECK(base.vocabulary == 16);
  CHECK(base.width() == 20);
  CHECK(base.heads_width() == 48);
  CHECK(base.num_attention_heads == 4);
  CHECK(base.key_value_heads() == 2);
  CHECK(base.hidden() == 28);
  CHECK(base.text_embed_dim == 0);
  CHECK(base.yarn_scale == 2);
  CHECK(base.yarn_frames == 3);
  CHECK(base.yarn_rows == 4);
  CHECK_FALSE(base.start_token);
  CHECK(base.read_positions);
  CHECK_FALSE(base.absolute_positions);
  const DecoderConfig text = PublishedModel("video2world").config;
  CHECK(text.text_embed_dim == 6);
  CHECK(text.yarn_scale == 1);
  CHECK(text.start_token);
  CHECK(text.read_positions);
  CHECK(text.absolute_positions);
}

TEST_CASE("published decoder: logits, losses and gradients are those of NVIDIA's network") {
  for (const std::string name : {"base", "video2world"}) {
    INFO(name);
    const PublishedModel model(name);
    const CausalDecoder decoder = model.load();
    const CodeBatch batch = model.batch();
    ops::Tape tape;
    const Tensor logits = decoder.forward(tape, batch);
    // Of the last code theirs with a start token has a row more: nothing follows it.
    const std::vector<float> expected = model.golden["logits"];
    CHECK(expected.size() == (batch.codes.size() + (model.config.start_token ? 1 : 0)) * 16);
    CHECK(distance(logits.floats(), std::span(expected).first(batch.codes.size() * 16)) < 2e-6);
    const models::CodeLoss loss = decoder.loss(logits, batch, batch.codes, 0, 1);
    double sum = 0;
    const std::vector<float> losses = model.golden["losses"];
    CHECK(losses.size() == batch.codes.size() - (model.config.start_token ? 0 : 1));
    for (const float each : losses)
      sum += each;
    CHECK(loss.read_sums().front() == Approx(sum).epsilon(1e-6));
    tape.backward(logits, loss.tokens.seed);
    const io::SafetensorsSet file(kFolder, name);
    const GradientSet theirs(file);
    std::size_t compared = 0;
    for (const io::TensorView& view :
         models::published_decoder_tensors(theirs, models::decoder_config_to_json(model.config)))
      for (const nn::Parameter* p : decoder.parameters())
        if (p->name == view.name) {
          INFO(p->name);
          REQUIRE(view.shape == p->shape());
          CHECK(distance(p->grad.floats(), models::read_floats(view).floats()) < 2e-5);
          ++compared;
        }
    CHECK(compared == decoder.parameters().size());
  }
}

TEST_CASE(
    "published decoder: after a first frame the likeliest codes are those that NVIDIA's wrote") {
  for (const std::string name : {"base", "video2world"}) {
    INFO(name);
    const PublishedModel model(name);
    const CodeBatch batch = model.batch();
    const std::vector<std::int32_t> expected = model.codes("written");
    CHECK(expected.size() == 18);
    CHECK(std::equal(expected.begin(), expected.begin() + 6, batch.codes.begin()));
    generate::CodeJob job{.sample = batch.samples[0], .options = {.temperature = 0}};
    job.given.assign(batch.codes.begin(), batch.codes.begin() + 6);
    if (batch.text.defined())
      job.text.assign(batch.text.floats().begin(), batch.text.floats().end());
    CHECK(generate::write_codes(model.load(), std::span(&job, 1)).front() == expected);
  }
}

TEST_CASE("published decoder: without a start token nothing writes the first code") {
  const PublishedModel model("base");
  CHECK_THAT(usage_error([&] {
               const generate::CodeJob job{.sample = {1, 1, 2, 1}};
               generate::write_codes(model.load(), std::span(&job, 1));
             }),
             Contains("it continues codes that are given"));
}

TEST_CASE("published decoder: names of Transformer Engine are the same model") {
  const PublishedModel plain("base");
  const ModelFolder engine(kFolder + "base_te");
  CHECK(engine.type() == models::kDecoderClass);
  CHECK(engine.hash() == plain.folder.hash());
}

TEST_CASE("published decoder: a folder with the weights alone is one, too") {
  const TemporaryFolder folder;
  std::filesystem::copy_file(kFolder + "video2world/model.safetensors",
                             folder.path + "/model.safetensors");
  CHECK(ModelFolder(folder.path).hash() == PublishedModel("video2world").folder.hash());
}

TEST_CASE("published decoder: settings of another model are refused, by name") {
  const io::SafetensorsSet set(kFolder + "video2world", "model");
  const Json plain = Json::object();
  const auto refused = [&](const char* name, const Json& value, const char* words) {
    CHECK_THAT(
        usage_error([&] { models::published_decoder_config(set, changed(plain, name, value)); }),
        Contains(words));
  };
  refused("insert_cross_attn_every_k_layers", 2,
          "'insert_cross_attn_every_k_layers' 2: only 1 is supported");
  refused("norm_type", "layernorm", "'norm_type' \"layernorm\": only \"rmsnorm\" is supported");
  refused("rope_dim", "1D", "'rope_dim' \"1D\": only \"3D\" is supported");
  refused("norm_eps", 1e-6, "'norm_eps' 1e-06: only 1e-05 is supported");
  const DecoderConfig own = models::decoder_config_from_json(models::published_decoder_config(
      set, {{"rope_theta", 1000}, {"apply_abs_pos_emb", false}, {"apply_yarn", true}}));
  CHECK(own.rope_theta == 1000);
  CHECK_FALSE(own.absolute_positions);
  CHECK(own.yarn_scale == 2);
  CHECK(own.yarn_rows == 40);
}

TEST_CASE("published decoder: a wrapper of all names is none of the model's") {
  const io::SafetensorsSet set(kFolder + "video2world", "model");
  std::vector<io::TensorView> wrapped = set.tensors();
  for (io::TensorView& tensor : wrapped)
    tensor.name = "module." + tensor.name;
  const TemporaryFolder folder;
  io::write_safetensors(folder.path, "model", std::move(wrapped));
  CHECK(ModelFolder(folder.path).hash() == PublishedModel("video2world").folder.hash());
}

TEST_CASE("published decoder: a folder of other tensors is refused as before") {
  const TemporaryFolder folder;
  const Tensor values = Tensor::zeros({2, 2});
  io::write_safetensors(folder.path, "model",
                        {{"weight", "F32", {2, 2}, {values.data<std::byte>(), values.bytes()}}});
  CHECK_THAT(usage_error([&] { ModelFolder(folder.path).type(); }),
             Contains("is not a model folder: it has no config.json"));
}
