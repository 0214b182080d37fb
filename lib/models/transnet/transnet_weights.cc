// SPDX-License-Identifier: Apache-2.0
#include "models/transnet/transnet_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/hf_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/named_tensors.h"
#include "models/folder/other_models.h"
#include "models/folder/weight_files.h"

namespace vfm::models {
namespace {

constexpr std::int64_t kMostFilters = 128, kMostHidden = 1 << 14;  // 16 and 1024 as published
constexpr std::int64_t kLeftPixels = 3 * 6;                        // of 27 x 48, halved three times
constexpr float kNormEpsilon = 1e-3f;
constexpr std::array<int, 4> kDilations = {1, 2, 4, 8};

/// Those of the forward pass: without the counters of batch norms and the second head.
std::unique_ptr<io::TensorSet> used_tensors(const std::string& folder) {
  std::unique_ptr<io::TensorSet> all = open_model_weights(folder);
  std::vector<io::TensorView> used;
  for (const io::TensorView& tensor : all->tensors())
    if (!tensor.name.ends_with(".num_batches_tracked") && !tensor.name.starts_with("cls_layer2."))
      used.push_back(tensor);
  return std::make_unique<RenamedSet>(std::move(all), std::move(used));
}

struct BatchNorm {
  Tensor scale, shift, mean, variance;
};

/// Which tensor goes where.
class Wishes {
 public:
  explicit Wishes(std::string path) : path_(std::move(path)) {}

  void add(const std::string& name, Shape shape, Tensor& to) {
    targets_.push_back(
        {name, std::move(shape), [&to, name, path = path_](const Tensor& values) {
           const std::span<const float> all = values.floats();
           if (!std::all_of(all.begin(), all.end(), [](float x) { return std::isfinite(x); }))
             fail("'{}': {} has values that are not finite", path, name);
           to = values.clone();
         }});
  }
  void add(const std::string& name, std::int64_t out, std::int64_t in, TransNetLinear& to) {
    add(name + ".weight", {out, in}, to.weight);
    add(name + ".bias", {out}, to.bias);
  }
  void add(const std::string& name, TransNetCell& cell, BatchNorm& norm) {
    const std::int64_t f = cell.filters;
    for (std::size_t b = 0; b < cell.branches.size(); ++b) {
      TransNetBranch& branch = cell.branches[b];
      branch.dilation = kDilations[b];
      const std::string layers = fmt::format("{}Conv3D_{}.layers.", name, kDilations[b]);
      add(layers + "0.weight", {2 * f, cell.in, 1, 3, 3}, branch.space);
      add(layers + "1.weight", {f, 2 * f, 3, 1, 1}, branch.time);
    }
    add(name + "bn.weight", {4 * f}, norm.scale);
    add(name + "bn.bias", {4 * f}, norm.shift);
    add(name + "bn.running_mean", {4 * f}, norm.mean);
    add(name + "bn.running_var", {4 * f}, norm.variance);
  }
  void load(const io::TensorSet& set) const { load_tensors(set, targets_); }

 private:
  std::string path_;
  std::vector<TensorTarget> targets_;
};

/// What comes out of the branches, (y - mean) / deviation * scale + shift, into their last weights.
void fold_norm(TransNetCell& cell, const BatchNorm& norm, const std::string& path) {
  const std::int64_t f = cell.filters, taps = 3 * 2 * f;
  for (std::size_t b = 0; b < cell.branches.size(); ++b) {
    TransNetBranch& branch = cell.branches[b];
    branch.bias = Tensor({f});
    for (std::int64_t o = 0; o < f; ++o) {
      const std::int64_t channel = static_cast<std::int64_t>(b) * f + o;
      const auto of = [&](const Tensor& values) { return values.data<float>()[channel]; };
      if (of(norm.variance) < 0) fail("'{}': a variance of a batch norm is below 0", path);
      const float factor = of(norm.scale) / std::sqrt(of(norm.variance) + kNormEpsilon);
      branch.bias.data<float>()[o] = of(norm.shift) - of(norm.mean) * factor;
      for (std::int64_t i = 0; i < taps; ++i)
        branch.time.data<float>()[o * taps + i] *= factor;
    }
  }
}

TransNetWeights read_set(const io::TensorSet& set, const std::string& folder) {
  const NamedShapes shapes(set.path(), set.tensors());
  const std::string first = "SDDCNN.0.DDCNN.0.Conv3D_1.layers.1.weight", hidden = "fc1.weight";
  for (const std::string& name : {first, hidden})
    if (!shapes.has(name)) fail("'{}' holds no TransNet V2: there is no {}", folder, name);
  const std::int64_t filters = shapes.size(first, 0), features = shapes.size(hidden, 0);
  if (filters > kMostFilters || features > kMostHidden)
    fail("'{}' holds a TransNet V2 of {} filters and {} features; at most {} and {} are supported",
         folder, filters, features, kMostFilters, kMostHidden);

  TransNetWeights weights;
  std::array<std::array<BatchNorm, 2>, 3> norms;
  Wishes wishes(set.path());
  std::int64_t in = 3, seen = 0;
  for (std::size_t s = 0; s < weights.stacks.size(); ++s) {
    for (std::size_t c = 0; c < weights.stacks[s].size(); ++c) {
      TransNetCell& cell = weights.stacks[s][c];
      cell.in = in;
      cell.filters = filters << s;
      wishes.add(fmt::format("SDDCNN.{}.DDCNN.{}.", s, c), cell, norms[s][c]);
      in = 4 * cell.filters;
    }
    seen += in;
  }
  constexpr std::int64_t kBand = TransNetWeights::kBandWidth, kOut = TransNetWeights::kBandOut;
  wishes.add("frame_sim_layer.projection", kOut, seen, weights.projection);
  wishes.add("frame_sim_layer.fc", kOut, kBand, weights.feature_band);
  wishes.add("color_hist_layer.fc", kOut, kBand, weights.colour_band);
  wishes.add("fc1", features, 2 * kOut + in * kLeftPixels, weights.hidden);
  wishes.add("cls_layer1", 1, features, weights.head);
  wishes.load(set);
  for (std::size_t s = 0; s < norms.size(); ++s)
    for (std::size_t c = 0; c < norms[s].size(); ++c)
      fold_norm(weights.stacks[s][c], norms[s][c], set.path());
  weights.config = Json{{"name", "transnetv2"},
                    {"hash", hash_model("transnetv2", Json::object(), set)}};
  return weights;
}

}  // namespace

TransNetWeights read_transnet(const std::string& folder) {
  need_model_folder(folder);
  refuse_other_models(folder);
  return as_usage([&] { return read_set(*used_tensors(folder), folder); });
}

}  // namespace vfm::models
