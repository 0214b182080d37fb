// The walk is that of autoencoder.cc and blocks.cc, with counts for tensors.
// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/training_cost.h"

#include <algorithm>
#include <cstddef>

namespace vfm::models {
namespace {

class Walk {
 public:
  Walk(double frames, double rows, double columns, double bytes, bool recompute)
      : t(frames), h(rows), w(columns), bytes_(bytes), recompute_(recompute) {}

  double t, h, w;  // of what goes on from here
  double parameters = 0, flops = 0, kept = 0;
  double largest_block = 0;  // of what is recomputed

  /// (1,3,3) and then (3,1,1), which sees two frames more.
  void projection(double in, double out) {
    convolve(in, out, 9, 2);
    convolve(out, out, 3);
  }
  void norm(double channels) {
    parameters += 2 * channels;
    keep(channels);
  }
  void resnet(double in, double out) {
    const double before = kept;
    norm(in);
    projection(in, out);
    norm(out);
    projection(out, out);
    if (in != out) convolve(in, out, 1);
    end_block(before, out);
  }
  void attention(double channels) {  // in each frame, and along time
    for (const double keys : {h * w, (t + 1) / 2}) {
      const double before = kept;
      norm(channels);
      for (int i = 0; i < 4; ++i)  // q, k, v, out
        convolve(channels, channels, 1);
      keep(channels);
      flops += 4 * t * h * w * keys * channels;
      end_block(before, channels);
    }
  }
  void stage(int in, int out, int layers, bool attends) {
    for (int i = 0; i < layers; ++i) {
      resnet(i == 0 ? in : out, out);
      if (attends) attention(out);
    }
  }
  void middle(double channels) {
    resnet(channels, channels);
    attention(channels);
    resnet(channels, channels);
  }
  void halve(double channels, bool time) {
    const double before = kept;
    h /= 2, w /= 2;
    keep(channels);  // the mean of pixels
    convolve(channels, channels, 9, time ? 1 : 0);
    if (time) {
      t = 1 + (t - 1) / 2;
      keep(channels);
      convolve(channels, channels, 3);
    }
    convolve(channels, channels, 1);
    end_block(before, channels);
  }
  void twice(double channels, bool time) {
    const double before = kept;
    if (time) {
      t = 1 + 2 * (t - 1);
      keep(channels, 2);
      convolve(channels, channels, 3);
    }
    h *= 2, w *= 2;
    keep(channels);
    convolve(channels, channels, 9);
    convolve(channels, channels, 1);
    end_block(before, channels);
  }
  void convolve(double in, double out, double taps, double more_frames = 0) {
    parameters += in * out * taps + out;
    flops += 2 * t * h * w * in * out * taps;
    keep(out, more_frames);
  }
  void keep(double channels, double more_frames = 0) {
    kept += (t + more_frames) * h * w * channels * bytes_;
  }

 private:
  /// Of a block that is recomputed only the result stays.
  void end_block(double before, double channels) {
    if (!recompute_) return;
    largest_block = std::max(largest_block, kept - before);
    kept = before;
    keep(channels);
  }

  double bytes_;
  bool recompute_;
};

bool attends(const CosmosConfig& c, int resolution) {
  return std::ranges::find(c.attention_resolutions, resolution) != c.attention_resolutions.end();
}

void encode(Walk& walk, const CosmosConfig& c) {
  const std::vector<int>& widths = c.encoder_block_out_channels;
  const double patch = c.in_channels * c.patch_size * c.patch_size * c.patch_size;
  walk.keep(patch);
  walk.projection(patch, widths.front());
  int resolution = c.resolution / c.patch_size;
  for (int i = 0; i < c.encoder_blocks(); ++i, resolution /= 2) {
    const auto at = static_cast<std::size_t>(i);
    walk.stage(widths[at], widths[at + 1], c.num_layers, attends(c, resolution));
    if (c.halves_space(i)) walk.halve(widths[at + 1], c.halves_time(i));
  }
  walk.middle(widths.back());
  walk.norm(widths.back());
  walk.projection(widths.back(), c.z_channels);
  walk.convolve(c.z_channels, c.latent_channels, 1);
}

void decode(Walk& walk, const CosmosConfig& c) {
  const std::vector<int> widths(c.decode_block_out_channels.rbegin(),
                                c.decode_block_out_channels.rend());
  const double patch = c.out_channels * c.patch_size * c.patch_size * c.patch_size;
  walk.convolve(c.latent_channels, c.z_channels, 1);
  walk.projection(c.z_channels, widths.front());
  walk.middle(widths.front());
  int resolution = c.resolution / c.patch_size >> (widths.size() - 2);
  for (int i = 0; i < c.decoder_blocks(); ++i, resolution *= 2) {
    const auto at = static_cast<std::size_t>(i);
    walk.stage(widths[at], widths[at + 1], c.num_layers + 1, attends(c, resolution));
    if (c.doubles_space(i)) walk.twice(widths[at + 1], c.doubles_time(i));
  }
  walk.norm(widths.back());
  walk.projection(widths.back(), patch);
}

}  // namespace

CosmosTrainingCost cosmos_training_cost(const CosmosConfig& config, int frames, int height,
                                        int width, DType compute, bool recompute) {
  const double patch = config.patch_size;
  Walk walk(1 + (frames - 1) / patch, height / patch, width / patch,
            static_cast<double>(dtype_size(compute)), recompute);
  CosmosTrainingCost cost;
  encode(walk, config);
  cost.encode_flops = walk.flops;
  decode(walk, config);
  cost.decode_flops = walk.flops - cost.encode_flops;
  cost.parameters = static_cast<std::int64_t>(walk.parameters);
  // Pixels, what became of them, and their gradient, in f32.
  const double pixels = 3.0 * frames * height * width * 4;
  cost.activation_bytes = walk.kept + walk.largest_block + 3 * pixels;
  return cost;
}

}  // namespace vfm::models
