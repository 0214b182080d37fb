// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "models/dit/dit.h"
#include "models/moviegen/moviegen.h"
#include "support/made_up_network.h"
#include "support/usage_error.h"
#include "train/recipe/recipe_field.h"
#include "train/recipe/recipe_keys.h"
#include "train/recipe/recipe_file.h"
#include "train/recipe/recipe_page.h"

using namespace vfm;
using namespace vfm::train;

namespace {

Recipe from_yaml(const std::string& text) {
  const auto settings = parse_yaml(text, "'r.yaml'");
  return make_recipe(settings);
}

std::string error_of(const std::string& text) {
  try {
    from_yaml(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("recipe: YAML and overrides fill the struct, later ones win") {
  std::vector<Setting> settings = parse_yaml(
      "optimizer:\n  lr: 2e-3\n  beta2: 0.95\nvalidation: {sigmas: [0.5, 2], samples: 8}\n"
      "model:\n  patch_size: [1, 4, 4]\n  learnable_positions: false\n",
      "'r.yaml'");
  settings.push_back(parse_override("optimizer.lr=1e-3"));
  settings.push_back(parse_override("schedule.shape=cosine"));
  const Recipe recipe = make_recipe(settings);
  CHECK(recipe.optimizer.lr == 1e-3);
  CHECK(recipe.optimizer.beta2 == 0.95);
  CHECK(recipe.optimizer.beta1 == 0.9);
  CHECK(recipe.validation.sigmas == std::vector<double>{0.5, 2});
  CHECK(recipe.model.dit.patch_size == std::array<int, 3>{1, 4, 4});
  CHECK_FALSE(recipe.model.dit.own<models::DitFields>().learnable_positions);
  CHECK(recipe.schedule.shape == "cosine");
}

TEST_CASE("recipe: a tokenizer has keys of its own, and follows the one that it begins from") {
  const Recipe recipe = from_yaml(
      "model: {type: tokenizer, levels: [8, 8, 5], num_layers: 1}\n"
      "tokenizer: {l2: 0.5}\ndata: {frames: 9, size: 64}\n");
  CHECK(recipe.model.autoencoder.discrete());
  CHECK(recipe.model.autoencoder.latent_channels == 3);
  CHECK(recipe.model.autoencoder.z_channels == 16);
  CHECK(recipe.tokenizer.l1 == 1);
  CHECK(recipe.tokenizer.l2 == 0.5);
  for (const char* kind : {"levels: []", "levels: [5, 5]", "latent_channels: 4"}) {
    const Recipe one = from_yaml(fmt::format("model: {{type: tokenizer, {}}}", kind));
    CHECK(to_yaml(from_yaml(to_yaml(one))) == to_yaml(one));
  }
  CHECK(error_of("model: {type: tokenizer}\ndiffusion: {p_mean: 1}\n").find("is not for") !=
        std::string::npos);
  CHECK(
      error_of("tokenizer: {l1: 1}\n").find("is not for a model of type dit, which it is where") !=
      std::string::npos);
  CHECK(error_of("model: {type: tokenizer}\ndata: {size: 60}\n")
            .find("'data.size' is 60 and 'model.spatial_compression_ratio' is 8 (default)") !=
        std::string::npos);
  CHECK(error_of("model: {type: tokenizer}\ntokenizer: {l1: 0}\n")
            .find("'tokenizer.l2' is 0.0 (default): set one of them above 0") != std::string::npos);
  CHECK(error_of("model: {type: tokenizer, patch_size: 3}\n").find("powers of two") !=
        std::string::npos);
  // Begun from another one: its shape, unless the recipe says otherwise.
  models::CosmosConfig other;
  other.num_layers = 1;
  Beginning beginning;
  beginning.model = other;
  const auto begun = [&](const std::string& text) {
    const auto settings = parse_yaml(text, "r");
    return make_recipe(settings, &beginning);
  };
  CHECK(begun("train: {steps: 3}").model.type == "tokenizer");
  CHECK(begun("model: {num_layers: 1}").model.autoencoder.num_layers == 1);
  CHECK_THROWS_WITH(begun("model: {num_layers: 2}"), Catch::Contains("model.num_layers: 1 -> 2"));
  CHECK_THROWS_WITH(begun("model: {type: dit}"), Catch::Contains("is a tokenizer"));
}

TEST_CASE("recipe: an unknown key is named with its line and the nearest key") {
  CHECK(error_of("train:\n  steps: 5\noptimizer:\n  learning: 1\n") ==
        "unknown key 'optimizer.learning' in line 4 of 'r.yaml'; did you mean 'optimizer.lr'?");
  CHECK(error_of("optimizer:\n  weight_dekay: 0\n") ==
        "unknown key 'optimizer.weight_dekay' in line 2 of 'r.yaml'; did you mean "
        "'optimizer.weight_decay'?");
  CHECK(error_of("optimiser:\n  lr: 1\n").find("did you mean 'optimizer.lr'?") !=
        std::string::npos);
  CHECK(error_of("lr: 1\n").find("did you mean 'optimizer.lr'?") != std::string::npos);
}

TEST_CASE("recipe: a value out of range names the field and what is allowed") {
  CHECK(error_of("optimizer: {lr: -1}") ==
        "'optimizer.lr' in line 1 of 'r.yaml' is '-1', must be a number above 0");
  CHECK(error_of("optimizer: {lr: fast}") ==
        "'optimizer.lr' in line 1 of 'r.yaml' is 'fast', must be a number above 0");
  CHECK(error_of("optimizer: {lr: nan}").find("must be a number above 0") != std::string::npos);
  CHECK(error_of("diffusion: {text_dropout: 1.5}") ==
        "'diffusion.text_dropout' in line 1 of 'r.yaml' is '1.5', must be a number of at least 0 "
        "and at most 1");
  CHECK(error_of("train:\n  steps: 1.5").find("a whole number of at least 1") != std::string::npos);
  CHECK(error_of("train: {steps: 99999999999999999999}").find("a whole number") !=
        std::string::npos);
  CHECK(error_of("train: {steps: [1]}").find("must be") != std::string::npos);
  CHECK(error_of("model: {recompute: yes}") ==
        "'model.recompute' in line 1 of 'r.yaml' is 'yes', must be one of auto, none, elementwise, "
        "block_but_attention, "
        "block");
  CHECK(error_of("schedule: {shape: zigzag}").find("one of constant, linear, cosine") !=
        std::string::npos);
  CHECK(error_of("model: {patch_size: [1, 2]}").find("a list of 3 numbers") != std::string::npos);
  CHECK(error_of("validation: {sigmas: []}").find("a list") != std::string::npos);
  CHECK(error_of("diffusion: {sigma_min: 90}").find("'diffusion.sigma_max' is 80.0 (default)") !=
        std::string::npos);
}

TEST_CASE("recipe: what is not YAML, or no recipe, is refused with its line") {
  CHECK(error_of("train: [1, 2\n").find("is not YAML: line") != std::string::npos);
  CHECK(error_of("- 1\n- 2\n").find("expected 'key: value' pairs") != std::string::npos);
  CHECK(error_of("train: 5\n").find("unknown key 'train'") != std::string::npos);
  CHECK(error_of("train: {steps: 5, steps: 6}").find("given twice") != std::string::npos);
  CHECK(error_of("train: {steps: }").find("has no value") != std::string::npos);
  CHECK(error_of("train: {steps: {a: 1}}").find("unknown key 'train.steps.a'") !=
        std::string::npos);
  CHECK(error_of("a: &a {b: &b {c: &c {d: &d {e: &e {f: 1}}}}}").find("pairs") !=
        std::string::npos);
  // A small text that means a huge tree, and one that contains itself.
  std::string laughs = "a0: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 4; ++i) {
    laughs += fmt::format("a{}: &a{} {{", i, i);
    for (int j = 0; j < 50; ++j)
      laughs += fmt::format("k{}: *a{}, ", j, i - 1);
    laughs += "z: 1}\n";
  }
  CHECK(error_of(laughs) != "accepted");
  CHECK(error_of("a: &a {b: *a}") != "accepted");
  CHECK(error_of("").find("accepted") != std::string::npos);  // all defaults
  CHECK(error_of("model:\n").find("accepted") != std::string::npos);
  CHECK(error_of(std::string(2 << 20, '#')).find("longer than 1 MiB") != std::string::npos);
  CHECK_THROWS_AS(parse_override("optimizer.lr"), Error);
  CHECK_THROWS_AS(parse_override("=1"), Error);
  CHECK_THROWS_AS(parse_override("a={b: 1}"), Error);
  // yaml-cpp would read "[1 2, 3]" and be silent about the rest; its LoadAll would never return.
  CHECK_THROWS_AS(parse_override("model.max_size=[1 2, 3], 2, 3]"), Error);
  CHECK_THROWS_AS(parse_yaml("train: {steps: 5}\n---\nmodel: {}\n", "'r.yaml'"), Error);
}

TEST_CASE("recipe: what goes into blocks waits elsewhere only where blocks are recomputed") {
  for (const char* recompute : {"none", "elementwise"})
    CHECK(error_of(fmt::format("model: {{offload: true, recompute: {}}}", recompute))
              .starts_with(fmt::format("'model.offload' is true, and 'model.recompute' is {}: what "
                                       "goes into blocks waits elsewhere only",
                                       recompute)));
  for (const char* recompute : {"auto", "block_but_attention", "block"})
    CHECK(
        from_yaml(fmt::format("model: {{offload: true, recompute: {}}}", recompute)).model.offload);
  CHECK(error_of("model: {type: tokenizer, offload: true}").find("'model.offload'") !=
        std::string::npos);
  CHECK(changed_settings(to_json(from_yaml("")), from_yaml("model.offload: true")).empty());
  CHECK(from_yaml("model.type: autoregressive\nmodel.offload: true").model.offload);
}

TEST_CASE("recipe: all that is wrong is said at once") {
  const std::string told = error_of(
      "model: {num_layer: 2, num_attention_heads: 0}\noptimizer: {lr: fast, beta9: 1}\n"
      "train: {steps: 5}\n");
  CHECK(
      told.starts_with("4 settings are wrong: (1) unknown key 'model.num_layer' in line 1 of "
                       "'r.yaml'; did you mean 'model.num_layers'?; (2) "
                       "'model.num_attention_heads' in line 1 of 'r.yaml' is '0', must be "));
  CHECK(told.find("; (3) 'optimizer.lr' in line 2") != std::string::npos);
  CHECK(told.find("; (4) unknown key 'optimizer.beta9'") != std::string::npos);
  // With a type that there is not, keys of all types are known.
  CHECK(error_of("model: {type: dits, vocabulary: 5}\nlr: 1\n")
            .starts_with("2 settings are wrong: (1) 'model.type' "));
  // And what cannot be together.
  CHECK(error_of("optimizer.momentum: 0.9\n")
            .find("'optimizer.momentum' is 0.9, and 'optimizer.kind' is adamw (default): it has no "
                  "effect without muon") != std::string::npos);
  CHECK(error_of("optimizer.kind: muon\nmodel.type: tokenizer\n")
            .find("'optimizer.kind' is muon, and a model of type 'tokenizer' has no matrices of "
                  "blocks: choose adamw") != std::string::npos);
  CHECK(error_of("optimizer.kind: muon\nlora.rank: 2\n")
            .find("'optimizer.kind' is muon, and 'lora.rank' is 2: adapters are no matrices of "
                  "blocks; choose adamw") != std::string::npos);
  CHECK(error_of("lora.rank: 2\nparallel: {vpp: 2, replicate: 2}\n")
            .starts_with("3 settings are wrong: (1) 'lora.rank' is 2: adapters need"));
}

TEST_CASE("recipe: ranks of cp that share heads are for one kind alone") {
  CHECK(error_of("parallel: {cp: 4, cp_kind: ring, cp_heads: 2}")
            .starts_with("'parallel.cp_heads' is 2, and 'parallel.cp_kind' is ring: only with "
                         "all_to_all+ring "));
  CHECK(error_of("parallel: {cp: 4, cp_heads: 2}").find("is auto (default)") != std::string::npos);
  CHECK(from_yaml("parallel: {cp: 4, cp_kind: all_to_all+ring, cp_heads: 2}").parallel.cp_heads ==
        2);
}

TEST_CASE("recipe: a model's size is said, or begun from") {
  CHECK(usage_error([] {
          check_size(from_yaml("data.tokens: 5"));
        }).starts_with("the recipe does not say how large the model is: 'model.num_layers' is "));
  CHECK_THROWS_AS(check_size(from_yaml("model.type: autoregressive")), Error);
  CHECK_NOTHROW(check_size(from_yaml("model.num_layers: 28")));
  CHECK_NOTHROW(check_size(from_yaml("model.type: tokenizer")));
  Beginning beginning;
  beginning.model = models::NetworkConfig{};
  CHECK_NOTHROW(check_size(make_recipe({}, &beginning)));
}

TEST_CASE("recipe: modulation by one matrix has no width inside") {
  const Recipe full = from_yaml("model: {adaln: full}");
  CHECK(full.model.dit.own<models::DitFields>().adaln_lora_dim == 0);
  CHECK(from_yaml("").model.dit.own<models::DitFields>().adaln_lora_dim == 256);
  CHECK(to_yaml(from_yaml(to_yaml(full))) == to_yaml(full));
  // Where it comes after a width, it takes that away.
  CHECK(from_yaml("model: {adaln_lora_dim: 256, adaln: full}")
            .model.dit.own<models::DitFields>()
            .adaln_lora_dim == 0);
  CHECK(error_of("model: {adaln: full, adaln_lora_dim: 256}")
            .find("'model.adaln' is full, and 'model.adaln_lora_dim' is 256: only a modulation") !=
        std::string::npos);
  CHECK(error_of("model: {adaln_lora_dim: 0}")
            .find("'model.adaln_lora_dim' is 0, and 'model.adaln' is lora (default)") !=
        std::string::npos);
  CHECK(error_of("model: {type: moviegen, adaln: full}").find("'model.adaln'") !=
        std::string::npos);
  CHECK(error_of("model: {qk_norm: true}").find("'model.qk_norm'") != std::string::npos);
  CHECK(from_yaml("model: {type: moviegen, qk_norm: true}")
            .model.dit.own<models::MovieGenFields>()
            .qk_norm);
  // What a run begins from says it too.
  Beginning beginning;
  models::NetworkConfig one_matrix;
  one_matrix.own<models::DitFields>().adaln_lora_dim = 0;
  beginning.model = one_matrix;
  const auto adaln = [](const Recipe& recipe) {
    return recipe.model.dit.own<models::DitFields>().adaln;
  };
  CHECK(adaln(make_recipe({}, &beginning)) == "full");
  CHECK(adaln(make_recipe(parse_yaml("model: {adaln: full}", "a test"), &beginning)) == "full");
  const auto refused = [](const char* yaml, const models::NetworkConfig& from) {
    Beginning begun;
    begun.model = from;
    return usage_error([&] { make_recipe(parse_yaml(yaml, "a test"), &begun); });
  };
  CHECK(refused("model: {adaln: lora}", one_matrix).find("model.adaln: \"full\" -> \"lora\"") !=
        std::string::npos);
  CHECK(refused("model: {adaln: full}", {})
            .find("model.adaln: \"lora\" -> \"full\"; model.adaln_lora_dim: 256 -> 0") !=
        std::string::npos);
}

TEST_CASE("recipe: printed and read back it is the same") {
  const Recipe recipe = from_yaml(
      "optimizer: {lr: 0.1234567890123456, eps: 1e-10}\ndiffusion: {p_mean: 0.7}\n"
      "train: {seed: 18446744073709551615}\nmodel: {rope_scale: [2.5, 1, 1]}\n");
  const std::string text = to_yaml(recipe);
  CHECK(to_yaml(from_yaml(text)) == text);
  CHECK(recipe.train.seed == 18446744073709551615ull);
  CHECK(text.find("lr: 0.1234567890123456\n") != std::string::npos);
}

TEST_CASE("recipe: a run may go on with other lengths, not with another model") {
  const Recipe before = from_yaml("train: {steps: 100}");
  CHECK(changed_settings(to_json(before), from_yaml("train: {steps: 200, log_every: 7, keep: 5}\n"
                                                    "model: {recompute: block}\n"
                                                    "optimizer: {lr: 1}\nschedule: {warmup: 3}"))
            .empty());
  CHECK(changed_settings(to_json(before), from_yaml("train: {steps: 100}\noptimizer: {lr: 1}"),
                         Compared::free) ==
        std::vector<std::string>{"optimizer.lr: 0.0001 -> 1.0"});
  const auto changes =
      changed_settings(to_json(before), from_yaml("optimizer: {beta1: 0}\nmodel: {num_layers: 3}"));
  CHECK(changes ==
        std::vector<std::string>{"model.num_layers: 28 -> 3", "optimizer.beta1: 0.9 -> 0.0"});
}

TEST_CASE("recipe: what a run begins from takes the place of defaults, and settings that of both") {
  Beginning beginning;
  beginning.model = models::NetworkConfig{.in_channels = 17};
  beginning.diffusion.text_padding = 512;
  beginning.diffusion.condition_frames = {0, 1, 2};
  const Recipe plain = make_recipe({}, &beginning);
  CHECK(plain.diffusion.text_padding == 512);
  CHECK(plain.diffusion.condition_frames == std::vector<int>{0, 1, 2});
  CHECK(plain.text_tokens(3) == 512);
  CHECK(plain.text_tokens(600) == 600);
  const auto settings = parse_yaml("diffusion: {text_padding: 0, condition_frames: [1]}", "a test");
  const Recipe chosen = make_recipe(settings, &beginning);
  CHECK(chosen.diffusion.text_padding == 0);
  CHECK(chosen.diffusion.condition_frames == std::vector<int>{1});
  CHECK(chosen.text_tokens(0) == 1);
  CHECK(to_yaml(make_recipe(parse_yaml(to_yaml(chosen), "printed"))) == to_yaml(chosen));
  CHECK_FALSE(make_recipe({}).diffusion.video_to_world());
  CHECK(error_of("diffusion: {condition_frames: [0, -1]}").find("at least 0") != std::string::npos);
}

TEST_CASE("recipe: the manual explains each key, and no other") {
  std::string page = recipe_manual();  // throws where a key has no words
  std::erase(page, '\\');
  const auto heading = [](std::string_view key) { return "\n*" + std::string(key) + "*"; };
  for (const KeyWords& one : key_words()) {
    INFO(one.key);
    const std::size_t place = page.find(heading(one.key));
    REQUIRE(place != std::string::npos);
    CHECK(page.find(heading(one.key), place + 1) == std::string::npos);
  }
  CHECK(page.find("*optimizer.lr** (0.0001)\n\tabove 0. ") != std::string::npos);
  CHECK(page.find("*data.tokens*+ (8192)\n\tfrom 1 tokens. ") != std::string::npos);
  CHECK(page.find("*train.seed* (0)\n") != std::string::npos);
  CHECK(page.find("[]: to_q, to_k, to_v, to_out.0; moviegen: to_q, to_k, to_v, to_out; "
                  "autoregressive: q_proj, k_proj, v_proj, o_proj.\n") != std::string::npos);
  CHECK(page.find("from text alone. *wan* does not train with given frames.\n") !=
        std::string::npos);
}

TEST_CASE("recipe: each value is explained by where it comes from") {
  const auto settings = parse_yaml("model: {num_layers: 2}\noptimizer: {lr: 2e-3}\n", "'r.yaml'");
  const std::string text = explained_yaml(make_recipe(settings), settings, "");
  CHECK(text.find("  num_layers: 2                          # line 1 of 'r.yaml'\n") !=
        std::string::npos);
  CHECK(text.find("  lr: 0.002                              # line 2 of 'r.yaml'\n") !=
        std::string::npos);
  CHECK(text.find("  beta1: 0.9                             # default\n") != std::string::npos);
  const auto again = parse_yaml(text, "it");
  CHECK(to_yaml(make_recipe(again)) == to_yaml(make_recipe(settings)));
}

TEST_CASE("recipe: an architecture says what its keys are, and the manual has it") {
  const MadeUpNetwork made;
  Recipe recipe;
  recipe.model.type = "made-up";
  const std::vector<Field> fields = fields_of(recipe);
  CHECK(find_field(fields, "model.num_layers")->get() == 3);
  CHECK(find_field(fields, "model.in_channels")->get() == 0);
  CHECK(find_field(fields, "model.rope_scale")->stage_may_change);
  CHECK(find_field(fields, "model.max_size")->stage_may_change);
  CHECK_FALSE(find_field(fields, "model.num_layers")->stage_may_change);
  // Fields that all networks have come first, in one order.
  for (std::size_t i = 0; i < models::common_notes().size(); ++i)
    CHECK(fields[i + 1].key == "model." + std::string(models::common_notes()[i].name));
  std::string page = recipe_manual();
  std::erase(page, '\\');
  CHECK(page.find("*made-up* is in no list.") != std::string::npos);
  CHECK(page.find("Type *made-up* takes all.") != std::string::npos);
  // Its words of a key that others have too.
  CHECK(page.find("cannot open a model with *full*. Of type *made-up*: One word.\n") !=
        std::string::npos);
  CHECK(to_yaml(from_yaml("model: {type: made-up, adaln: full}")).find("adaln_lora_dim: 0") !=
        std::string::npos);
  CHECK(error_of("model: {type: made-up, qk_norm: true}").find("'model.qk_norm'") !=
        std::string::npos);
  Beginning beginning;
  beginning.model = made.config();
  CHECK(make_recipe({}, &beginning).model.type == "made-up");
}

TEST_CASE("recipe: a next stage may change what decides samples, length and what is learnt") {
  const auto may = [](const std::string& type, const std::string& key) {
    Recipe recipe;
    recipe.model.type = type;
    return find_field(fields_of(recipe), key)->stage_may_change;
  };
  for (const char* key : {"data.tokens", "data.weights", "diffusion.p_mean", "model.max_size",
                          "model.rope_scale", "optimizer.weight_decay", "optimizer.clip"}) {
    INFO(key);
    CHECK(may("dit", key));
  }
  for (const char* key :
       {"diffusion.whitening", "model.patch_size", "model.learnable_positions", "optimizer.beta1",
        "optimizer.moments", "ema.decay", "train.seed", "lora.rank", "model.compute"}) {
    INFO(key);
    CHECK_FALSE(may("dit", key));
  }
  for (const char* key : {"autoregressive.z_loss", "model.rope_theta", "model.yarn_scale",
                          "model.yarn_frames", "model.yarn_rows", "model.yarn_betas"}) {
    INFO(key);
    CHECK(may("autoregressive", key));
  }
  CHECK_FALSE(may("autoregressive", "model.start_token"));
  CHECK(may("tokenizer", "tokenizer.l1"));
}
