// Settings of adapters, as diffusers and peft write them: what passes scales each adapter by a
// finite number.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "models/folder/lora_file.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::map<std::string, std::int64_t> ranks = {{"blocks.0.to_q", 4}, {"proj_out", 1}};
    for (const auto& [module, scale] : models::lora_scales(parse_json(text, "input"), ranks, "'x'"))
      if (!std::isfinite(static_cast<float>(scale))) std::abort();
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"r":4,"lora_alpha":8,"use_rslora":true,"bias":"none","use_dora":false})",
          R"({"lora_alpha":1e308,"alpha_pattern":{"to_q":2,"^proj_out":1e-3},"peft_type":"LORA"})",
          R"({"alpha_pattern":null,"lora_bias":true})", "[1]"};
}
