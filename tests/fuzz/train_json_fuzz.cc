// The train.json of a checkpoint, as generation reads it.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "generate/sampling/sample_options.h"
#include "models/folder/model_facts.h"
#include "models/tokenizer.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Json train = parse_json(text, "input");
    models::ModelFacts::from_json(train, "input", models::FactsFor::training);
    const auto facts = models::ModelFacts::from_json(train, "input");
    models::evaluations(generate::SampleOptions::of(facts.sampling, "input"));
    models::make_tokenizer(facts.tokenizer.value());
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"tokenizer":{"name":"builtin:wavelet","channels":2,"time_factor":8,"space_factor":8},
      "text_encoder":{"name":"builtin:hash","dim":4},"latent_scale":{"mean":[0,0.5],"std":[1,2]},
      "trained":{"frames":3,"height":8,"width":8,"usual":{"frames":2,"height":8,"width":8},
      "fps":[12]},"sampling":{"process":"flow","shift":3,"steps":4},
      "recipe":{"model":{"compute":"bf16"}}})",
          R"({"tokenizer":{"name":"builtin:fsq","levels":[8,8,8,5,5,5],"time_factor":4,
      "space_factor":4},"text_encoder":{"name":"t5","path":"/x"},"latent_scale":null,"trained":
      {"frames":3,"height":8,"width":8,"fps":[]},"sampling":{"sampler":"edm-euler","steps":36,
      "guidance":7,"sigma_min":0.002,"sigma_max":80},"text_padding":512,"encode_empty":true,
      "round_time":false})"};
}
