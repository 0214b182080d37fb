// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "base/counted.h"
#include "base/json.h"
#include "base/units.h"
#include "generate/cost/generate_cost.h"
#include "models/predict.h"

namespace vfm::generate {

namespace {

std::string passes_words(const Json& passes, const Json& samples) {
  return fmt::format("{} of {}", passes.dump(), counted(samples.get<std::int64_t>(), "sample"));
}

std::string passes_of(const Json& two, std::size_t network) {
  return passes_words(two["passes"][network], two["samples"][network]);
}

}  // namespace

std::string generation_words(const Json& cost) {
  std::string out;
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("{:<22} {}\n", name, value);
  };
  const auto bytes = [](const Json& value) { return format_bytes(value.get<double>()); };
  const auto count = [](const Json& value) { return format_count(value.get<double>()); };
  const auto flops = [](const Json& value) {
    return models::count_words(value.get<double>(), "FLOPs");
  };
  const Json &sampling = cost["sampling"], &memory = cost["memory_bytes"];
  line("model",
       fmt::format(
           "{}, in {}{}", cost["model"].get<std::string>(), cost["compute"].get<std::string>(),
           cost.contains("quantize") ? ", weights as " + cost["quantize"].get<std::string>() : ""));
  line("device", cost["device"] == "cpu" ? "the CPU" : cost["device"].get<std::string>());
  const auto number = [](const Json& value, const char* of) {
    return counted(value.get<std::int64_t>(), of);
  };
  line("clip", fmt::format("{} of {}x{}", number(cost["frames"], "frame"), cost["width"].dump(),
                           cost["height"].dump()));
  line("tokens",
       fmt::format("{} (and {} of text)", cost["tokens"].dump(), cost["text_tokens"].dump()));
  if (sampling.contains("sampler"))
    line("sampling",
         fmt::format(
             "{}, {}, guidance {}{}", sampling["sampler"].get<std::string>(),
             number(sampling["steps"], "step"), sampling["guidance"].dump(),
             sampling.contains("guidance_low") ? " and " + sampling["guidance_low"].dump() : ""));
  line("passes", cost.contains("switch")
                     ? passes_of(cost["switch"], 0) + ", then " + passes_of(cost["switch"], 1)
                     : passes_words(sampling["passes"], sampling["samples"]));
  if (cost.contains("switch")) {
    const Json& change = cost["switch"];
    line("switch", fmt::format("after {} of the passes, below the level {}, to another network: {} "
                               "are read",
                               change["passes"][0].dump(), change["level"].dump(),
                               bytes(change["file_bytes"])));
  }
  if (cost.contains("parallel"))
    line("shared by", fmt::format("{} ranks, {}{}: the network and memory are of one of them",
                                  cost["ranks"].dump(), cost["parallel"].get<std::string>(),
                                  cost["shard"].get<bool>() ? ", with shards of the weights" : ""));
  for (const auto& [part, name] : {std::pair{"text_encoder", "text encoder"},
                                   {"network", "network"},
                                   {"tokenizer", "tokenizer"}}) {
    const Json& p = cost[part];
    line(name,
         fmt::format("{}: {} parameters, {} on disk, {}, {} besides the weights",
                     p["type"].get<std::string>(), count(p["parameters"]), bytes(p["file_bytes"]),
                     flops(p["flops"]), bytes(p["activation_bytes"])));
  }
  if (cost.contains("decoding")) {
    const Json& split = cost["decoding"];
    line("decoding", fmt::format("chunks of {}, {} at a time, of each {} of rows",
                                 number(split["latent_frames"], "latent frame"),
                                 split["chunks"].dump(), number(split["bands"], "band")));
  }
  line("FLOPs", flops(cost["flops"]));
  for (const auto& [phase, name] : {std::pair{"loading", "memory, loading"},
                                    {"encoding_text", "  encoding text"},
                                    {"sampling", "  sampling"},
                                    {"decoding", "  decoding"}})
    line(name, "about " + bytes(memory[phase]));
  if (memory["program"] != 0)
    line("  (the program", "about " + bytes(memory["program"]) + " of each)");
  line("memory, at most", "about " + bytes(memory["peak"]));
  if (cost.contains("predicted")) {
    const Json& predicted = cost["predicted"];
    line("predicted clip",
         fmt::format("{:.4g} s, a pass {:.4g} s", predicted["seconds"].get<double>(),
                     predicted["pass_seconds"].get<double>()));
    out += models::prediction_words(predicted);
  }
  return out;
}

}  // namespace vfm::generate
