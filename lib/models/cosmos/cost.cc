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

/// The decoder's run over one chunk. Functions are named after the layers; `held` are bytes that
/// their callers keep alive meanwhile.
class Walk {
 public:
  Walk(const CosmosConfig& config, Device device, DType compute, std::int64_t seen)
      : config_(config),
        device_(device),
        compute_(compute),
        size_(static_cast<double>(dtype_size(compute))),
        seen_(seen) {}

  void decode(std::int64_t frames, std::int64_t height, std::int64_t width);

  double flops = 0;
  double peak = 0;               ///< bytes, besides what streams keep
  double planes = 0;             ///< of the pixels that it makes
  double history = 0, keys = 0;  ///< bytes that convolutions keep, and that keys and values grow by
  double compiled = 0;  ///< bytes of the host's convolutions: kernels, and tables of their places

 private:
  double bytes(double channels, double lead = 0) const {
    return size_ * (frames_ + lead) * plane_ * channels;
  }
  void alive(double bytes) { peak = std::max(peak, bytes); }
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
  void upsample(double channels, bool time);

  const CosmosConfig& config_;
  Device device_;
  DType compute_;
  double size_;
  std::int64_t seen_;              // latent frames of earlier chunks
  double frames_ = 0, plane_ = 0;  // of what goes through
  double past_ = 0;                // frames of earlier chunks at this resolution
  double reordered_ = 0;           // weights as a convolution wants them: of the largest
  std::set<std::array<double, 5>> met_;
};

// The input goes when the first convolution is done; its result has two more frames.
void Walk::projection(double in, double out, double held, bool adds) {
  alive(held + bytes(in) + bytes(out, 2));
  matrix(in, out, 9);
  history += 2 * size_ * plane_ * out;
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
  keys += 2 * x;
  alive(4 * x);  // without keys and values
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
    history += 2 * size_ * plane_ * channels;
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
  for (int i = 0; i < c.decoder_blocks(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double in = widths[at], out = widths[at + 1];
    const bool attends =
        std::ranges::find(c.attention_resolutions, resolution) != c.attention_resolutions.end();
    for (int layer = 0; layer < c.num_layers + 1; ++layer) {
      resnet(layer == 0 ? in : out, out);
      if (!attends) continue;
      attention(out, false);
      attention(out, true);
    }
    if (c.doubles_space(i)) upsample(out, c.doubles_time(i));
    resolution *= 2;
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
  PartCost cost;
  const CosmosAutoencoder model(config, 0, DType::bf16, Device::cpu, false);
  for (const nn::Parameter* parameter : model.parameters())
    cost.parameters += parameter->elements();
  double keys = 0;
  for (std::int64_t at = 0; at < frames; at += step) {
    Walk walk(config, device, compute, at);
    walk.decode(std::min(step, frames - at), height, width);
    keys += walk.keys;
    cost.flops += walk.flops;
    cost.activation_bytes = std::max(cost.activation_bytes, walk.peak + walk.history + keys);
    cost.host_bytes = std::max(cost.host_bytes, 2 * walk.planes + walk.compiled);
  }
  return cost;
}

}  // namespace vfm::models
