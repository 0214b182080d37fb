// SPDX-License-Identifier: Apache-2.0
#include "generate_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "dist/launch.h"
#include "generate/files/clip_output.h"
#include "generate/request/prompts.h"
#include "media/encode/encode_sessions.h"
#include "media/encode/encoder.h"
#include "models/folder/load_model.h"

namespace {

/// Sets the prompt's size from "WxH", unless `size` is empty.
void parse_size(const std::string& size, vfm::generate::Prompt& prompt) {
  if (size.empty()) return;
  int used = 0;
  if (std::sscanf(size.c_str(), "%9dx%9d%n", &prompt.width, &prompt.height, &used) != 2 ||
      used != static_cast<int>(size.size()))
    vfm::fail_usage("--size '{}' is not WIDTHxHEIGHT, as in 64x64", size);
  const auto [least, most] = std::minmax(prompt.width, prompt.height);
  if (least < 1 || most > vfm::generate::kLargestSide)
    vfm::fail_usage("--size '{}': width and height must be 1 to {} pixels", size,
                    vfm::generate::kLargestSide);
}

/// Text after the last colon is the scale if it is a number, and otherwise part of the path.
vfm::models::AdapterChoice::Set parse_lora(const std::string& lora) {
  const std::size_t colon = lora.rfind(':');
  if (colon == std::string::npos || colon + 1 == lora.size()) return {lora};
  const char* end = lora.data() + lora.size();
  double scale = 1;
  const auto [stop, error] = std::from_chars(lora.data() + colon + 1, end, scale);
  if (error != std::errc{} || stop != end) return {lora};
  if (!std::isfinite(scale)) vfm::fail_usage("--lora '{}': the scale must be finite", lora);
  if (colon == 0) vfm::fail_usage("--lora '{}' names no file", lora);
  return {lora.substr(0, colon), scale};
}

}  // namespace

void TokenizerOptions::add_folder(vfm::cli::Options& options) {
  options.add("--tokenizer", tokenizer, "DIR", "the model's tokenizer, if its folder has moved")
      .check(vfm::cli::not_empty)
      .shown("")
      .manual(
          "The folder of the model's tokenizer, if it has moved since *vfm-pack*(1) made the "
          "latents. The tokenizer's hash must be the same.");
}

void TokenizerOptions::add_computing(vfm::cli::Options& options) {
  options.add("--compute", dtype, "auto|f32|bf16", "number format; auto: f32, or as trained")
      .one_of({"auto", "f32", "bf16"})
      .manual(
          "The number format. *auto* is f32 on the CPU. On a GPU *auto* is the format in which the "
          "model was trained, and bf16 for a tokenizer from a folder.");
  vfm::cli::add_tokenizer_memory(options, memory)
      .manual(
          "Maximum memory for the activations of a tokenizer from a folder, such as _2GiB_, for "
          "each clip that is being decoded. With less memory, fewer frames are decoded at once, "
          "with the same result. If a clip needs more memory, an error says how much. Default: no "
          "limit.");
}

std::optional<vfm::DType> TokenizerOptions::compute() const {
  if (dtype == "auto") return std::nullopt;
  return dtype == "bf16" ? vfm::DType::bf16 : vfm::DType::f32;
}

vfm::Device TokenizerOptions::device_of(const vfm::cli::Launch& launch) const {
  return vfm::dist::rank_device(device.device, launch.local_rank, launch.local_ranks,
                                launch.shown_gpu);
}

void ClipFileOptions::add(vfm::cli::Options& options, const char* encoder_shown,
                          const char* quality_shown) {
  output.add(options, true, "write clips into this folder, or - as Y4M");
  options.row("--output")
      .manual(
          "Write clips into this folder. With *-* the frames go to standard output as one Y4M "
          "stream, in the order of the input. All clips of a stream must have the same size and "
          "frame rate.");
  options.add("--encoder", encoder, "NAME", "encode mp4 files with this encoder of FFmpeg")
      .shown(encoder_shown)
      .manual("Encode mp4 files with this encoder of FFmpeg, such as *libx264* or *ffv1*.");
  options.add("--quality", quality, "Q", "quality of mp4 files, 0 (best) to 51")
      .in(0, 51)
      .shown(quality_shown)
      .everyday()
      .manual("Quality of mp4 files, from 0 (best) to 51 (worst).");
}

