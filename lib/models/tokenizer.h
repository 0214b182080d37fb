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

/// The configuration of a tokenizer, as latents.json and train.json hold it: all that is needed to
/// build the tokenizer again, on any device. Fields that are not given are empty.
struct TokenizerConfig {
  std::string name;  ///< "builtin:wavelet", "builtin:fsq", a class, or another program's name
  // Only for a tokenizer from a folder. `hash` is ModelFolder::hash() when latents were made;
  // `compute` is f32 or bf16.
  std::string path = {}, hash = {}, compute = {};
  std::vector<int> levels = {};  ///< only of builtin:fsq
  std::optional<std::int64_t> channels = {}, time_factor = {},
                              space_factor = {};  ///< of built-in ones
  std::string unknown = {};  ///< a key that is unknown for this name; make_tokenizer() refuses it

  /// Throws Error{usage} for an invalid configuration. For another program's tokenizer reads only
  /// name, path and hash.
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
  /// The same as encode(), for pixels that are RGB bytes: u8 [T, H, W, 3] on the tokenizer's device
  /// or the CPU. A pixel is byte / 127.5 - 1.
  virtual std::vector<float> encode_bytes(const Tensor& rgb) const;
  /// Returns the pixels of latents, up to the tokenizer's loss. `frames`, `height` and `width` are
  /// those of the latent.
  virtual std::vector<float> decode(std::span<const float> latents, int frames, int height,
                                    int width) const = 0;
  /// The same as decode(), but passes the frames to `sink` in pieces as they are ready.
  virtual void decode_stream(std::span<const float> latents, int frames, int height, int width,
                             const FrameSink& sink) const;
  /// decode_stream() by all ranks of a group. Each rank decodes some of the frames, or some of
  /// their rows, and `sink` of rank 0 gets them all. If `sink` throws, the exception is passed on
  /// after all is decoded. The pixels have the same bits as those of decode_stream(), except rows
  /// on a GPU or in bf16, which are equal up to rounding. If sharing does not pay, rank 0 decodes
  /// alone. A collective.
  virtual void decode_together(dist::Group& group, std::span<const float> latents, int frames,
                               int height, int width, const FrameSink& sink) const;

  /// Returns true if decode_together() is faster than one rank alone.
  virtual bool shares_decoding() const { return false; }

  /// Throws Error{usage} if encoding to a latent of this size, or decoding it on `ranks` ranks
  /// together, exceeds the memory limit of make_tokenizer().
  virtual void check_memory(bool encodes, int frames, int height, int width, int ranks) const;

  /// Returns the number of codes; 0 if the tokenizer is continuous.
  virtual int vocabulary() const { return 0; }
  /// Return the codes (t, h, w) of pixels, or of bytes as in encode_bytes(); the latent (C, t, h,
  /// w) that codes stand for; and the pixels of that latent. Throw Error if the tokenizer is
  /// continuous, or for a code that is not below vocabulary().
  virtual std::vector<std::int32_t> encode_codes(std::span<const float> pixels, int frames,
                                                 int height, int width) const;
  virtual std::vector<std::int32_t> codes_of_bytes(const Tensor& rgb) const;
  virtual std::vector<float> latent_of_codes(std::span<const std::int32_t> codes) const;
  std::vector<float> decode_codes(std::span<const std::int32_t> codes, int frames, int height,
                                  int width) const;

  /// Returns mean and deviation of the tokenizer's latents; nullopt if they must be measured.
  virtual std::optional<LatentScale> statistics() const { return std::nullopt; }
  virtual TokenizerConfig config() const = 0;

 protected:
  /// decode() from the pieces of decode_stream().
  std::vector<float> collect_frames(std::span<const float> latents, int frames, int height,
                                    int width) const;
};

/// Returns 10 log10(4 / mean square of the difference), in dB, between pixels in [-1, 1] and their
/// reconstruction `decoded`, which is first clamped to [-1, 1]. At most 60: 8 bits do not show
/// more.
double psnr(std::span<const float> pixels, std::span<const float> decoded);

/// Builds the tokenizer that `config` describes, which may be another tokenizer's config() or, for
/// example, {.name = "builtin:wavelet"}. It computes on `device`; pixels and latents are always on
/// the CPU. Device::meta is only for built-in tokenizers: see WaveletTokenizer. `memory` limits the
/// bytes of activations that a tokenizer from a folder takes for a video, and does not change the
/// result. 0: no limit. A built-in tokenizer has no activations and does not accept a limit. With
/// `ranks` this is a collective: the ranks read the folder together. Throws Error{usage} for an
/// unknown name or key, or without the device. If a GPU fails later, the tokenizer throws GpuError
/// (tensor/device.h).
std::unique_ptr<VideoTokenizer> make_tokenizer(const TokenizerConfig& config,
                                               Device device = Device::cpu,
                                               std::uint64_t memory = 0,
                                               const LoadingRanks& ranks = {});

/// Returns the configuration of the tokenizer that a user names: a built-in tokenizer, or the
/// folder of a network. `path` is then the absolute path of the folder (for a run, of its newest
/// checkpoint). Throws Error{usage} if the folder does not exist or is of another type.
TokenizerConfig tokenizer_config(const std::string& named);

/// Returns `config`, of a tokenizer whose folder is now at `folder`, with the new path. The hash
/// stays, so that another tokenizer is refused. Throws Error{usage} if `folder` does not hold a
/// tokenizer of the same type.
TokenizerConfig moved_tokenizer(TokenizerConfig config, const std::string& folder);

}  // namespace vfm::models
