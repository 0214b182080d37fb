// Shape letters: T frames, H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/cost.h"

#include <algorithm>
#include <array>
#include <set>

#include "models/cosmos/autoencoder.h"
#include "ops/attention/frame_attention.h"

namespace vfm::models {
namespace {

constexpr double kFew = 64;  ///< channels: more, and oneDNN convolves a row at a time

/// A run over one chunk. Functions are named after the layers; `held` are bytes that their callers
/// keep alive meanwhile.
class Walk {
 public:
  /// `seen`: latent frames of earlier chunks. `last`: no chunk follows.
  Walk(const CosmosConfig& config, Device device, DType compute, std::int64_t seen, bool last)
      : config_(config),
        device_(device),
        compute_(compute),
        size_(static_cast<double>(dtype_size(compute))),
        seen_(seen),
        last_(last) {}

  void encode(std::int64_t frames, std::int64_t height, std::int64_t width);
  void decode(std::int64_t frames, std::int64_t height, std::int64_t width);

  double flops = 0;
  double peak = 0;      ///< bytes
  double planes = 0;    ///< of the pixels that it takes or makes
  double kept = 0;      ///< bytes of what streams keep; to begin with that of the chunk before
  double compiled = 0;  ///< bytes of the host's convolutions: kernels, and tables of their places

 private:
  double bytes(double channels, double lead = 0) const {
    return size_ * (frames_ + lead) * plane_ * channels;
  }
  void alive(double bytes) { peak = std::max(peak, kept + pixels_ + bytes); }
  /// The frames that a convolution looks back at: the first chunk adds them to what is kept, and
  /// the last one lets them go.
  void keep(double frames, double channels) {
    const double bytes = size_ * frames * plane_ * channels;
    kept += (seen_ == 0 ? bytes : 0) - (last_ ? bytes : 0);
  }
  /// `adds`: what it makes is added to a residual.
  void matrix(double in, double out, double taps, bool adds = false) {
    flops += 2 * frames_ * plane_ * in * out * taps;
    reordered_ = std::max(reordered_, size_ * in * out * taps);
    // oneDNN keeps each convolution that it has met: so much of its code, and tables with a kernel
    // for every number of places that one may be asked for at once. In 2.6 that is up to a row, but
    // where it makes few channels of nine places up to the whole plane: vectors of 256, 64, 64, 32
    // and 16 bytes a place. It is little beside the activations of a tokenizer of usual widths.
    if (taps > 1 && device_ == Device::cpu &&
        met_.insert({in, out, taps, plane_, adds ? 1.0 : 0.0}).second)
      compiled += 0.4 * (1 << 20) + (taps > 3 && out <= kFew ? 432 * plane_ : 0);
  }
  void projection(double in, double out, double held, bool adds = false);
  void resnet(double in, double out);
  void attention(double channels, bool along_time);
  void middle(double channels);
  void stage(int in, int out, int layers, int resolution);
  void downsample(double channels, bool time);
  void upsample(double channels, bool time);