void ClipFileOptions::check(const vfm::cli::Launch& launch) const {
  // Checks only that an encoder of a GPU exists. It can be tried when its sessions are known.
  if (!stream() && vfm::media::encodes_on_gpu(encoder))
    vfm::media::coded_size(encoder, 2, 2);
  else if (!stream())
    vfm::generate::usable_encoder(encoder);
  // mpirun may give its ranks a terminal, but reads their output.
  if (stream() && launch.ranks == 1 && vfm::cli::stdout_is_terminal())
    vfm::fail_usage("Y4M is not for a terminal: pipe it, as in '-o - | ffplay -'");
}

void GenerateOptions::add_model(vfm::cli::Options& options) {
  options.add("-m,--model", model_, "DIR", "a run of vfm-train; a Cosmos-1.0 or Wan pipeline")
      .required()
      .check(vfm::cli::not_empty)
      .shown("")
      .everyday()
      .manual(
          "The model: a run of *vfm-train*(1) (the newest checkpoint is used), one checkpoint "
          "(hashes are checked), a Cosmos-1.0 pipeline of diffusers, or a Wan pipeline. "
          "*vfm-models*(7) lists the models.");
  options.add("--lora", loras_, "PATH[:SCALE]", "add these adapters; may be repeated")
      .check(vfm::cli::not_empty)
      .repeated()
      .everyday()
      .manual(
          "Add these adapters, multiplied by _SCALE_ (default 1). May be given several times. See "
          "*vfm-models*(7).");
  options.flag("--no-merge", no_merge_, "keep adapters beside the weights")
      .manual(
          "Do not merge adapters into the weights. The adapters' products are computed separately "
          "and added.");
  options.add("--text-encoder", text_encoder_, "DIR", "the model's text encoder, if it has moved")
      .check(vfm::cli::not_empty)
      .shown("")
      .manual(
          "The folder of the model's text encoder, if it has moved since *vfm-embed*(1) used it. "
          "The encoder's hash must be the same.");
  tokenizer.add_folder(options);
}

void GenerateOptions::add_prompt(vfm::cli::Options& options) {
  options
      .parsed(
          "--negative",
          [this](const std::string& value) { negative_ = vfm::generate::given_text(value); },
          "TEXT|@FILE", "avoid what this text describes")
      .shown("")
      .everyday()
      .manual("Avoid what this text, or the text in this file, describes. Default: no text.");
}

void GenerateOptions::add_clip(vfm::cli::Options& options) {
  options.add("--size", size_, "WxH", "width and height in pixels")
      .shown("as trained")
      .everyday()
      .manual(
          "Width and height in pixels. Most encoders take only even sizes. For an odd size, the "
          "last column or row is repeated, with a warning, and the record has _coded_width_ and "
          "_coded_height_. Streams and *--encoder ffv1* take any size.");
  options.add("--frames", frames_, "N", "number of frames")
      .in(1, 100000)
      .shown("as trained")
      .everyday()
      .manual("Number of frames. 1 makes a still picture.");
  options.add("--condition", condition_, "FILE", "begin the clip with this image or video")
      .check(vfm::cli::not_empty)
      .shown("")
      .everyday()
      .manual(
          "Begin the clip with this image, or with the last frames of this video. See VIDEO TO "
          "WORLD.");
  options.add("--condition-frames", condition_frames_, "N", "begin with N frames: 1, 9, 17, ...")
      .in(1, 100000)
      .shown("")
      .manual(
          "Begin with the last _N_ frames of *--condition*. _N_ is 1, or 1 plus a multiple of the "
          "frames in a latent frame, such as 9 or 17. Default: 1 for an image. For a video, the "
          "smallest possible number above 1, or 1 if the video or the clip is too short.");
}

