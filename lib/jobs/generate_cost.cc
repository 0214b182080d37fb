// SPDX-License-Identifier: Apache-2.0
#include "jobs/generate_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "generate/pipeline.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/checkpoint.h"
#include "models/cosmos_cost.h"
#include "models/cosmos_tokenizer.h"
#include "models/decoder_json.h"
#include "models/dit_json.h"
#include "models/hf_folder.h"
#include "models/initial_model.h"
#include "models/load_tensors.h"
#include "models/text_encoder.h"
#include "tensor/device.h"

namespace vfm::jobs {
namespace {

constexpr int kUsualText = 512;  // tokens of a prompt, at most
/// Of the memory of tensors that is not in use the allocator keeps so much (caching_allocator.h).
constexpr double kKept = 0.25;

std::int64_t rounded(double bytes) {
  return static_cast<std::int64_t>(bytes);
}

/// A part of the model: what its headers say, and its cost for the clip.
struct Part {
  std::string type;
  double file_bytes = 0;    ///< of its weights
  double weight_bytes = 0;  ///< of memory for them while it is there; 0: they stay mapped
  models::PartCost cost;    ///< flops of the clip

  Json json() const {
    return {{"type", type},
            {"parameters", cost.parameters},
            {"file_bytes", rounded(file_bytes)},
            {"weight_bytes", rounded(weight_bytes)},
            {"activation_bytes", rounded(cost.activation_bytes)},
            {"host_bytes", rounded(cost.host_bytes)},
            {"flops", cost.flops}};
  }
};

/// The network or the decoder, one of them.
struct Network {
  std::string type;
  std::optional<models::DitConfig> dit;
  std::optional<models::DecoderConfig> decoder;
  DType trained = DType::f32;
  double file_bytes = 0;
};

/// What was found wrong in any part.
class Faults {
 public:
  template <class Act>
  void look(Act act) {
    try {
      act();
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      found_.push_back(error.what());
    }
  }
  void finish() const {
    if (found_.size() == 1) throw Error(found_.front(), ErrorKind::usage);
    if (!found_.empty())
      fail_usage("{} parts of the model do not fit:\n  {}", found_.size(),
                 fmt::join(found_, "\n  "));
  }

