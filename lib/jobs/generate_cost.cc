// SPDX-License-Identifier: Apache-2.0
#include "jobs/generate_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "generate/pipeline.h"
#include "io/file.h"
#include "models/checkpoint.h"
#include "models/dit_json.h"
#include "models/hf_folder.h"
#include "models/tokenizer.h"
#include "tensor/device.h"

namespace vfm::jobs {
namespace {

constexpr int kUsualText = 512;  // tokens of a prompt that is not padded, at most

struct Part {
  double parameters = 0, bytes = 0;
};

/// Of a component of a pipeline, from its headers. `size` is what a value takes when it is used; 0:
/// what it takes in the file.
Part part_of(const std::string& folder, double size) {
  const models::HfComponent component(folder);
  Part part;
  for (const io::TensorView& tensor : component.weights().tensors()) {
    const auto elements = static_cast<double>(tensor.elements());
    part.parameters += elements;
    part.bytes += size > 0 ? size * elements : static_cast<double>(tensor.bytes());
  }
  return part;
}

std::string describe(const Part& part) {
  return fmt::format("{} ({} parameters)", format_bytes(part.bytes), format_count(part.parameters));
}

/// What lies in memory while a pack of so many tokens goes through a block: the stream and the
/// positions in f32, the normed input, and the larger of q, k, v before and after their norm and of
/// the MLP's hidden row before and after its activation.
double activation_bytes(const models::DitConfig& config, double tokens, double size) {
  const double widest = std::max(6.0, 2 * config.mlp_ratio);
  return tokens * config.width() * (8 + size * (2 + widest));
}

int whole(int pixels, int unit) {
  return (pixels + unit - 1) / unit;
}

}  // namespace

std::string describe_generation(const GenerateJob& job) {
  const generate::ModelFacts facts = generate::read_facts(job.model);
  const bool pipeline = generate::is_pipeline(job.model);
  const std::string folder = pipeline ? models::HfPipeline(job.model).folder_of("transformer")
                                      : io::join_path(models::find_checkpoint(job.model), "model");
  const Json json = pipeline
                        ? models::HfComponent(folder).config()
                        : parse_json(io::read_file(io::join_path(folder, "config.json")), folder);
  const models::DitConfig config = models::dit_config_from_json(json);
  const generate::SampleOptions sampling = job.defaults.choice.over(facts.sampling);
  sampling.validate();

  // The tokenizer's factors: of a folder's from its configuration, else built, which is nothing.
  int time = 8, space = 8;
  if (pipeline) {
    const models::HfComponent vae(models::HfPipeline(job.model).folder_of("vae"));
    time = static_cast<int>(need_integer(vae.config(), "temporal_compression_ratio", job.model));
    space = static_cast<int>(need_integer(vae.config(), "spatial_compression_ratio", job.model));
  } else {
    const auto tokenizer = models::make_tokenizer(facts.tokenizer);
    time = tokenizer->time_factor();
    space = tokenizer->space_factor();
  }
  const generate::ClipRequest& asked = job.defaults.request;
  const auto& patch = config.patch_size;
  const int frames = asked.frames > 0 ? asked.frames : 1 + (facts.usual.frames - 1) * time;
  const int height = asked.height > 0 ? asked.height : facts.usual.height * space;
  const int width = asked.width > 0 ? asked.width : facts.usual.width * space;
  const double tokens = static_cast<double>(whole(1 + whole(frames - 1, time), patch[0])) *
                        whole(height, space * patch[1]) * whole(width, space * patch[2]);
  const double text = facts.text_padding > 0 ? facts.text_padding : kUsualText;
  const double halves = sampling.guidance != 0 ? 2 : 1;

  const DType compute = job.compute.value_or(job.device == Device::cpu ? DType::f32 : DType::bf16);
  const double size = compute == DType::bf16 ? 2 : 4;
  const models::DitCost cost =
      models::dit_cost(config, tokens, text, halves * tokens, compute, models::Recompute::none);
  // Forward is a third of forward and backward.
  const double pass = cost.flops_per_token / 3 * tokens * halves;
  const int passes = generate::evaluations(sampling);
  const Part network{static_cast<double>(cost.parameters),
                     size * static_cast<double>(cost.parameters)};
  const double activations = activation_bytes(config, halves * tokens, size);

  std::string out;
  double total = network.bytes + activations;
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("{:<22} {}\n", name, value);
  };
  line("model", fmt::format("{}, {} blocks, {} wide", get_string(json, "_class_name").value_or("?"),
                            config.num_layers, config.width()));
  line("device", job.device == Device::cuda ? describe_gpu() : "the CPU");
  line("clip", fmt::format("{} frames of {}x{}", frames, width, height));
  line("tokens", fmt::format("{:.0f} (and {:.0f} of text)", tokens, text));
  line("sampling", fmt::format("{}, {} steps, guidance {}", generate::to_string(sampling.sampler),
                               sampling.steps, sampling.guidance));
  line("passes", fmt::format("{} of {} sample{}", passes, halves, halves > 1 ? "s" : ""));
  line("FLOPs of a pass", format_count(pass));
  line("FLOPs of sampling", format_count(pass * passes));
  line("weights", fmt::format("{}, in {}", describe(network), dtype_name(compute)));
  if (pipeline) {
    const models::HfPipeline parts(job.model);
    const Part encoder = part_of(parts.folder_of("text_encoder"), 0);
    const Part tokenizer = part_of(parts.folder_of("vae"), 4);
    line("text encoder", describe(encoder));
    line("tokenizer", describe(tokenizer));
    total += encoder.bytes + tokenizer.bytes;
  }
  line("activations", "about " + format_bytes(activations));
  line("memory", "about " + format_bytes(total) + ", without what decoding needs");
  return out;
}

}  // namespace vfm::jobs
