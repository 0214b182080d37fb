// One clip on several ranks: one rank samples and writes files, and gets the others' parts of each
// network output and of the frames.
//
// The leader of the clip (generate/ranks/clip_ranks.h) has prompts, sampler and files; the others
// have their part of the network, and serve. Each batch goes to all of them. With cfg=2 the first
// half of the ranks computes the batch's first sample, the others the second. A rank's output has
// zeros at other ranks' tokens, so the sum is exact. Errors: a rank that fails leaves the others
// waiting, so its process ends them all (dist/launch.h). Thread-safety: the thread that made the
// World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "generate/ranks/clip_ranks.h"
#include "models/dit/network.h"
#include "models/tokenizer.h"

namespace vfm::generate {

class SharedClip {
 public:
  /// Network and ranks must outlive it.
  SharedClip(models::DiffusionNetwork& network, const ClipRanks& ranks)
      : network_(network), ranks_(ranks) {}

  /// DiffusionNetwork::forward(), on the CPU, for one or two samples. Called by the leading rank.
  Tensor forward(const models::NetworkBatch& batch);
  /// set_inference_fp8() on all ranks. set_fp8() is called by all; switch_fp8() only by the leading
  /// rank, while the others serve.
  void set_fp8(models::Fp8Parts parts);
  void switch_fp8(models::Fp8Parts parts);
  /// DiffusionNetwork::quantize() on all ranks, in the same two ways.
  void quantize();
  void quantize_all();
  /// A tokenizer whose decode_stream() all ranks compute. Called by the leading rank; this must
  /// outlive the result.
  std::unique_ptr<models::VideoTokenizer> share(std::unique_ptr<models::VideoTokenizer> tokenizer);
  /// Ends serve() on the other ranks. Called by the leading rank.
  void end();
  /// Called by the other ranks: serves requests until end(). The tokenizer may be null if it is not
  /// used.
  void serve(const models::VideoTokenizer* tokenizer);

 private:
  Tensor compute(const models::NetworkBatch& batch);

  models::DiffusionNetwork& network_;
  const ClipRanks& ranks_;
  std::unique_ptr<models::VideoTokenizer> tokenizer_;
  bool fp8_ = false;
};

}  // namespace vfm::generate
