// LAION's aesthetic heads: how much people like a picture, from about 1 to 10. The input is the
// picture's CLIP vector, of length 1, mostly from ViT-L/14. The names of the tensors identify the
// published heads:
//
//   linear    weight [1, D], bias [1]                                     (aesthetic-predictor)
//   mlp       layers.0, .2, .4, .6, .7, each .weight [N, M] and .bias [N], without activations
//             between them                                      (improved-aesthetic-predictor)
//   mlp:relu  layers.0, .3, .6, .9, .11, the same with a ReLU between any two     (the same)
//
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"

namespace vfm::models {

class AestheticHead {
 public:
  /// Reads a head from `file`: safetensors, or a PyTorch checkpoint (.pth). `dim` is the length of
  /// the vectors. Throws Error{usage} if there is no such file, if it has none of these heads or a
  /// head for vectors of another length, or if a weight is not finite.
  AestheticHead(const std::string& file, int dim);

  /// The score of a vector of `dim` numbers and of length 1.
  double score(std::span<const float> vector) const;

  /// {"head": "mlp", "hash": "..."}. The hash covers all weights.
  const Json& config() const { return config_; }

 private:
  struct Layer {
    int in = 0, out = 0;
    std::vector<float> weight, bias;  // [out, in], [out]
  };
  std::vector<Layer> layers_;
  bool relu_ = false;
  HeldJson config_;
};

}  // namespace vfm::models