  const CosmosConfig& config_;
  Device device_;
  DType compute_;
  double size_;
  std::int64_t seen_;
  bool last_;
  double pixels_ = 0;              // bytes of them that are there all the time
  double frames_ = 0, plane_ = 0;  // of what goes through
  double past_ = 0;                // frames of earlier chunks at this resolution
  double reordered_ = 0;           // weights as a convolution wants them: of the largest
  std::set<std::array<double, 5>> met_;
};

// The input goes when the first convolution is done; its result has two more frames.
void Walk::projection(double in, double out, double held, bool adds) {
  alive(held + bytes(in) + bytes(out, 2));
  matrix(in, out, 9);
  keep(2, out);
  alive(held + bytes(out, 2) + bytes(out));
  matrix(out, out, 3, adds);
}

void Walk::resnet(double in, double out) {
  const double x = bytes(in);
  projection(in, out, x);
  alive(x + 2 * bytes(out));  // the norm of what it made
  if (in == out) return projection(out, out, x, true);
  matrix(in, out, 1);
  projection(out, out, x + bytes(out), true);
}

// The input, its norm, queries, keys, values and the result; keys and values of a stream stay.
void Walk::attention(double channels, bool along_time) {
  const double x = bytes(channels);
  for (int i = 0; i < 4; ++i)
    matrix(channels, channels, 1);
  if (!along_time) {
    flops += 4 * frames_ * plane_ * plane_ * channels;
    const auto pixels = static_cast<std::int64_t>(plane_);
    alive(6 * x + ops::frame_attention_room(device_, compute_, pixels, pixels));
    return;
  }
  // Each frame sees itself and those before.
  const double pairs = frames_ * past_ + frames_ * (frames_ + 1) / 2;
  flops += 4 * pairs * plane_ * channels;
  kept += 2 * x;
  alive(4 * x);  // without keys and values
  if (last_) kept -= 2 * size_ * (past_ + frames_) * plane_ * channels;
}

void Walk::middle(double channels) {
  resnet(channels, channels);
  attention(channels, false);
  attention(channels, true);
  resnet(channels, channels);
}

void Walk::upsample(double channels, bool time) {
  if (time) {
    const double x = bytes(channels);
    const bool start = past_ == 0;
    frames_ = start ? 2 * frames_ - 1 : 2 * frames_;
    past_ = start ? 0 : 2 * past_ - 1;
    keep(2, channels);
    alive(x + bytes(channels, 2));
    alive(bytes(channels, 2) + bytes(channels));
    matrix(channels, channels, 3);
  }
  const double small = bytes(channels);
  plane_ *= 4;
  alive(small + bytes(channels));
  matrix(channels, channels, 9, true);
  alive(2 * bytes(channels));
  matrix(channels, channels, 1);
}

void Walk::downsample(double channels, bool time) {
  const double x = bytes(channels);
  plane_ /= 4;
  const double lead = time ? (past_ == 0 ? 2 : 1) : 0;
  double held = x + bytes(channels);  // with the mean of pixels
  alive(held + bytes(channels, lead));
  matrix(channels, channels, 9, true);
  if (time) {
    keep(1, channels);
    const double wide = bytes(channels, lead);
    frames_ = past_ == 0 ? (frames_ + 1) / 2 : frames_ / 2;
    past_ = past_ == 0 ? 0 : 1 + (past_ - 1) / 2;
    alive(held + wide + 2 * bytes(channels));
    matrix(channels, channels, 3, true);
  }
  alive(held + 2 * bytes(channels));
  matrix(channels, channels, 1);
}

void Walk::stage(int in, int out, int layers, int resolution) {
  const bool attends = std::ranges::find(config_.attention_resolutions, resolution) !=
                       config_.attention_resolutions.end();
  for (int layer = 0; layer < layers; ++layer) {
    resnet(layer == 0 ? in : out, out);
    if (!attends) continue;
    attention(out, false);
    attention(out, true);
  }
}

void Walk::encode(std::int64_t frames, std::int64_t height, std::int64_t width) {
  const CosmosConfig& c = config_;
  const double patch = c.patch_size, side = c.spatial_compression_ratio / patch;
  const double rate = c.temporal_compression_ratio / patch, made = static_cast<double>(frames);
  frames_ = seen_ == 0 ? 1 + (made - 1) * rate : made * rate;
  past_ = seen_ == 0 ? 0 : 1 + static_cast<double>(seen_ - 1) * rate;
  plane_ = static_cast<double>(height * width) * side * side;
  const double bands = c.in_channels * patch * patch * patch;
  const double pixel_frames = seen_ == 0 ? 1 + (frames_ - 1) * patch : frames_ * patch;
  planes = pixels_ = 4 * pixel_frames * plane_ * patch * patch * c.in_channels;
  const std::vector<int>& widths = c.encoder_block_out_channels;
  projection(bands, widths.front(), 0);
  int resolution = c.resolution / c.patch_size;
  for (int i = 0; i < c.encoder_blocks(); ++i, resolution /= 2) {
    const auto at = static_cast<std::size_t>(i);
    stage(widths[at], widths[at + 1], c.num_layers, resolution);
    if (c.halves_space(i)) downsample(widths[at + 1], c.halves_time(i));
  }
  middle(widths.back());
  alive(2 * bytes(widths.back()));  // the norm
  projection(widths.back(), c.z_channels, 0);
  matrix(c.z_channels, c.latent_channels, 1);
  peak += reordered_;
}

void Walk::decode(std::int64_t frames, std::int64_t height, std::int64_t width) {
  const CosmosConfig& c = config_;
  frames_ = static_cast<double>(frames);
  plane_ = static_cast<double>(height * width);
  past_ = static_cast<double>(seen_);
  const std::vector<int> widths(c.decode_block_out_channels.rbegin(),
                                c.decode_block_out_channels.rend());
  matrix(c.latent_channels, c.z_channels, 1);
  projection(c.z_channels, widths.front(), 0);
  middle(widths.front());
  int resolution = c.resolution / c.patch_size >> (widths.size() - 2);
  for (int i = 0; i < c.decoder_blocks(); ++i, resolution *= 2) {
    const auto at = static_cast<std::size_t>(i);
    stage(widths[at], widths[at + 1], c.num_layers + 1, resolution);
    if (c.doubles_space(i)) upsample(widths[at + 1], c.doubles_time(i));
  }
  const double last = widths.back(), patch = c.patch_size;
  const double bands = c.out_channels * patch * patch * patch;
  alive(2 * bytes(last));  // the norm
  projection(last, bands, 0);
  // Pixels are f32, in the order of the network and then in planes.
  planes = 4 * frames_ * plane_ * bands;
  alive(bytes(bands) + planes);
  peak += reordered_;
}

}  // namespace

PartCost cosmos_decode_cost(const CosmosConfig& config, std::int64_t frames, std::int64_t height,
                            std::int64_t width, std::int64_t step, Device device, DType compute) {
  PartCost cost =
      cosmos_cost(config, CosmosWork::decode, frames, height, width, step, device, compute);
  const CosmosAutoencoder model(config, 0, DType::bf16, Device::cpu, false);
  for (const nn::Parameter* parameter : model.parameters())
    cost.parameters += parameter->elements();
  return cost;
}

PartCost cosmos_cost(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                     std::int64_t height, std::int64_t width, std::int64_t step, Device device,
                     DType compute) {
  PartCost cost;
  double kept = 0;
  for (std::int64_t at = 0; at < frames; at += step) {
    Walk walk(config, device, compute, at, at + step >= frames);
    walk.kept = kept;
    if (work == CosmosWork::encode)
      walk.encode(std::min(step, frames - at), height, width);
    else
      walk.decode(std::min(step, frames - at), height, width);
    kept = walk.kept;
    cost.flops += walk.flops;
    cost.activation_bytes = std::max(cost.activation_bytes, walk.peak);
    cost.host_bytes = std::max(cost.host_bytes, 2 * walk.planes + walk.compiled);
  }
  return cost;
}

}  // namespace vfm::models