void GenerateOptions::add_sampling(vfm::cli::Options& options) {
  vfm::cli::OptionRow& steps = options.add("--steps", steps_, "N", "steps from noise to clip");
  steps.in(1, 10000).shown("").everyday().manual(
      "Steps from noise to clip. Default: the model's, or 16.");
  options.add("--guidance", guidance_, "G", "how strongly to follow the prompt; 0: not at all")
      .check(vfm::cli::not_nan)
      .shown("")
      .everyday()
      .manual(
          "How strongly to follow the prompt. 0 turns guidance off. See SAMPLING. Default: the "
          "model's, or 1.");
  options.add("--guidance-low", guidance_low_, "G", "guidance at low noise levels")
      .check(vfm::cli::not_nan)
      .shown("")
      .manual(
          "Guidance at low noise levels, for models that have another network for these. Default: "
          "the value of *--guidance*, or the model's.");
  options.add("--sampler", sampler_, "NAME", "euler, res, unipc, dpm++, lcm, ...")
      .one_of({"euler", "edm-euler", "heun", "res", "flow", "unipc", "unipc1", "unipc3", "dpm++",
               "lcm"})
      .shown("")
      .everyday()
      .manual(
          "*euler*, *edm-euler*, *heun*, *res*, *flow*, *unipc*, *unipc1*, *unipc3*, *dpm++* or "
          "*lcm*. See SAMPLING. Default: the model's.");
  options.add("--as", as_, "NAME", "sample as in the reference or in diffusers")
      .one_of({"reference", "diffusers"})
      .shown("reference")
      .manual(
          "Sample a model of Wan as in the program of its authors (*reference*), or as in "
          "*diffusers*. See SAMPLING. Other models take no *--as*.");
  options.add("--sigmas", sigmas_, "S,S,...", "sample at these noise levels, in place of --steps")
      .check(vfm::cli::not_blank)
      .excludes(steps)
      .shown("")
      .manual(
          "Sample at these noise levels, in falling order and above 0, in place of *--steps*. "
          "Sampling begins with noise of the first level. For models of flow matching the first "
          "level is at most 1.");
  options.add("--temperature", temperature_, "T", "sampling temperature of codes; 0 is greedy")
      .shown("1")
      .manual("Sampling temperature of an autoregressive model. 0 is greedy.");
}

void GenerateOptions::add_precision(vfm::cli::Options& options) {
  tokenizer.add_computing(options);
  vfm::cli::OptionRow& fp8 =
      options.add("--fp8", fp8_, "linear|all", "compute most products in FP8, for speed");
  fp8.one_of({"linear", "all"})
      .shown("")
      .manual(
          "Compute products with the matrices of the blocks (*linear*), or also self-attention "
          "(*all*), in FP8. Only for diffusion models. See FEWER BITS.");
  options.add("--quantize", quantize_, "int8|e4m3", "store weights in 8 bits, to save memory")
      .one_of({"int8", "e4m3"})
      .excludes(fp8)
      .shown("")
      .manual(
          "Store the matrices of the blocks in 8 bits. Only for diffusion models. Not with "
          "*--fp8*, which already has weights of 8 bits. See FEWER BITS.");
  options.add("--parallel", parallel_, "AXIS=N,...", "share each clip among ranks of mpirun")
      .shown("")
      .everyday()
      .manual(
          "Share each clip among ranks of *mpirun*(1). Give any of *cfg=2*, *cp=*_N_, *tp=*_N_, "
          "*cp_kind=*_NAME_, *hybrid* and *shard*; or *auto*, or *auto=*_N_; for an autoregressive "
          "model *tp=*_N_ and *pp=*_N_. See *vfm-parallel*(7). By default each rank makes its own "
          "clips.");
}

void GenerateOptions::read(vfm::generate::GenerateJob& job) const {
  vfm::generate::Prompt& prompt = job.defaults;
  job.model = model_;
  job.text_encoder = text_encoder_;
  job.tokenizer = tokenizer.tokenizer;
  job.tokenizer_memory = tokenizer.memory;
  job.compute = tokenizer.compute();
  for (const std::string& lora : loras_)
    job.lora.sets.push_back(parse_lora(lora));
  job.lora.separate = no_merge_;
  job.parallel = vfm::generate::parse_parallel(parallel_);
  if (!fp8_.empty()) job.fp8 = vfm::models::parse_fp8(fp8_);
  if (!quantize_.empty()) job.quantize = vfm::ops::parse_row_format(quantize_);
  parse_size(size_, prompt);
  prompt.frames = frames_;
  prompt.negative = negative_;
  prompt.files.condition.path = condition_;
  prompt.files.condition_frames = condition_frames_;
  vfm::generate::SampleChoice& choice = prompt.choice;
  if (!as_.empty()) choice.as = vfm::models::parse_sampled_as(as_);
  if (!sampler_.empty()) choice.sampler = vfm::models::parse_sampler(sampler_);
  if (!sigmas_.empty()) choice.sigmas = vfm::generate::parse_sigmas(sigmas_);
  choice.steps = steps_;
  choice.guidance = guidance_;
  choice.guidance_low = guidance_low_;
  choice.temperature = temperature_;
}
