// What each key of a recipe means, in the words of vfm-recipe(5).
// SPDX-License-Identifier: Apache-2.0
#include "train/recipe_page.h"

namespace vfm::train {
namespace {

constexpr KeyWords kWords[] = {
    {"model.type", "",
     "Type *dit* is the diffusion transformer of Cosmos-1.0. Type *stdit* has three "
     "self-attentions a block: within frames, in full, and within pixels over time. Type "
     "*moviegen* is MovieGen-Llama: fewer key heads, SwiGLU, RMS norms, learned positions at every "
     "layer. Type *autoregressive* writes discrete latents code after code. Type *tokenizer* is a "
     "video tokenizer, which trains on clips."},
    {"model.in_channels", "", "Channels of the latents. 0: as in the data."},
    {"model.out_channels", "", "Channels that the network predicts. 0: as in the data."},
    {"model.text_embed_dim", "", "Width of text embeddings. 0: as in the data."},
    {"model.num_attention_heads", "heads",
     "Attention heads. The width is heads times _model.attention_head_dim_."},
    {"model.attention_head_dim", "", "Width of a head."},
    {"model.num_layers", "", "Blocks; of a tokenizer, layers at each resolution."},
    {"model.mlp_ratio", "", "Hidden width of the MLP, as a multiple of the width."},
    {"model.patch_size", "",
     "Latent frames, height and width of a token. A tokenizer has one number: the pixels of its "
     "Haar patch."},
    {"model.max_size", "latent frames, rows, columns",
     "Size of the position tables. In a stage it may grow: learned tables get more rows, drawn as "
     "if the run had begun with them. Under adapters it cannot grow."},
    {"model.concat_padding_mask", "", "Add the padding mask as a channel, as Cosmos-1.0."},
    {"model.num_key_value_heads", "heads",
     "Heads of keys and values; a divisor of the heads. 0: as many as heads."},
    {"model.qk_norm", "",
     "RMS norms of queries and keys in both attentions, as NeMo's DiT layer has them. The other "
     "types always have them."},
    {"model.adaln", "",
     "How the noise level makes shift, scale and gate. *lora*: by two matrices with a small width "
     "between them, as Cosmos. *full*: by one, with many more parameters; diffusers cannot open "
     "such a model."},
    {"model.adaln_lora_dim", "", "The width between these two matrices. With *full*: 0."},
    {"model.rope_scale", "", "Stretch of the rotary positions in time, height and width."},
    {"model.learnable_positions", "", "Learned position tables beside rotary positions."},
    {"model.vocabulary", "codes", "How many codes there are. 0: as in the data."},
    {"model.width", "",
     "Width of the residual stream, where it is not heads times head width. 0: that."},
    {"model.rope_theta", "", "Base of the rotary positions."},
    {"model.yarn_scale", "", "YaRN's stretch of slow frequencies along time. 1: none."},
    {"model.yarn_frames", "latent frames", "Over this many, YaRN counts turns."},
    {"model.yarn_rows", "rows",
     "Stretch height and width too, and count turns over this many. 0: time alone. Cosmos-1.0's "
     "12B and 13B have a scale of 2, 3 frames and 40 rows."},
    {"model.yarn_betas", "turns", "YaRN's bounds, the fast one first."},
    {"model.start_token", "",
     "A token of its own stands before the first code. Without one the first code is always given: "
     "the model only continues videos."},
    {"model.read_positions", "",
     "A token has the position of the code that it reads. Else it has that of the code that it "
     "writes, which needs a start token."},
    {"model.absolute_positions", "",
     "Sinusoids of frame, row and column before each layer. Start token, read and absolute "
     "positions are false, true, false in Cosmos-1.0's 4B and 12B, and true in its 5B and 13B."},
    {"model.latent_channels", "", "Channels of continuous latents."},
    {"model.z_channels", "", "Channels that go in and out of the quantisation."},
    {"model.levels", "",
     "Levels of finite scalar quantisation, as [8, 8, 8, 5, 5, 5]. []: continuous latents."},
    {"model.encoder_block_out_channels", "", "Channels of the encoder's blocks, as in diffusers."},
    {"model.decode_block_out_channels", "", "Channels of the decoder's blocks, as in diffusers."},
    {"model.attention_resolutions", "pixels", "Resolutions that have attention, as in diffusers."},
    {"model.resolution", "pixels", "Resolution that these are relative to, as in diffusers."},
    {"model.spatial_compression_ratio", "", "Pixels of a side that become one latent."},
    {"model.temporal_compression_ratio", "", "Frames that become one latent frame."},
    {"model.compute", "",
     "Type of matrix products and activations. Weights stay f32; with bf16 they are kept as two "
     "halves, the first of which is the bf16 weight."},
    {"model.recompute", "",
     "Backward computes parts of forward again, to keep less. With *elementwise* it is norms and "
     "activations, at little time. With *block* it is all but the input, for a third more time. "
     "With *block_but_attention* the result of self-attention stays. The default is the first that "
     "fits the memory. Results are the same to the bit."},
    {"model.offload", "",
     "On a GPU, with recomputed blocks: the inputs of blocks wait in pinned memory of the host. "
     "*vfm-train cost* tells both memories. Such steps are not CUDA graphs. Results are the same "
     "to the bit."},
    {"lora.rank", "",
     "Rank of the adapters. 0: none, all weights are trained. Needs *--init* or *--continue*."},
    {"lora.alpha", "", "The product of the adapters is scaled by alpha/rank. 0: by 1."},
    {"lora.targets", "",
     "Matrices that get adapters, by name or last words: _to_q_ in all attentions, _attn1.to_q_ in "
     "self-attention. []: the four projections of every attention."},
    {"diffusion.p_mean", "", "Mean of ln(sigma), the noise level of a sample."},
    {"diffusion.p_std", "", "Standard deviation of ln(sigma)."},
    {"diffusion.sigma_min", "", "Least sigma."},
    {"diffusion.sigma_max", "", "Greatest sigma."},
    {"diffusion.whitening", "",
     "How far latent channels are brought to one deviation. 1: all alike. 0: as the tokenizer has "
     "them. A model to begin from keeps its own."},
    {"diffusion.loss_scale", "", "Factor on the gradients."},
    {"diffusion.text_dropout", "of samples",
     "How often a sample trains without text, for guidance."},
    {"diffusion.scale_video_noise", "", "Multiply sigma of a video by the root of its frames."},
    {"diffusion.condition_frames", "latent frames",
     "Video to world: how many first frames a sample is given, each number equally often. They do "
     "not count in the loss. A number above 0 adds a channel to the model. With 0 in the list the "
     "model also makes clips from text alone."},
    {"diffusion.augment_p_mean", "", "Mean of ln of the noise level of given frames."},
    {"diffusion.augment_p_std", "", "Standard deviation of ln of that noise level."},
    {"diffusion.text_padding", "tokens",
     "Fill texts up to this length with zero vectors, as Cosmos-1.0 with 512. 0: do not. "
     "*vfm-generate*(1) does the same with prompts."},
    {"sampling.steps", "", "Steps that *vfm-generate*(1) takes by default. 0: not said."},
    {"sampling.guidance", "", "Its guidance by default. -1: not said."},
    {"sampling.sigma_min", "", "Noise level at which its sampling ends by default. 0: not said."},
    {"sampling.sigma_max", "", "Noise level at which its sampling begins by default. 0: not said."},
    {"autoregressive.z_loss", "", "Weight of the square of the logits' log-sum-exp."},
    {"autoregressive.text_dropout", "of samples", "How often a sample trains without text."},
    {"autoregressive.ignored_frames", "latent frames",
     "First frames of a video that do not count in the loss."},
    {"autoregressive.text_padding", "tokens", "As _diffusion.text_padding_."},
    {"tokenizer.l1", "", "Weight of the absolute error of pixels, which are in [-1, 1]."},
    {"tokenizer.l2", "", "Weight of the squared error."},
    {"data.frames", "frames",
     "Most frames of a window of a clip. A tokenizer takes 1 + k times "
     "_model.temporal_compression_ratio_ of them."},
    {"data.size", "pixels",
     "Side of the square whose area a window has; of a tokenizer: of the square that is cut out."},
    {"data.shorter_side", "pixels",
     "Shrink the shorter side of a picture to this before the cut. 0: do not."},
    {"data.fps", "frames a second", "Rate at which frames of a clip are taken. 0: all."},
    {"data.windows", "", "Most windows of a clip, each a sample. 0: all that follow one another."},
    {"data.overlap", "frames", "Frames that a window has in common with the next."},
    {"data.crop", "",
     "Take a random part of a larger or longer clip in each epoch, or its centre."},
    {"data.flip", "of samples",
     "How often a clip is mirrored. Not for captions that name left and right."},
    {"data.captions", "",
     "Caption columns; each epoch takes one that the clip has. A column _NAME_ is the members "
     "_NAME.text.npy_ and _NAME.txt_, or _NAME_ in the json. With "
     "latents, _data.frames_ to _data.captions_ do nothing: they are for *--tokenizer*."},
    {"data.tokens", "tokens",
     "Capacity of a pack. Each pack has some for every rank of tp and cp. A tokenizer's tokens are "
     "its latent pixels."},
    {"data.packs", "packs", "Packs of a step, over all ranks: a multiple of the dp groups."},
    {"data.window", "samples", "Samples that packing looks at."},
    {"data.micro_packs", "packs", "Packs of one forward, to save memory. 0: all of the rank."},
    {"data.folders", "",
     "Folders of data, where *--data* is not given. They may move, but not change."},
    {"data.weights", "",
     "A number for each of several folders: the proportion of its samples, as [1000, 1]. An epoch "
     "has as many samples as all folders."},
    {"data.repeats", "",
     "How often each of several folders comes in an epoch. [1, 0.5] takes all of the first and "
     "half of the second. Give weights or repeats; with neither each comes once."},
    {"data.ahead", "bytes",
     "Samples that a rank reads before their step. This bridges a store that stands still."},
    {"optimizer.lr", "", "Learning rate of AdamW."},
    {"optimizer.beta1", "", "Decay of its first moment."},
    {"optimizer.beta2", "", "Decay of its second moment; up to 0.99 with bf16 moments."},
    {"optimizer.eps", "", "Added to the root of the second moment."},
    {"optimizer.weight_decay", "", "Decoupled decay. Norms and position tables have none."},
    {"optimizer.moments", "", "Type of the moments. bf16 halves their memory."},
    {"optimizer.clip", "", "Largest norm of the gradient. 0: no limit."},
    {"optimizer.max_skips", "steps",
     "Steps in a row that may be skipped for a gradient that is not finite."},
    {"schedule.warmup", "steps", "Linear warm-up."},
    {"schedule.shape", "", "The learning rate after it."},
    {"schedule.final", "", "Part of the rate that is left at the last step."},
    {"ema.mode", "",
     "Average of the weights. *decay*: approached as (1+n)/(10+n). *power*: of a relative length."},
    {"ema.decay", "", "The decay of *decay*."},
    {"ema.length", "", "The relative deviation of *power*."},
    {"ema.every", "updates", "Updates from one change of the average to the next."},
    {"ema.place", "", "The average is in the memory of the GPU, or of the host."},
    {"validation.every", "steps", "From one validation to the next. 0: none."},
    {"validation.samples", "samples",
     "Taken evenly from the _val_ split, or of the training data where there is none; of each "
     "folder as many."},
    {"validation.sigmas", "", "Noise levels."},
    {"parallel.tp", "ranks", "Ranks that share heads and widths; a divisor of the heads."},
    {"parallel.tp_chunks", "chunks",
     "Rows of a product travel along tp in this many chunks a rank, while others are multiplied. "
     "0: the fastest on a GPU of *--gpu*, else 1. Rounding may differ."},
    {"parallel.cp", "ranks", "Ranks that share the tokens of a sample."},
    {"parallel.cp_kind", "",
     "How the ranks of cp share attention. With *gather* each gets all keys and values. With "
     "*all_to_all* they exchange tokens for heads, which cp must divide. With *ring* keys and "
     "values go round. The default exchanges tokens for heads on one machine, and has a ring "
     "between machines. Type *stdit* takes *all_to_all* unless _parallel.hybrid_; *autoregressive* "
     "takes it or *gather*."},
    {"parallel.cp_heads", "ranks",
     "With *all_to_all+ring*: neighbours that exchange tokens for heads. 0: as many as can."},
    {"parallel.hybrid", "",
     "The parts of cp end at frames. Ranks exchange half as much or less. A pack with fewer frames "
     "than ranks leaves some idle."},
    {"parallel.pp", "stages",
     "Stages of a pipeline, each with some of the blocks. Not of a tokenizer."},
    {"parallel.vpp", "chunks",
     "Chunks of blocks that a stage has, by turns. More of them wait less and send more."},
    {"parallel.ahead", "microbatches",
     "With one chunk: how many more are under way at a boundary, to hide messages for more "
     "memory."},
    {"parallel.stages", "blocks",
     "Blocks of each of pp times vpp chunks. []: about the same work in each."},
    {"parallel.reduce", "", "Type in which gradients travel. They are summed in f32."},
    {"parallel.shard", "",
     "Ranks of dp and cp share the state. With *optimizer* each has a part of moments, average and "
     "low halves of weights, at no more traffic. With *full* each also has a part of the blocks "
     "and gradients. They are gathered block by block, so a rank sends three times the weights a "
     "pass."},
    {"parallel.replicate", "groups",
     "Groups of ranks that each keep the whole state, as machines with slow links do."},
    {"parallel.reshard", "",
     "With *full*: free blocks after use. *false*: keep them until the step ends. *auto*: true "
     "without a pipeline; a stage of a pipeline gathers its blocks once a step."},
    {"train.steps", "steps", "Length of the run, or of the stage. Schedules depend on it."},
    {"train.seed", "", "Seed of weights, order, noise and dropout."},
    {"train.checkpoint_every", "steps", "From one checkpoint to the next."},
    {"train.keep", "checkpoints", "Newest checkpoints that stay."},
    {"train.log_every", "steps", "From one line of the logs to the next."},
    {"train.setup_limit", "seconds",
     "How long a rank waits for others before the first step. 0: for ever. A rank that is lost or "
     "slower is named with its host, and the run ends."},
    {"train.step_limit", "seconds", "The same in steps and validations."},
    {"train.checkpoint_limit", "seconds", "The same while a checkpoint or the report is written."},
    {"train.peak_tflops", "TFLOP/s",
     "Peak of a rank's hardware, for _mfu_. 0: the data sheet of a known GPU, else no _mfu_."},
};

}  // namespace

std::span<const KeyWords> key_words() {
  return kWords;
}

}  // namespace vfm::train
