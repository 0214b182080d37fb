// Sentence encoders against transformers' models (scripts/golden/sentences.py), from the folders
// that it writes; what of such folders is refused.
// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/sentence_encoder.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/encoder/bert.h"
#include "models/encoder/encoder_stack.h"
#include "models/encoder/sentence_folder.h"
#include "models/encoder/text_tower.h"
#include "models/folder/load_tensors.h"
#include "models/text_encoder.h"
#include "support/distance.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;

namespace {

namespace fs = std::filesystem;

const std::string kSentences = std::string(VFM_GOLDEN) + "/sentences";
const std::vector<std::string> kSentenceModels = {"bert",   "roberta", "clip",
                                                  "siglip", "siglip2", "xlm-roberta"};

std::vector<std::string> golden_texts() {
  return Json::parse(io::read_file(kSentences + "/texts.json")).get<std::vector<std::string>>();
}

std::vector<float> golden_tensor(const std::string& name) {
  const io::SafetensorsSet set{kSentences, "outputs"};
  const Tensor values = models::read_floats(*set.find(name)).clone();
  return {values.floats().begin(), values.floats().end()};
}

std::unique_ptr<text::TextEncoder> open_sentences(const std::string& folder,
                                                  DType compute = DType::f32,
                                                  int max_tokens = 512) {
  return models::make_sentence_encoder(folder, max_tokens, compute, {});
}

std::vector<float> vectors_of(const text::TextEncoder& encoder,
                              const std::vector<std::string>& texts) {
  std::vector<float> all;
  for (const text::TokenEmbeddings& one : encoder.encode_all(texts)) {
    CHECK(one.tokens == 1);
    CHECK(one.dim == encoder.dim());
    all.insert(all.end(), one.values.begin(), one.values.end());
  }
  return all;
}

double length_of(const std::vector<float>& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

/// A copy of a golden folder, to be changed.
struct ChangedFolder {
  explicit ChangedFolder(const std::string& name) {
    fs::copy(kSentences + "/" + name, path, fs::copy_options::recursive);
  }
  void set(const std::string& file, const char* member, const Json& value) const {
    const std::string at = path + "/" + file;
    Json json = fs::exists(at) ? Json::parse(io::read_file(at)) : Json::object();
    if (value.is_null())
      json.erase(member);
    else
      json[Json::json_pointer(std::string("/") + member)] = value;
    io::write_file(at, dump_json(json));
  }
  std::string refusal() const {
    return usage_error([&] { open_sentences(path); });
  }
  TemporaryFolder folder;
  std::string path = folder.path + "/model";
};

/// Tensors drawn from a rule.
class DrawnSet final : public io::TensorSet {
 public:
  explicit DrawnSet(const std::vector<models::TensorTarget>& targets) {
    for (const models::TensorTarget& target : targets) {
      std::vector<float> values(static_cast<std::size_t>(element_count(target.shape)));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 0.1F * std::cos(static_cast<float>((i * 7919 + values_.size()) % 1013));
      values_.push_back(std::move(values));
      add({target.name, "F32", target.shape, std::as_bytes(std::span(values_.back()))});
    }
  }

 private:
  std::vector<std::vector<float>> values_;
};

}  // namespace

TEST_CASE("sentence encoders give transformers' vectors") {
  const std::vector<std::string> texts = golden_texts();
  for (const std::string& name : kSentenceModels) {
    INFO(name);
    const std::vector<float> expected = golden_tensor(name + ".vectors");
    const auto encoder = open_sentences(kSentences + "/" + name);
    CHECK(distance(vectors_of(*encoder, texts), expected) < 2e-5);
    CHECK(encoder->name() == "sentence:" + (name == "siglip2" ? "siglip" : name));
    CHECK(std::abs(length_of(encoder->encode(texts[0]).values) - 1) < 1e-6);
    const auto low = open_sentences(kSentences + "/" + name, DType::bf16);
    CHECK(distance(vectors_of(*low, texts), expected) < 0.05);
  }
}

TEST_CASE("sentence encoders of other families are refused by name") {
  for (const char* type : {"mpnet", "new", "modernbert", "nomic_bert", "qwen3"}) {
    const ChangedFolder changed("bert");
    changed.set("config.json", "model_type", type);
    CHECK_THAT(changed.refusal(), Catch::Contains(fmt::format("a model of type {}", type)) &&
                                      Catch::Contains("bert, roberta, xlm-roberta"));
  }
}

TEST_CASE("the vector of a text does not depend on what comes with it") {
  std::vector<std::string> many;
  for (int i = 0; i < 220; ++i)  // more than go through a model at once
    many.push_back(fmt::format("A red fox {} crosses the road {}", i, std::string(i % 90, 'o')));
  for (const std::string& name : kSentenceModels) {
    INFO(name);
    const auto encoder = open_sentences(kSentences + "/" + name);
    const auto together = encoder->encode_all(many);
    REQUIRE(together.size() == many.size());
    for (std::size_t i = 0; i < many.size(); i += 37)
      CHECK(largest_difference(encoder->encode(many[i]).values, together[i].values) < 1e-6);
  }
}

TEST_CASE("pooling and normalising are as the folder says") {
  const std::vector<std::string> texts = golden_texts();
  const ChangedFolder bert("bert");
  bert.set("1_Pooling/config.json", "pooling_mode_mean_tokens", false);
  bert.set("1_Pooling/config.json", "pooling_mode_cls_token", true);
  Json modules = Json::parse(io::read_file(bert.path + "/modules.json"));
  modules.erase(2);
  io::write_file(bert.path + "/modules.json", dump_json(modules));
  const auto cls = open_sentences(bert.path);
  CHECK(cls->config().rule == "cls");
  CHECK(distance(vectors_of(*cls, texts), golden_tensor("bert.cls")) < 2e-5);
  CHECK(cls->config().hash != open_sentences(kSentences + "/bert")->config().hash);

  // Today's files of sentence-transformers name the way.
  for (const char* key : {"pooling_mode_mean_tokens", "pooling_mode_cls_token",
                          "pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens"})
    bert.set("1_Pooling/config.json", key, nullptr);
  bert.set("1_Pooling/config.json", "pooling_mode", "cls");
  CHECK(open_sentences(bert.path)->config().hash == cls->config().hash);

  // A plain folder: the mean, normalised, of all positions that the model has.
  fs::remove(bert.path + "/modules.json");
  const auto plain = open_sentences(bert.path);
  CHECK(plain->config().rule == "mean, normalised");
  CHECK(plain->config().max_tokens == 40);
  CHECK(open_sentences(kSentences + "/bert")->config().max_tokens == 24);
  const std::vector<float> expected = golden_tensor("bert.vectors");
  CHECK(distance(plain->encode(texts[1]).values, std::vector(&expected[16], &expected[32])) < 2e-5);
  bert.set("tokenizer_config.json", "model_max_length", 1e30);
  CHECK(open_sentences(bert.path)->config().max_tokens == 40);
  bert.set("tokenizer_config.json", "model_max_length", 30);
  CHECK(open_sentences(bert.path)->config().max_tokens == 30);
  CHECK(open_sentences(bert.path, DType::f32, 7)->config().max_tokens == 7);
}

TEST_CASE("a folder's own prompt goes before every text, and its lower case is kept") {
  const ChangedFolder roberta("roberta");
  fs::copy(kSentences + "/bert/1_Pooling", roberta.path + "/1_Pooling");
  fs::copy(kSentences + "/bert/modules.json", roberta.path);
  const auto before = open_sentences(roberta.path);
  CHECK(before->encode("A Fox").values != before->encode("a fox").values);
  const char* file = "config_sentence_transformers.json";
  roberta.set(file, "prompts", {{"query", "A Fox sees: "}});
  CHECK(open_sentences(roberta.path)->config().hash == before->config().hash);
  roberta.set(file, "default_prompt_name", "query");
  const auto prompted = open_sentences(roberta.path);
  CHECK(prompted->config().rule == "mean, prompt, normalised");
  CHECK(prompted->encode("an owl ").values == before->encode("A Fox sees: an owl").values);
  roberta.set("sentence_roberta_config.json", "do_lower_case", true);
  CHECK(open_sentences(roberta.path)->encode("An Owl").values ==
        before->encode("a fox sees: an owl").values);
  roberta.set("1_Pooling/config.json", "include_prompt", false);
  CHECK_THAT(roberta.refusal(), Catch::Contains("without the prompt"));
  roberta.set(file, "default_prompt_name", "passage");
  CHECK_THAT(roberta.refusal(), Catch::Contains("names a prompt 'passage'"));
}

TEST_CASE("prompts of queries and documents are those of sentence-transformers' rule") {
  const ChangedFolder bert("bert");
  const char* file = "config_sentence_transformers.json";
  using Given = std::optional<std::string>;
  const auto config = [&](const Given& prompt = {}, const Given& query = {}) {
    return models::searched_encoder_config(bert.path, 512, DType::f32, prompt, query);
  };
  const auto used = [&](const Json& prompts, const Json& name) {
    bert.set(file, "prompts", prompts);
    bert.set(file, "default_prompt_name", name);
    const text::EncoderConfig found = config();
    return std::pair(found.prompt.value_or("-"), found.query_prompt.value_or("-"));
  };
  const auto both = [](const char* document, const char* query) {
    return std::pair<std::string, std::string>(document, query);
  };
  const Json none;  // null
  // encode_document() and encode_query() of sentence-transformers 5.5.
  CHECK(used(Json::object(), none) == both("-", "-"));
  CHECK(used({{"query", "q: "}, {"document", "d: "}}, none) == both("d: ", "q: "));
  CHECK(used({{"query", "q: "}, {"passage", "p: "}}, none) == both("p: ", "q: "));
  CHECK(used({{"corpus", "c: "}, {"passage", "p: "}, {"document", "d: "}}, none) ==
        both("d: ", ""));
  CHECK(used({{"query", "q: "}, {"document", nullptr}}, none) == both("", "q: "));
  CHECK(used({{"other", "o: "}}, none) == both("-", "-"));
  // The default goes before whatever has no prompt of its kind, and is of no kind itself.
  CHECK(used({{"other", "o: "}}, "other") == both("o: ", "o: "));
  CHECK(used({{"other", "o: "}, {"query", "q: "}}, "other") == both("o: ", "q: "));
  CHECK(used({{"query", "q: "}}, "query") == both("", "q: "));
  CHECK(used({{"passage", "p: "}}, "passage") == both("p: ", ""));

  const auto encode = [](const text::EncoderConfig& as, const std::string& text) {
    return models::make_text_encoder(as)->encode(text).values;
  };
  used({{"query", "a query: "}, {"document", "owl "}}, none);
  const text::EncoderConfig own = config(), bare = config("", "");
  CHECK(models::text_config_from_json(own.to_json()) == own);
  CHECK(models::make_text_encoder(own)->config() == own);
  CHECK(own.hash == models::text_encoder_config(bert.path, 512, DType::f32).hash);
  CHECK(encode(own, "a fox") == encode(bare, "owl a fox"));
  CHECK(encode(own, "a fox") != encode(bare, "a fox"));
  CHECK(encode(config("two people ", {}), "a fox") == encode(bare, "two people a fox"));
  CHECK(config("x", {}).query_prompt == "a query: ");
  // Vectors are the same whatever is compared with them.
  CHECK(encoder_identity(own.to_json()) == encoder_identity(config({}, "other").to_json()));
  CHECK(encoder_identity(own.to_json()) != encoder_identity(bare.to_json()));
  bert.set("1_Pooling/config.json", "include_prompt", false);
  CHECK_THAT(usage_error([&] { config(); }), Catch::Contains("without the prompt"));
  CHECK_NOTHROW(config("", ""));
  CHECK_THAT(usage_error([&] {
               models::searched_encoder_config(std::string(VFM_GOLDEN) + "/t5/v1_1", 512,
                                               DType::f32, "x", {});
             }),
             Catch::Contains("is not a sentence encoder"));
}

TEST_CASE("CLIP's end of a text, by either rule") {
  const models::HfComponent component(kSentences + "/clip");
  auto config = models::TextTowerConfig::from_json(component.config(), "clip", "x");
  const models::SelectedSet weights = models::text_tower_tensors(component.weights());
  const auto encode = [&](std::int64_t end, std::vector<std::int32_t> ids) {
    config.end = end;
    const models::TextTower tower(config, weights, DType::f32, Device::cpu);
    const auto length = static_cast<std::int64_t>(ids.size());
    const Tensor out = tower.encode(ids, {&length, 1});
    return std::vector<float>(out.floats().begin(), out.floats().end());
  };
  const std::vector<float> expected = encode(700, {5, 9, 700});
  CHECK(largest_difference(encode(700, {5, 9, 700, 3, 700}), expected) < 1e-6);
  CHECK(largest_difference(encode(2, {5, 9, 700, 3}), expected) < 1e-6);
  CHECK(largest_difference(encode(3, {5, 9, 700, 3}), expected) > 1e-3);
  CHECK_THROWS_WITH(encode(700, {5, 9}), Catch::Contains("has no end, token 700"));
  CHECK_THROWS_WITH(encode(5, {5, 100000}), Catch::Contains("not in the vocabulary"));
}

TEST_CASE("what old and new files say in other words") {
  // Names of TensorFlow, a prefix, a pooler, a head, a table of numbers.
  const Shape one{1};
  const models::HeaderSet file({{"bert.embeddings.LayerNorm.gamma", one, {}},
                                {"bert.encoder.layer.0.output.LayerNorm.beta", one, {}},
                                {"bert.embeddings.position_ids", one, {}},
                                {"bert.pooler.dense.weight", one, {}},
                                {"cls.predictions.bias", one, {}}},
                               DType::f32);
  const models::SelectedSet selected = models::bert_tensors(file);
  REQUIRE(selected.tensors().size() == 2);
  CHECK(selected.tensors()[0].name == "embeddings.LayerNorm.weight");
  CHECK(selected.tensors()[1].name == "encoder.layer.0.output.LayerNorm.bias");

  // text_config_dict stands for all of text_config.
  const models::HfComponent component(kSentences + "/clip");
  Json config = component.config();
  config["text_config_dict"] = {{"hidden_size", 32}};
  const auto tower = models::TextTowerConfig::from_json(config, "clip", "x");
  CHECK(tower.stack.width == 32);
  CHECK(tower.stack.layers == 12);
  CHECK(tower.end == 49407);

  const ChangedFolder siglip("siglip2");
  siglip.set("tokenizer_config.json", "padding_side", "left");
  const auto left = open_sentences(siglip.path), right = open_sentences(kSentences + "/siglip2");
  CHECK(largest_difference(left->encode("a fox").values, right->encode("a fox").values) > 1e-2);
  CHECK(left->config().hash != right->config().hash);
  // The number of the token is that of tokenizer.json, too.
  siglip.set("tokenizer_config.json", "padding_side", "right");
  siglip.set("tokenizer_config.json", "added_tokens_decoder", nullptr);
  siglip.set("tokenizer_config.json", "pad_token", {{"content", "<bos>"}});
  CHECK(open_sentences(siglip.path)->encode("a fox").values != right->encode("a fox").values);
}

TEST_CASE("a feed-forward part too wide for memory goes in pieces, with the same result") {
  models::EncoderStackConfig config;
  config.width = 2;
  config.heads = 1;
  config.feed_forward = 1 << 18;
  config.layers = 1;
  config.epsilon = 1e-5F;
  const models::EncoderNames names = [](int, models::EncoderPart part) {
    return std::to_string(static_cast<int>(part));
  };
  for (const bool scaled : {false, true}) {
    config.layer_scale = scaled;
    config.norm_first = scaled;
    const DrawnSet weights(models::EncoderStack::tensors(config, names));
    const models::EncoderStack stack(config, names, weights, DType::f32, Device::cpu);
    const std::int64_t count = 70;
    Tensor x({count, 2});
    for (std::size_t i = 0; i < x.floats().size(); ++i)
      x.floats()[i] = std::sin(static_cast<float>(i));
    const std::vector<std::int64_t> lengths(count, 1), half(count / 2, 1);
    const Tensor all = stack.forward(x, lengths);
    CHECK(x.floats()[1] == std::sin(1.F));
    const Tensor first = stack.forward(x.rows(0, 35), half);
    const Tensor last = stack.forward(x.rows(35, 70), half);
    CHECK(distance(all.rows(0, 35).floats(), first.floats()) < 1e-4);
    CHECK(distance(all.rows(35, 70).floats(), last.floats()) < 1e-4);
  }
}

TEST_CASE("folders of sentence encoders that are not supported") {
  const auto refused = [](const char* model, const std::string& file, const char* member,
                          const Json& value) {
    const ChangedFolder folder(model);
    folder.set(file, member, value);
    return folder.refusal();
  };
  const std::string pooling = "1_Pooling/config.json";
  CHECK_THAT(refused("bert", pooling, "pooling_mode_max_tokens", true),
             Catch::Contains("several ways"));
  CHECK_THAT(refused("bert", pooling, "pooling_mode", "lasttoken"), Catch::Contains("several"));
  {
    const ChangedFolder folder("bert");
    folder.set(pooling, "pooling_mode_mean_tokens", false);
    folder.set(pooling, "pooling_mode_weightedmean_tokens", true);
    CHECK_THAT(folder.refusal(), Catch::Contains("pooling 'weightedmean' is not supported"));
  }
  CHECK_THAT(refused("bert", "modules.json", "2/type", "sentence_transformers.models.Dense"),
             Catch::Contains("module 2 is 'Dense'"));
  CHECK_THAT(refused("bert", "modules.json", "1/path", "../elsewhere"),
             Catch::Contains("leads out of the folder"));
  CHECK_THAT(refused("bert", "config.json", "model_type", "mpnet"), Catch::Contains("mpnet"));
  CHECK_THAT(refused("bert", "config.json", "position_embedding_type", "relative_key"),
             Catch::Contains("'relative_key'"));
  CHECK_THAT(refused("bert", "config.json", "is_decoder", true), Catch::Contains("is_decoder"));
  CHECK_THAT(refused("bert", "config.json", "hidden_act", "silu"), Catch::Contains("'silu'"));
  CHECK_THAT(refused("bert", "config.json", "num_attention_heads", 3),
             Catch::Contains("not a multiple of 3 heads"));
  CHECK_THAT(refused("bert", "config.json", "num_hidden_layers", 3),
             Catch::Contains("encoder.layer.2"));
  CHECK_THAT(refused("clip", "config.json", "projection_dim", 8),
             Catch::Contains("text_projection.weight"));
  CHECK_THAT(refused("siglip2", "tokenizer_config.json", "pad_token", "<none>"),
             Catch::Contains("has no token '<none>'"));
  for (const char* file : {"tokenizer.json", "1_Pooling/config.json", "config.json"}) {
    const ChangedFolder folder("bert");
    fs::remove(folder.path + "/" + file);
    CHECK_THAT(folder.refusal(), Catch::Contains(fs::path(file).filename()));
  }
  CHECK_THAT(usage_error([&] {
               models::make_sentence_encoder(kSentences + "/bert", 512, DType::f32, {},
                                             {.hash = "another"});
             }),
             Catch::Contains("not the text encoder that the embeddings were made with"));
}

TEST_CASE("sentence encoders by their configuration") {
  for (const std::string& name : kSentenceModels) {
    INFO(name);
    const text::EncoderConfig config =
        models::text_encoder_config(kSentences + "/" + name, 512, DType::f32);
    CHECK(fs::path(config.path).is_absolute());
    CHECK_FALSE(config.foreign());
    CHECK(models::text_config_from_json(config.to_json()) == config);
    CHECK(models::make_text_encoder(config)->config() == config);
    text::EncoderConfig other = config;
    other.rule = "max";
    CHECK_THAT(usage_error([&] { models::make_text_encoder(other); }),
               Catch::Contains("(" + config.rule + ")"));
    const models::TextEncoderFolder facts = models::inspect_text_encoder(config, {});
    CHECK(facts.width == config.dim);
    CHECK(facts.file_bytes > facts.table_bytes);
    CHECK(facts.cost(5, Device::cpu).flops > 1e5);
    CHECK(facts.cost(5, Device::cpu).flops == facts.cost(9, Device::cpu).flops);
    // On a GPU the weights go there as they are used.
    CHECK(facts.cost(5, Device::cuda).flops == facts.cost(5, Device::cpu).flops);
  }
}
