// Recipes: YAML and "key=value" arguments.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "train/recipe/recipe_file.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto settings = train::parse_yaml(text, "input");
    const std::string printed = train::to_yaml(train::make_recipe(settings));
    train::make_recipe(train::parse_yaml(printed, "printed"));
  } catch (const Error&) {
  }
  try {
    const train::Setting setting = train::parse_override(text);
    train::make_recipe({&setting, 1});
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "optimizer: {lr: 2e-3, beta2: 0.95}\nvalidation:\n  sigmas: [0.5, 2]\n",
      "model:\n  patch_size: [1, 2, 2]\n  compute: bf16\n  recompute: true\ntrain:\n  steps: 10\n",
      "a: &a {b: 1}\nc: *a\nd: [*a, *a]\n? [x]\n: y\n--- |\n text\n", "train.steps=5",
      "model.max_size=[1, 2, 3]"};
}