 private:
  std::vector<std::string> found_;
};

void check(const Network& network, const io::TensorSet& weights) {
  if (network.decoder)
    models::check_tensors(
        weights,
        models::Decoder(*network.decoder, 0, DType::bf16, Device::cpu, false).parameters());
  else
    models::check_tensors(
        weights,
        models::make_network(*network.dit, 0, DType::bf16, Device::cpu, false)->parameters());
}

Network read_pipeline(const std::string& model, Faults& faults) {
  const models::HfComponent component(models::HfPipeline(model).folder_of("transformer"));
  Network network;
  network.type = component.type();
  network.dit = models::dit_config_from_json(component.config());
  faults.look([&] {
    const io::TensorSet& weights = component.weights();
    check(network, weights);
    network.file_bytes = static_cast<double>(weights.bytes());
    if (weights.tensors().front().dtype != "F32") network.trained = DType::bf16;
  });
  return network;
}

Network read_checkpoint(const GenerateJob& job, Faults& faults) {
  const std::string folder = models::find_checkpoint(job.model);
  const auto read = [&](const char* name) {
    const std::string file = io::join_path(folder, name);
    return parse_json(io::read_file(file), "'" + file + "'");
  };
  const Json train = read("train.json");
  Network network;
  if (models::has_adapters(folder)) {
    const std::string& base = job.lora.base;
    const std::string was = get_string(train.value("init", Json()), "path").value_or("");
    models::InitialModel model(base.empty() ? was : base, "transformer",
                               models::network_class_names());
    network.type = get_string(model.config(), "_class_name").value_or("");
    network.trained = models::trained_in(train);
    network.dit = models::dit_config_from_json(model.config());
    faults.look([&] {
      check(network, model.tensors());
      network.file_bytes = static_cast<double>(model.tensors().bytes());
    });
    return network;
  }
  const Json config = read("model/config.json");
  network.type = get_string(config, "_class_name").value_or("");
  network.trained = models::trained_in(train);
  if (network.type == models::kDecoderClass)
    network.decoder = models::decoder_config_from_json(config);
  else
    network.dit = models::dit_config_from_json(config);
  faults.look([&] {
    const std::string state = io::join_path(folder, "state");
    const bool ema = job.ema && io::SafetensorsSet::exists(state, "ema");
    const io::SafetensorsSet weights =
        ema ? io::SafetensorsSet(state, "ema")
            : io::SafetensorsSet(io::join_path(folder, "model"), models::kWeightsName);
    check(network, weights);
    network.file_bytes = static_cast<double>(weights.bytes());
  });
  return network;
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

/// The clip, and the latent that it is made of.
struct Clip {
  int frames = 0, height = 0, width = 0;
  int latent_frames = 0, latent_height = 0, latent_width = 0;
  std::int64_t tokens = 0, text_tokens = 0, samples = 1;
};

class Estimate {
 public:
  explicit Estimate(const GenerateJob& job);
  Json json() const;

 private:
  void read_tokenizer();
  void read_text_encoder();
  void plan_clip();
  Part network_part() const;
  Part tokenizer_part() const;
  Part text_part() const;

  const GenerateJob& job_;
  generate::ModelFacts facts_;
  Network network_;
  std::optional<models::CosmosFolder> cosmos_;    // or a built-in tokenizer:
  std::unique_ptr<models::Tokenizer> tokenizer_;  // which has no weights
  std::optional<models::TextEncoderFolder> text_;
  generate::SampleOptions sampling_;
  DType compute_ = DType::f32;
  Clip clip_;
};

Estimate::Estimate(const GenerateJob& job) : job_(job), facts_(generate::read_facts(job.model)) {
  Faults faults;
  network_ = generate::is_pipeline(job.model) ? read_pipeline(job.model, faults)
                                              : read_checkpoint(job, faults);
  const bool f32 = job.device == Device::cpu && !job.fp8.any();
  compute_ =
      job.compute.value_or(f32 ? DType::f32 : (job.fp8.any() ? DType::bf16 : network_.trained));
  faults.look([&] { read_tokenizer(); });
  faults.look([&] { read_text_encoder(); });
  faults.finish();
  job.defaults.choice.check_for(network_.decoder.has_value(), facts_.sampling.sampler);
  sampling_ = job.defaults.choice.over(facts_.sampling);
  sampling_.validate();
  plan_clip();
}

void Estimate::read_tokenizer() {
  if (!job_.tokenizer.empty())
    facts_.tokenizer = models::moved_tokenizer(facts_.tokenizer, job_.tokenizer);
  if (models::is_cosmos_tokenizer(get_string(facts_.tokenizer, "name").value_or("")))
    cosmos_ = models::inspect_cosmos(facts_.tokenizer);
  else
    tokenizer_ = models::make_tokenizer(facts_.tokenizer);
}

void Estimate::read_text_encoder() {
  models::TextEncoderOptions options{job_.device, {}, job_.text_encoder, "--text-encoder"};
  if (!facts_.text_encoder.contains("compute")) options.compute = compute_;
  if (facts_.text_encoder.is_null()) {
    if (!job_.text_encoder.empty())
      fail_usage("--text-encoder: the model was trained without text, and reads none");
  } else if (models::has_folder(facts_.text_encoder)) {
    text_ = models::inspect_text_encoder(facts_.text_encoder, options);
  }
}

void Estimate::plan_clip() {
  const int time = cosmos_ ? cosmos_->config.temporal_compression_ratio : tokenizer_->time_factor();
  const int space =
      cosmos_ ? cosmos_->config.spatial_compression_ratio : tokenizer_->space_factor();
  const std::array<int, 3> patch =
      network_.dit ? network_.dit->patch_size : std::array<int, 3>{1, 1, 1};
  const generate::ClipRequest& asked = job_.defaults.request;
  Clip& c = clip_;
  c.frames = asked.frames > 0 ? asked.frames : 1 + (facts_.usual.frames - 1) * time;
  c.height = asked.height > 0 ? asked.height : facts_.usual.height * space;
  c.width = asked.width > 0 ? asked.width : facts_.usual.width * space;
  c.latent_frames = whole(1 + whole(c.frames - 1, time), patch[0]) * patch[0];
  c.latent_height = whole(c.height, space * patch[1]) * patch[1];
  c.latent_width = whole(c.width, space * patch[2]) * patch[2];
  c.tokens = std::int64_t{c.latent_frames / patch[0]} * (c.latent_height / patch[1]) *
             (c.latent_width / patch[2]);
  const bool text = !facts_.text_encoder.is_null();
  c.text_tokens = facts_.text_padding > 0 ? facts_.text_padding : text ? kUsualText : 1;
  c.samples = network_.dit && text && sampling_.guidance != 0 ? 2 : 1;
}

Part Estimate::network_part() const {
  const double size = static_cast<double>(dtype_size(compute_));
  const double tokens = static_cast<double>(clip_.tokens);
  const double text = static_cast<double>(clip_.text_tokens);
  const double samples = static_cast<double>(clip_.samples);
  Part part{network_.type, network_.file_bytes, 0, {}};
  if (network_.decoder) {
    part.cost = models::decoder_writing_cost(*network_.decoder, tokens, text, compute_);
  } else {
    const models::DitCost cost = models::dit_cost(*network_.dit, tokens, text, samples * tokens,
                                                  compute_, models::Recompute::none);
    part.cost.parameters = cost.parameters;
    // Forward is a third of forward and backward.
    part.cost.flops =
        cost.flops_per_token / 3 * tokens * samples * generate::evaluations(sampling_);
    part.cost.activation_bytes = activation_bytes(*network_.dit, samples * tokens, size);
  }
  part.weight_bytes = size * static_cast<double>(part.cost.parameters);
  return part;
}

Part Estimate::tokenizer_part() const {
  const Clip& c = clip_;
  Part part{get_string(facts_.tokenizer, "name").value_or(""), 0, 0, {}};
  if (cosmos_) {
    const std::int64_t step =
        models::cosmos_decode_step(cosmos_->config, c.latent_height, c.latent_width);
    part.file_bytes = cosmos_->file_bytes;
    part.cost = models::cosmos_decode_cost(cosmos_->config, c.latent_frames, c.latent_height,
                                           c.latent_width, step, job_.device, cosmos_->compute);
    part.weight_bytes = static_cast<double>(dtype_size(cosmos_->compute)) *
                        static_cast<double>(part.cost.parameters);
  } else {
    // All pixels in planes.
    const double space = tokenizer_->space_factor();
    const double frames = 1 + (c.latent_frames - 1) * tokenizer_->time_factor();
    part.cost.host_bytes = 3 * 4 * frames * c.latent_height * c.latent_width * space * space;
  }
  return part;
}

Part Estimate::text_part() const {
  Part part{"none", 0, 0, {}};
  if (!facts_.text_encoder.is_null())
    part.type = get_string(facts_.text_encoder, "name").value_or("");
  if (!text_) return part;
  part.file_bytes = text_->file_bytes;
  part.cost =
      models::t5_cost(text_->config, clip_.text_tokens, text_->stored, text_->compute, job_.device);
  const bool second =
      clip_.samples > 1 && (facts_.encode_empty || !job_.defaults.request.negative.empty());
  part.cost.flops *= second ? 2 : 1;
  return part;
}

Json Estimate::json() const {
  const Clip& c = clip_;
  const Part network = network_part(), tokenizer = tokenizer_part(), text = text_part();
  // On the CPU what is outside of tensors counts, and files that are mapped, while they are.
  const double host = job_.device == Device::cpu ? 1 : 0;
  const double weights = network.weight_bytes + tokenizer.weight_bytes;
  const double loading = std::max(network.weight_bytes + host * network.file_bytes,
                                  weights + host * tokenizer.file_bytes);
  const auto using_it = [&](const models::PartCost& cost) {
    return weights + host * (text.file_bytes + cost.host_bytes) +
           (1 + kKept) * cost.activation_bytes;
  };
  const std::pair<const char*, double> phases[] = {{"loading", loading},
                                                   {"encoding_text", using_it(text.cost)},
                                                   {"sampling", using_it(network.cost)},
                                                   {"decoding", using_it(tokenizer.cost)}};
  Json memory;
  double peak = 0;
  for (const auto& [phase, bytes] : phases) {
    memory[phase] = rounded(bytes);
    peak = std::max(peak, bytes);
  }
  memory["peak"] = rounded(peak);
  Json plan = {{"sampler", generate::to_string(sampling_.sampler)},
               {"steps", sampling_.steps},
               {"guidance", sampling_.guidance},
               {"passes", generate::evaluations(sampling_)},
               {"samples", c.samples}};
  if (network_.decoder)
    plan = {{"temperature", sampling_.temperature},
            {"top_p", sampling_.top_p},
            {"passes", c.tokens},
            {"samples", 1}};
  return {{"kind", "cost"},
          {"model", network_.type},
          {"device", job_.device == Device::cuda ? describe_gpu() : "cpu"},
          {"compute", compute_ == DType::bf16 ? "bf16" : "f32"},
          {"frames", c.frames},
          {"width", c.width},
          {"height", c.height},
          {"latent", {c.latent_frames, c.latent_height, c.latent_width}},
          {"tokens", c.tokens},
          {"text_tokens", c.text_tokens},
          {"sampling", plan},
          {"network", network.json()},
          {"text_encoder", text.json()},
          {"tokenizer", tokenizer.json()},
          {"flops", network.cost.flops + text.cost.flops + tokenizer.cost.flops},
          {"memory_bytes", memory}};
}

}  // namespace

Json generation_cost(const GenerateJob& job) {
  return Estimate(job).json();
}

}  // namespace vfm::jobs
