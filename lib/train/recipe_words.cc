// What each key of a recipe means, in the words of vfm-recipe(5).
// SPDX-License-Identifier: Apache-2.0
#include "train/recipe_page.h"

namespace vfm::train {
namespace {

constexpr KeyWords kWords[] = {
    {"model.type", "",
     "*dit* is the diffusion transformer of Cosmos-1.0. *stdit* has three self-attentions in "
     "each block: within frames, in full, and over time at each position. *moviegen* is "
     "MovieGen-Llama: fewer key heads, SwiGLU, RMS norms, and learned positions at every layer. "
     "*autoregressive* predicts discrete latents code after code. *tokenizer* is a video "
     "tokenizer, which trains on clips."},
    {"model.in_channels", "", "Channels of the latents. 0: as in the data."},
    {"model.out_channels", "", "Channels that the network predicts. 0: as in the data."},
    {"model.text_embed_dim", "", "Width of text embeddings. 0: as in the data."},
    {"model.num_attention_heads", "heads",
     "Attention heads. Heads times _model.attention_head_dim_ is the width."},
    {"model.attention_head_dim", "", "Width of a head."},
    {"model.num_layers", "", "Blocks. For a tokenizer: layers at each resolution."},
    {"model.mlp_ratio", "", "Hidden width of the MLP, as a multiple of the width."},
    {"model.patch_size", "",
     "Latent frames, height and width of a token. For a tokenizer, one number: the side of its "
     "Haar patch in pixels."},
    {"model.max_size", "latent frames, rows, columns",
     "Size of the position tables. A next stage may increase it. Learned tables then get new "
     "rows, drawn as if the run had begun with them. With adapters the size cannot grow."},
    {"model.concat_padding_mask", "", "Add the padding mask as a channel, as Cosmos-1.0 does."},
    {"model.num_key_value_heads", "heads",
     "Heads of keys and values, a divisor of _model.num_attention_heads_. 0: the same number."},
    {"model.qk_norm", "",
     "RMS norms of queries and keys in both attentions, as in NeMo's DiT layer. All other types "
     "have such norms."},
    {"model.adaln", "",
     "How shift, scale and gate are computed from the noise level. *lora*: by two matrices with "
     "a small width between them, as in Cosmos. *full*: by one matrix, with many more "
     "parameters. diffusers cannot open a model with *full*."},
    {"model.adaln_lora_dim", "", "The small width of _model.adaln_ *lora*. With *full*: 0."},
    {"model.rope_scale", "", "Stretch of the rotary positions in time, height and width."},
    {"model.learnable_positions", "", "Add learned position tables to the rotary positions."},
    {"model.vocabulary", "codes", "Number of codes. 0: as in the data."},
    {"model.width", "", "Width of the residual stream. 0: heads times head width."},
    {"model.rope_theta", "", "Base of the rotary positions."},
    {"model.yarn_scale", "",
     "Factor by which YaRN stretches slow frequencies along time. 1: no YaRN."},
    {"model.yarn_frames", "latent frames",
     "YaRN counts the turns of a frequency over this many frames."},
    {"model.yarn_rows", "rows",
     "YaRN also stretches height and width, and counts turns over this many rows. 0: only time is "
     "stretched. Cosmos-1.0's 12B and 13B have scale 2, 3 frames and 40 rows."},
    {"model.yarn_betas", "turns", "The bounds of fast and of slow frequencies for YaRN."},
    {"model.start_token", "",
     "A start token comes before the first code. Without it the first code must be given, so "
     "the model only continues videos."},
    {"model.read_positions", "",
     "A token has the position of the code that it reads. With false it has the position of the "
     "code that it predicts, which needs a start token."},
    {"model.absolute_positions", "",
     "Add sinusoids of frame, row and column before each layer. Cosmos-1.0's 4B and 12B have "
     "_start_token_ false, _read_positions_ true and _absolute_positions_ false; its 5B and 13B "
     "have all three true."},
    {"model.latent_channels", "", "Channels of continuous latents."},
    {"model.z_channels", "", "Channels before and after quantisation."},
    {"model.levels", "",
     "Levels of finite scalar quantisation, as [8, 8, 8, 5, 5, 5]. []: continuous latents."},
    {"model.encoder_block_out_channels", "", "Channels of the encoder's blocks, as in diffusers."},
    {"model.decode_block_out_channels", "", "Channels of the decoder's blocks, as in diffusers."},
    {"model.attention_resolutions", "pixels", "Resolutions with attention, as in diffusers."},
    {"model.resolution", "pixels",
     "Input resolution to which _model.attention_resolutions_ refer, as in diffusers."},
    {"model.spatial_compression_ratio", "", "Pixels of a side that become one latent."},
    {"model.temporal_compression_ratio", "", "Frames that become one latent frame."},
    {"model.compute", "",
     "Type of matrix products and activations. Weights stay f32. With bf16 each weight is kept as "
     "two halves; the first half is the bf16 weight."},
    {"model.recompute", "",
     "Backward recomputes parts of forward, to save memory. *elementwise* recomputes norms and "
     "activations, in little time. *block* recomputes all but a block's input, for a third more "
     "time. *block_but_attention* also keeps the result of self-attention. *auto* takes the first "
     "value that fits the memory. Results do not change."},
    {"model.offload", "",
     "On a GPU, with recomputed blocks: keep the inputs of blocks in pinned memory of the host. "
     "*vfm-train cost* prints both amounts of memory. Such steps are not CUDA graphs. Results do "
     "not change."},
    {"lora.rank", "",
     "Rank of the adapters. 0: no adapters, all weights are trained. Adapters need *--init* or "
     "*--continue*."},
    {"lora.alpha", "", "The product of the adapters is scaled by alpha/rank. 0: by 1."},
    {"lora.targets", "",
     "Matrices that get adapters, by the last words of their names: _to_q_ in all attentions, "
     "_attn1.to_q_ in self-attention. []: the four projections of every attention."},
    {"diffusion.p_mean", "", "Mean of ln(sigma), the noise level of a sample."},
    {"diffusion.p_std", "", "Standard deviation of ln(sigma)."},
    {"diffusion.sigma_min", "", "Least sigma."},
    {"diffusion.sigma_max", "", "Greatest sigma."},
    {"diffusion.whitening", "",
     "How far the deviations of latent channels are made equal. 1: all equal. 0: as the tokenizer "
     "gives them. A model to begin from keeps its whitening."},
    {"diffusion.loss_scale", "", "Factor on the gradients."},
    {"diffusion.text_dropout", "of samples",
     "How often a sample trains without text, for guidance."},
    {"diffusion.scale_video_noise", "",
     "Multiply sigma of a video by the square root of its frames."},
    {"diffusion.condition_frames", "latent frames",
     "Video to world: how many first frames of a sample are given, each number equally often. "
     "Given frames do not count in the loss. A number above 0 adds a channel to the model. With "
     "0 in the list the model also makes clips from text alone."},
    {"diffusion.augment_p_mean", "", "Mean of ln(sigma) of given frames."},
    {"diffusion.augment_p_std", "", "Standard deviation of ln(sigma) of given frames."},
    {"diffusion.text_padding", "tokens",
     "Pad texts to this length with zero vectors. Cosmos-1.0 has 512. 0: no padding. "
     "*vfm-generate*(1) does the same with prompts."},
    {"sampling.steps", "", "Default steps of *vfm-generate*(1). 0: not set."},
    {"sampling.guidance", "", "Default guidance of *vfm-generate*(1). -1: not set."},
    {"sampling.sigma_min", "", "Default noise level at the end of sampling. 0: not set."},
    {"sampling.sigma_max", "", "Default noise level at the beginning of sampling. 0: not set."},
    {"autoregressive.z_loss", "", "Weight of the square of the logits' log-sum-exp."},
    {"autoregressive.text_dropout", "of samples", "How often a sample trains without text."},
    {"autoregressive.ignored_frames", "latent frames",
     "First frames of a video that do not count in the loss."},
    {"autoregressive.text_padding", "tokens", "As _diffusion.text_padding_."},
    {"tokenizer.l1", "", "Weight of the absolute error of pixels, which are in [-1, 1]."},
    {"tokenizer.l2", "", "Weight of the squared error."},
    {"data.frames", "frames",
     "Maximum frames of a window of a clip. A tokenizer takes 1 plus a multiple of "
     "_model.temporal_compression_ratio_."},
    {"data.size", "pixels",
     "A square with this side has the area of a window. For a tokenizer: side of the square "
     "that is cut out."},
    {"data.shorter_side", "pixels",
     "Shrink the shorter side of a picture to this before the cut. 0: no shrinking."},
    {"data.fps", "frames a second", "Rate at which frames of a clip are taken. 0: all."},
    {"data.windows", "",
     "Maximum windows of a clip, each a sample. 0: all that follow one another."},
    {"data.overlap", "frames", "Frames that a window shares with the next window."},
    {"data.crop", "",
     "Take a random part of larger or longer clips in each epoch, or always their centre."},
    {"data.flip", "of samples",
     "How often a clip is mirrored. Use 0 if captions mention left and right."},
    {"data.captions", "",
     "Caption columns. Each epoch takes one of the columns that the clip has. A column _NAME_ is "
     "the members _NAME.text.npy_ and _NAME.txt_, or _NAME_ in the json. The keys from "
     "_data.frames_ to _data.captions_ are for clips, and have no effect on latents."},
    {"data.tokens", "tokens",
     "Capacity of a pack. Each pack must have tokens for every rank of tp and cp. A tokenizer's "
     "tokens are its latent pixels."},
    {"data.packs", "packs", "Packs of a step over all ranks, best a multiple of dp."},
    {"data.window", "samples", "Packing chooses among this many samples."},
    {"data.micro_packs", "packs",
     "Packs of one forward pass. Fewer packs save memory. 0: all packs of the rank."},
    {"data.folders", "",
     "Folders of data, if *--data* is not given. They may move, but not change."},
    {"data.weights", "",
     "For several folders, the proportion of the samples of each, as [1000, 1]. An epoch has as "
     "many samples as all folders together."},
    {"data.repeats", "",
     "How often each of several folders comes in an epoch. [1, 0.5] takes all of the first and "
     "half of the second. Give weights or repeats. With neither, each folder comes once."},
    {"data.ahead", "bytes", "Samples that a rank reads ahead, to bridge pauses of the storage."},
    {"optimizer.lr", "", "Learning rate of AdamW."},
    {"optimizer.beta1", "", "Decay of AdamW's first moment."},
    {"optimizer.beta2", "", "Decay of AdamW's second moment; at most 0.99 with bf16 moments."},
    {"optimizer.eps", "", "Added to the root of the second moment."},
    {"optimizer.weight_decay", "", "Decoupled decay. Norms and position tables have none."},
    {"optimizer.moments", "", "Type of the moments. bf16 halves their memory."},
    {"optimizer.clip", "", "Largest norm of the gradient. 0: no limit."},
    {"optimizer.max_skips", "steps",
     "How many steps in a row may be skipped because the gradient is not finite."},
    {"schedule.warmup", "steps", "Linear warm-up."},
    {"schedule.shape", "", "Shape of the learning rate after warm-up."},
    {"schedule.final", "", "Share of the learning rate that is left at the last step."},
    {"ema.mode", "",
     "Average of the weights. *decay*: with a constant decay, but at most (1+n)/(10+n) at update "
     "n. *power*: over a length in proportion to the run."},
    {"ema.decay", "", "Decay of mode *decay*."},
    {"ema.length", "", "Relative standard deviation of mode *power*."},
    {"ema.every", "updates", "Updates between changes of the average."},
    {"ema.place", "", "Keep the average on the GPU or on the host."},
    {"validation.every", "steps", "Steps between validations. 0: no validation."},
    {"validation.samples", "samples",
     "Samples of a validation, taken evenly from the _val_ split, or from the training data if "
     "there is no such split. With several folders: this many from each."},
    {"validation.sigmas", "", "Noise levels of a validation."},
    {"parallel.tp", "ranks", "Ranks that share heads and widths; a divisor of the heads."},
    {"parallel.tp_chunks", "chunks",
     "Each rank sends rows of a product along tp in this many chunks, while other chunks are "
     "multiplied. 0: the fastest number on a GPU that *--gpu* knows, else 1. Rounding may differ."},
    {"parallel.cp", "ranks", "Ranks that share the tokens of a sample."},
    {"parallel.cp_kind", "",
     "How the ranks of cp share attention. *gather*: each rank gets all keys and values. "
     "*all_to_all*: ranks exchange tokens for heads; cp must divide the heads. *ring*: keys and "
     "values pass from rank to rank. *auto*: *all_to_all* on one machine, *ring* between machines. "
     "Type *stdit* takes only *all_to_all* without _parallel.hybrid_. *autoregressive* takes only "
     "*all_to_all* or *gather*."},
    {"parallel.cp_heads", "ranks",
     "With *all_to_all+ring*: how many neighbours exchange tokens for heads. 0: as many as "
     "possible."},
    {"parallel.hybrid", "",
     "Each rank of cp has whole frames. This at least halves what ranks send. If a pack has "
     "fewer frames than ranks, some ranks are idle."},
    {"parallel.pp", "stages",
     "Stages of a pipeline, each with some of the blocks. Not for type *tokenizer*."},
    {"parallel.vpp", "chunks",
     "Chunks of blocks of a stage, computed by turns. With more chunks, stages wait less and "
     "send more."},
    {"parallel.ahead", "microbatches",
     "With one chunk: how many more microbatches are under way between stages. This hides "
     "messages, but takes memory."},
    {"parallel.stages", "blocks",
     "Numbers of blocks of the pp times vpp chunks. []: about equal work."},
    {"parallel.reduce", "", "Type in which gradients are sent. They are summed in f32."},
    {"parallel.shard", "",
     "Ranks of dp and cp share the state. *optimizer*: each rank has a part of moments, average "
     "and low halves of weights. Messages do not grow. *full*: each rank also has a part of the "
     "blocks and gradients. Blocks are gathered one by one, so a rank sends three times the "
     "weights in each pass."},
    {"parallel.replicate", "groups",
     "Number of groups of ranks that each keep the whole state. Useful if links between "
     "machines are slow."},
    {"parallel.reshard", "",
     "With _parallel.shard_ *full*: free blocks after use. *false*: keep them until the step "
     "ends. *auto*: true without a pipeline. In a pipeline a stage gathers its blocks once a "
     "step."},
    {"train.steps", "steps", "Length of the run, or of the stage. Schedules depend on it."},
    {"train.seed", "", "Seed of weights, order, noise and dropout."},
    {"train.checkpoint_every", "steps", "Steps between checkpoints."},
    {"train.keep", "checkpoints", "How many of the newest checkpoints are kept."},
    {"train.log_every", "steps", "Steps between lines of the logs."},
    {"train.setup_limit", "seconds",
     "How long a rank waits for others before the first step. 0: for ever. After this time a "
     "message names the lost or slow rank and its host, and the run ends."},
    {"train.step_limit", "seconds", "The same limit in steps and validations."},
    {"train.checkpoint_limit", "seconds",
     "The same limit while a checkpoint or the report is written."},
    {"train.peak_tflops", "TFLOP/s",
     "Peak of a rank's hardware, for _mfu_. 0: the data sheet of a known GPU, else no _mfu_."},
};

}  // namespace

std::span<const KeyWords> key_words() {
  return kWords;
}

}  // namespace vfm::train
