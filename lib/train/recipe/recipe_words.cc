// What each key of a recipe means, in the words of vfm-recipe(5).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "models/dit/architecture.h"
#include "train/recipe/recipe_page.h"

namespace vfm::train {
namespace {

struct ConstantWords {
  std::string_view key, unit, words;
};

constexpr ConstantWords kWords[] = {
    {"model.type", "", ""},  // Kind::words()
    {"model.in_channels", "", "Channels of the latents. 0: as in the data."},
    {"model.out_channels", "", "Channels that the network predicts. 0: as in the data."},
    {"model.text_embed_dim", "", "Width of text embeddings. 0: as in the data."},
    {"model.num_attention_heads", "heads",
     "Attention heads. The width of the network is heads times _model.attention_head_dim_."},
    {"model.attention_head_dim", "", "Width of a head."},
    {"model.num_layers", "", "Blocks of the network. For a tokenizer: layers at each resolution."},
    {"model.mlp_ratio", "", "Hidden width of the MLP, as a multiple of the network's width."},
    {"model.patch_size", "",
     "Latent frames, height and width of a token. For a tokenizer: only the side of its Haar "
     "patch in pixels."},
    {"model.max_size", "latent frames, rows, columns",
     "Size of the position tables. A next stage may increase this size. New rows of learned tables "
     "begin as in a new run of the larger size. With adapters the size cannot grow."},
    {"model.concat_padding_mask", "", "Add the padding mask as a channel, as in Cosmos-1.0."},
    {"model.num_key_value_heads", "heads",
     "Heads of keys and values, a divisor of _model.num_attention_heads_. 0: the same number."},
    {"model.vocabulary", "codes", "Number of codes. 0: as in the data."},
    {"model.width", "", "Width of the residual stream. 0: heads times head width."},
    {"model.rope_theta", "", "Base of the rotary positions."},
    {"model.yarn_scale", "",
     "Factor by which YaRN stretches slow frequencies along time. 1: no YaRN."},
    {"model.yarn_frames", "latent frames",
     "Frames over which YaRN counts the turns of a frequency."},
    {"model.yarn_rows", "rows",
     "Rows over which YaRN counts turns to stretch height and width. 0: only time is stretched. "
     "Cosmos-1.0's 12B and 13B have scale 2, 3 frames and 40 rows."},
    {"model.yarn_betas", "turns",
     "Turns that separate fast, medium and slow frequencies for YaRN."},
    {"model.start_token", "",
     "A start token comes before the first code. Without this token the first code must be given, "
     "so the model only continues videos."},
    {"model.read_positions", "",
     "A token has the position of the code that it reads. With false, a token has the position of "
     "the code that it predicts, which needs a start token."},
    {"model.absolute_positions", "",
     "Add sinusoids of frame, row and column before each layer. Cosmos-1.0's 4B and 12B have "
     "_start_token_ false, _read_positions_ true and _absolute_positions_ false. Its 5B and 13B "
     "have true for all three keys."},
    {"model.latent_channels", "", "Channels of continuous latents."},
    {"model.z_channels", "", "Channels before and after quantisation."},
    {"model.levels", "",
     "Levels of finite scalar quantisation, as [8, 8, 8, 5, 5, 5]. []: continuous latents."},
    {"model.encoder_block_out_channels", "", "Channels of the encoder's blocks, as in diffusers."},
    {"model.decode_block_out_channels", "", "Channels of the decoder's blocks, as in diffusers."},
    {"model.attention_resolutions", "pixels", "Resolutions with attention, as in diffusers."},
    {"model.resolution", "pixels",
     "Input resolution for _model.attention_resolutions_, as in diffusers."},
    {"model.spatial_compression_ratio", "", "Pixels of a side that become one latent."},
    {"model.temporal_compression_ratio", "", "Frames that become one latent frame."},
    {"model.compute", "",
     "Type of matrix products and activations. Weights are always f32. With bf16 each weight is "
     "stored as two halves, and the first half is the bf16 weight."},
    {"model.recompute", "",
     "To save memory, backward recomputes parts of forward. *elementwise* recomputes norms and "
     "activations, in little time. *block* keeps only a block's input, and takes a third more "
     "time. *block_but_attention* also keeps the result of self-attention. *auto* takes the first "
     "value that fits the memory. Results do not change."},
    {"model.offload", "",
     "On a GPU, with recomputed blocks: keep the inputs of blocks in pinned memory of the host. "
     "*vfm-train cost* prints the memory of GPU and host. With offloading, steps are not CUDA "
     "graphs. Results do not change."},
    {"lora.rank", "",
     "Rank of the adapters. 0: no adapters, all weights are trained. Adapters need *--init* or "
     "*--continue*."},
    {"lora.alpha", "",
     "The product of the adapters is multiplied by alpha/rank, or by 1 if alpha is 0."},
    {"lora.targets", "",
     "Matrices that get adapters, by the last words of their names. _to_q_ means all attentions, "
     "_attn1.to_q_ only self-attention."},
    {"diffusion.process", "",
     "How noise is added and what the network predicts. *edm*: the noisy latent is x0 + sigma e, "
     "and the network is preconditioned (Karras et al. 2022). *flow*: flow matching; it is (1-t) "
     "x0 + t e, and the network predicts e - x0. With *--init* it is the process of the model."},
    {"diffusion.p_mean", "",
     "Mean of ln(sigma) over samples. In flow matching sigma is t/(1-t), so times are "
     "logit-normal."},
    {"diffusion.p_std", "", "Standard deviation of ln(sigma)."},
    {"diffusion.shift", "",
     "Flow matching: factor on sigma. Above 1 there is more training at much noise. With *--init* "
     "the default is the model's shift of sampling, and for Wan that of diffusers."},
    {"diffusion.sigma_min", "",
     "Smallest noise level: sigma, or t of flow matching, where the default is 0.001."},
    {"diffusion.sigma_max", "",
     "Largest noise level. In flow matching the default is 1, the highest level."},
    {"diffusion.whitening", "",
     "How much the standard deviations of latent channels are equalised. 1: all equal. 0: as from "
     "the tokenizer."},
    {"diffusion.loss_scale", "", "Factor on the gradients."},
    {"diffusion.text_dropout", "of samples",
     "Share of samples that train without text, for guidance."},
    {"diffusion.scale_video_noise", "",
     "Multiply sigma of a video by the square root of the number of latent frames."},
    {"diffusion.condition_frames", "latent frames",
     "Video to world: how many first frames of a sample are given. Each listed number is equally "
     "frequent. Given frames do not count in the loss. A number above 0 adds a channel to the "
     "model. With 0 in the list, the model also makes clips from text alone."},
    {"diffusion.augment_p_mean", "", "Mean of ln(sigma) of given frames."},
    {"diffusion.augment_p_std", "", "Standard deviation of ln(sigma) of given frames."},
    {"diffusion.text_padding", "tokens",
     "Pad texts to this length with zero vectors. Cosmos-1.0 and Wan have 512. 0: no padding. "
     "*vfm-generate*(1) pads prompts in the same way."},
    {"sampling.steps", "", "Default steps of *vfm-generate*(1). 0: not set."},
    {"sampling.guidance", "", "Default guidance of *vfm-generate*(1). -1: not set."},
    {"sampling.sigma_min", "", "EDM: default noise level at the end of sampling. 0: not set."},
    {"sampling.sigma_max", "",
     "EDM: default noise level at the beginning of sampling. 0: not set."},
    {"sampling.shift", "",
     "Flow matching: default shift of *vfm-generate*(1). 0: the value of _diffusion.shift_; for a "
     "Wan with the shift of its _scheduler_, both shifts of its pipeline (*--as*)."},
    {"autoregressive.z_loss", "", "Weight of the squared log-sum-exp of the logits."},
    {"autoregressive.text_dropout", "of samples", "Share of samples that train without text."},
    {"autoregressive.ignored_frames", "latent frames",
     "First frames of a video that do not count in the loss."},
    {"autoregressive.text_padding", "tokens", "The same as _diffusion.text_padding_."},
    {"tokenizer.l1", "", "Weight of the absolute error of pixels. Pixels are in [-1, 1]."},
    {"tokenizer.l2", "", "Weight of the squared error."},
    {"data.frames", "frames",
     "Maximum frames of a window of a clip. A tokenizer takes 1 plus a multiple of "
     "_model.temporal_compression_ratio_."},
    {"data.size", "pixels",
     "Side of a square with the area of a window. For a tokenizer: side of the square that is cut "
     "out."},
    {"data.shorter_side", "pixels",
     "Shrink the shorter side of a picture to this length before the cut. 0: no shrinking."},
    {"data.fps", "frames a second", "Rate at which frames of a clip are taken. 0: all frames."},
    {"data.windows", "", "Maximum windows of a clip, each a sample. 0: all consecutive windows."},
    {"data.overlap", "frames", "Frames that a window shares with the next window."},
    {"data.crop", "",
     "Part of larger or longer clips: a random part in each epoch, or always the centre."},
    {"data.flip", "of samples",
     "Share of samples that are mirrored. Use 0 if captions mention left and right."},
    {"data.captions", "",
     "Caption columns. Each epoch takes one of the columns that the clip has. A column _NAME_ is "
     "the members _NAME.text.npy_ and _NAME.txt_, or _NAME_ in the json. The keys from "
     "_data.frames_ to _data.captions_ have no effect on latents."},
    {"data.tokens", "tokens",
     "Capacity of a pack. Each pack must have tokens for every rank of tp and cp. The tokens of a "
     "tokenizer are its latent pixels."},
    {"data.packs", "packs", "Packs of a step on all ranks together, best a multiple of dp."},
    {"data.window", "samples", "Samples from which packing chooses."},
    {"data.micro_packs", "packs",
     "Packs of one forward pass. Fewer packs save memory. 0: all packs of the rank."},
    {"data.folders", "",
     "Folders of data, if *--data* is not given. Folders may move, but their contents must not "
     "change."},
    {"data.weights", "",
     "For several folders, the proportions of their samples, such as [1000, 1]. An epoch has as "
     "many samples as all folders together."},
    {"data.repeats", "",
     "How often an epoch takes each of several folders. [1, 0.5] takes the first folder and half "
     "of the second folder. _data.weights_ and _data.repeats_ exclude each other. Default of both: "
     "each folder once."},
    {"data.ahead", "bytes",
     "Size of the samples that a rank reads ahead, to bridge pauses of the storage. From a bucket, "
     "as many more bytes are being fetched."},
    {"optimizer.kind", "",
     "How weights are updated. *adamw*: every element by itself. *muon*: a matrix that multiplies "
     "tokens in a block moves by its momentum made orthogonal, times 0.2 and the square root of "
     "its "
     "longer side. All other weights move by AdamW. *muon* trains no adapters and no tokenizers. A "
     "matrix that ranks share is gathered for its update. With _parallel.shard_ each rank computes "
     "other matrices; without it all ranks of dp and cp compute the same ones."},
    {"optimizer.lr", "", "Learning rate."},
    {"optimizer.beta1", "", "Decay of AdamW's first moment."},
    {"optimizer.beta2", "", "Decay of AdamW's second moment; at most 0.99 with bf16 moments."},
    {"optimizer.momentum", "", "Decay of Muon's momentum."},
    {"optimizer.eps", "",
     "Number added to the root of AdamW's second moment, and to the norm of Muon's momentum."},
    {"optimizer.weight_decay", "", "Decoupled decay. Norms and position tables have no decay."},
    {"optimizer.moments", "",
     "Type of AdamW's moments and of Muon's momentum. *bf16* halves their memory. *8bit* takes a "
     "quarter: moments of matrices are codes of 8 bits with a scale for 256 elements; vectors and "
     "tables keep f32, and Muon's momentum is bf16."},
    {"optimizer.clip", "", "Maximum norm of the gradient. 0: no limit."},
    {"optimizer.max_skips", "steps",
     "How many steps in a row may be skipped: their gradient is not finite, or see "
     "_train.skip_spikes_."},
    {"schedule.warmup", "steps", "Linear warm-up."},
    {"schedule.shape", "", "Shape of the learning rate after warm-up."},
    {"schedule.final", "", "Share of the learning rate that is left at the last step."},
    {"ema.mode", "",
     "Average of the weights. *decay*: with a constant decay, but at most (1+n)/(10+n) at update "
     "n. *power*: over a length that grows with the run."},
    {"ema.decay", "", "Decay of mode *decay*."},
    {"ema.length", "", "Length of mode *power*, as a relative standard deviation."},
    {"ema.every", "updates", "Updates between changes of the average."},
    {"ema.place", "", "Keep the average on the GPU or on the host."},
    {"validation.every", "steps", "Steps between validations. 0: no validation."},
    {"validation.samples", "samples",
     "Samples of a validation, taken evenly from the _val_ split, or from the training data if "
     "there is no such split. With several folders: this many from each folder."},
    {"validation.sigmas", "",
     "Noise levels of a validation. In flow matching they are times t, and the default is [0.1, "
     "0.3, 0.5, 0.7, 0.9]."},
    {"parallel.tp_chunks", "chunks",
     "Chunks of a product's rows. A rank sends one chunk along tp while it multiplies another. 0: "
     "the fastest number on a GPU that *--gpu* knows, otherwise 1. Rounding may differ."},
    {"parallel.cp_kind", "",
     "How the ranks of cp share attention. *gather*: each rank gets all keys and values. "
     "*all_to_all*: ranks exchange tokens for heads; cp must divide the heads. *ring*: keys and "
     "values pass from rank to rank. *auto*: *all_to_all* on one machine, *ring* between "
     "machines."},
    {"parallel.cp_heads", "ranks",
     "With *all_to_all+ring*: neighbours that exchange tokens for heads. 0: as many as possible."},
    {"parallel.hybrid", "",
     "Each rank of cp has whole frames. This at least halves the messages. If a pack has fewer "
     "frames than ranks, some ranks are idle."},
    {"parallel.vpp", "chunks",
     "Chunks into which a stage divides its blocks. The chunks take turns. With more chunks, "
     "stages wait less and send more."},
    {"parallel.ahead", "microbatches",
     "With one chunk a stage: how many more microbatches are under way between stages. This hides "
     "messages, but takes memory."},
    {"parallel.stages", "blocks",
     "Numbers of blocks in the pp times vpp chunks. []: about equal work."},
    {"parallel.reduce", "", "Type in which gradients are sent. Gradients are summed in f32."},
    {"parallel.shard", "",
     "Ranks of dp and cp share the state. *optimizer*: each rank has a part of moments, average, "
     "and the weights' low 16 bits. Messages do not grow. *full*: each rank also has a part of "
     "blocks and gradients. Blocks are gathered one by one, so a rank sends three times the "
     "weights in each pass."},
    {"parallel.replicate", "groups",
     "Groups of ranks. Each group has the whole state. Useful if links between machines are slow."},
    {"parallel.reshard", "",
     "With *full* in _parallel.shard_: *true* frees gathered blocks after use, *false* when the "
     "step ends. *auto*: *true* without a pipeline. In a pipeline a stage gathers its blocks once "
     "a step."},
    {"train.steps", "steps", "Length of the run or stage. Schedules depend on this length."},
    {"train.seed", "", "Seed of weights, order, noise and dropout."},
    {"train.checkpoint_every", "steps", "Steps between checkpoints."},
    {"train.checkpoint_minutes", "minutes",
     "A checkpoint is also saved when so many minutes have passed since the last one. 0: never."},
    {"train.keep", "checkpoints", "How many of the newest checkpoints are kept."},
    {"train.keep_every", "steps",
     "Checkpoints of multiples of so many steps are kept for ever. 0: none."},
    {"train.log_every", "steps", "Steps between lines of the logs."},
    {"train.compare_every", "steps",
     "Steps after which ranks that should have the same weights and state compare them; also "
     "before each checkpoint. If a rank differs, a message names it and its host, and the run "
     "ends. 0: never."},
    {"train.skip_spikes", "",
     "A step is skipped if its loss or gradient norm is over this many times the median of the "
     "last 100 steps that were not skipped. Skips are counted as those of "
     "_optimizer.max_skips_. 0: no such rule."},
    {"train.setup_limit", "seconds",
     "How long a rank waits for other ranks before the first step. After this time a message names "
     "the lost or slow rank and its host, and the run ends. 0: no limit."},
    {"train.step_limit", "seconds", "As _train.setup_limit_, for steps and validations."},
    {"train.checkpoint_limit", "seconds",
     "As _train.setup_limit_, for checkpoints and the report."},
    {"train.silent_limit", "seconds",
     "How long a rank may be silent: its process was stopped, or its host or link is down. After "
     "this time, at least 5 s, a message names it, and the run ends with status 5. After a few "
     "steps also the least wait for a rank that is late: three times the usual step, but at least "
     "_train.silent_limit_ and at most _train.step_limit_. While a checkpoint is being written, "
     "it is at least three times _train.silent_limit_. 0: neither."},
    {"train.peak_tflops", "TFLOP/s",
     "Peak of a rank's hardware, for _mfu_. 0: as in the data sheet of a known GPU, otherwise "
     "no _mfu_."},
};

}  // namespace

std::vector<KeyWords> key_words() {
  std::vector<KeyWords> all;
  for (const auto& [key, unit, words] : kWords)
    all.push_back({std::string(key), std::string(unit), std::string(words)});
  for (const models::Architecture* one : models::architectures())
    for (const models::FieldNote& note : one->notes) {
      std::string key = "model." + std::string(note.name);
      if (!note.words.empty() && std::ranges::find(all, key, &KeyWords::key) == all.end())
        all.push_back({std::move(key), std::string(note.unit), std::string(note.words)});
    }
  for (const dist::Axis& axis : dist::all_axes())
    if (axis.most > 0)
      all.push_back({"parallel." + std::string(axis.name), std::string(axis.unit),
                     std::string(axis.words)});
  return all;
}

}  // namespace vfm::train
