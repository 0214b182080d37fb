// Video tokenizers: pixels to latents and back, causal in time (the first frame stands alone, then
// groups of `time_factor` frames), so an image is a one-frame video and 1 + k*time_factor frames
// make 1 + k latent frames.
// Thread-safety: const members from any thread. On a GPU they take turns there; nothing else may
// use the GPU meanwhile (tensor/device.h: one thread drives it).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "dist/group.h"
#include "models/folder/load_together.h"
#include "models/process/latent_scale.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// Which tokenizer, as latents.json and train.json hold it: all that is needed to build it again,
/// on any device. What is not said is empty.
struct TokenizerConfig {
  std::string name;  ///< "builtin:wavelet", "builtin:fsq", a class name, or another program's
  // Of one from a folder: this, what ModelFolder::hash() was when latents were made, f32 or bf16.
  std::string path = {}, hash = {}, compute = {};
  std::vector<int> levels = {};  ///< of builtin:fsq
  std::optional<std::int64_t> channels = {}, time_factor = {},
                              space_factor = {};  ///< of built-in ones
  std::string unknown = {};  ///< a key that no tokenizer of the name has: make_tokenizer refuses it

  /// Throws Error{usage}. Of another program's tokenizer only name, path and hash are read.
  static TokenizerConfig from_json(const Json& json);
  Json to_json() const;
  bool operator==(const TokenizerConfig&) const = default;
};

/// Pixels: float RGB in [-1, 1], planar (3, T, H, W), T = 1 + k*time_factor, H and W multiples of
/// space_factor. Latents: float (C, t, h, w). A discrete tokenizer also makes codes: one of
/// vocabulary() numbers for each of (t, h, w), which stands for C values of a latent.
class VideoTokenizer {
 public:
  /// Takes the next `frames` frames, planar (3, frames, H, W).
  using FrameSink = std::function<void(std::span<const float> pixels, int frames)>;

  virtual ~VideoTokenizer() = default;
  std::string name() const { return config().name; }
  virtual int channels() const = 0;
  virtual int time_factor() const = 0;
  virtual int space_factor() const = 0;
  virtual std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                                    int width) const = 0;
  /// encode() of pixels that are bytes of RGB, u8 [T, H, W, 3] on the tokenizer's device or the
  /// CPU, each byte / 127.5 - 1: to the same latents.
  virtual std::vector<float> encode_bytes(const Tensor& rgb) const;
  /// The pixels of latents, up to the tokenizer's loss; `frames`, `height`, `width` of the latent.
  virtual std::vector<float> decode(std::span<const float> latents, int frames, int height,
                                    int width) const = 0;
  /// decode(), the frames handed over in pieces as they are ready.
  virtual void decode_stream(std::span<const float> latents, int frames, int height, int width,
                             const FrameSink& sink) const;
  /// decode_stream() by all ranks of a group: each has some of the frames, or of their rows, and
  /// all come to `sink` of rank 0. What that throws passes when all is decoded. To the same bits;
  /// but of rows on a GPU or in bf16 to rounding. Where that does not pay, rank 0 alone works. A
  /// collective.
  virtual void decode_together(dist::Group& group, std::span<const float> latents, int frames,
                               int height, int width, const FrameSink& sink) const;

  /// Whether it pays that ranks decode_together().
  virtual bool shares_decoding() const { return false; }

  /// Throws Error{usage} if a latent of this size cannot be made, or be decoded by so many ranks
  /// together, within the limit of make_tokenizer().
  virtual void check_memory(bool encodes, int frames, int height, int width, int ranks) const;

  /// How many codes there are; 0: the tokenizer is continuous, and has none.
  virtual int vocabulary() const { return 0; }
  /// Codes (t, h, w) of pixels, also of bytes as encode_bytes() takes them; the latent (C, t, h, w)
  /// that codes stand for; and its pixels. Throw Error if the tokenizer is continuous, or for a
  /// code that is not below vocabulary().
  virtual std::vector<std::int32_t> encode_codes(std::span<const float> pixels, int frames,
                                                 int height, int width) const;
  virtual std::vector<std::int32_t> codes_of_bytes(const Tensor& rgb) const;
  virtual std::vector<float> latent_of_codes(std::span<const std::int32_t> codes) const;
  std::vector<float> decode_codes(std::span<const std::int32_t> codes, int frames, int height,
                                  int width) const;

  /// Mean and deviation of its latents where it knows them; else they are to be measured.
  virtual std::optional<LatentScale> statistics() const { return std::nullopt; }
  virtual TokenizerConfig config() const = 0;
};

/// 10 log10(4 / mean square of the difference), in dB, of pixels as above and what became of them,
/// which is clamped to [-1, 1] first. At most 60: 8 bits do not show more.
double psnr(std::span<const float> pixels, std::span<const float> decoded);

/// Builds what `config` describes, from config() or such as {.name = "builtin:wavelet"}, to compute
/// on `device`; pixels and latents are on the CPU all the same. Device::meta is for builtin ones:
/// see WaveletTokenizer. Throws Error{usage} for an unknown
/// name or key, or without the device. Later a GPU that fails throws GpuError (tensor/device.h).
/// `memory`: bytes of activations that one from a folder may take for a video, to the same result;
/// 0: no limit. A builtin one has no activations, and takes no limit. With `ranks` it is a
/// collective: they read the folder together.
std::unique_ptr<VideoTokenizer> make_tokenizer(const TokenizerConfig& config,
                                               Device device = Device::cpu,
                                               std::uint64_t memory = 0,
                                               const LoadingRanks& ranks = {});

/// The configuration of what a user names: a built-in tokenizer, or the folder of a network, whose
/// absolute path it has (of a run, that of its newest checkpoint). Throws Error{usage}: no such
/// folder, or of another type.
TokenizerConfig tokenizer_config(const std::string& named);

/// `config`, of a tokenizer from a folder, with that folder now at `folder`; its hash stays, so
/// that another tokenizer is refused. Throws Error{usage} if `folder` holds none of the same type.
TokenizerConfig moved_tokenizer(TokenizerConfig config, const std::string& folder);

}  // namespace vfm::models
