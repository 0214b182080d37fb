// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer.h"

#include "base/error.h"
#include "models/wavelet.h"

namespace vfm::models {
namespace {

int field(const Json& config, const char* name, int otherwise) {
  const std::int64_t value = get_integer(config, name).value_or(otherwise);
  if (value < 1 || value > 1'000'000) fail("'{}' is {}", name, value);
  return static_cast<int>(value);
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const Json& config, Device device) {
  if (!config.is_object()) fail_usage("a tokenizer is described by a JSON object");
  try {
    const std::string name = need_string(config, "name", "the tokenizer");
    if (name != "builtin:wavelet")
      fail_usage("there is no tokenizer '{}'; choose builtin:wavelet", name);
    for (const auto& [key, value] : config.items())
      if (key != "name" && key != "channels" && key != "time_factor" && key != "space_factor")
        fail_usage("tokenizer '{}' has no option '{}'", name, key);
    return std::make_unique<WaveletTokenizer>(field(config, "channels", 24),
                                              field(config, "time_factor", 8),
                                              field(config, "space_factor", 8), device);
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
}

}  // namespace vfm::models
