// The config.json of a tokenizer: whatever passes describes a network that could be built.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "models/cosmos/config_json.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Json json = parse_json(text, "input");
    if (!json.is_object()) return 0;
    const auto config = models::cosmos_config_from_json(json, "input");
    models::cosmos_config_from_json(models::cosmos_config_to_json(config), "printed");
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  vfm::models::CosmosConfig discrete;
  discrete.levels = {8, 8, 8, 5, 5, 5};
  discrete.latent_channels = 6;
  return {vfm::dump_json(vfm::models::cosmos_config_to_json({})),
          vfm::dump_json(vfm::models::cosmos_config_to_json(discrete)),
          R"({"patch_size":2,"temporal_compression_ratio":4,"latents_mean":null,"levels":[]})"};
}
