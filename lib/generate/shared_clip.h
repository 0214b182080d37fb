// One clip on several ranks: one of them samples and writes files, and asks the others for their
// parts of each output of the network, and of the frames.
//
// The leader of the clip (generate/clip_ranks.h) has prompts, sampler and files; the others have
// their part of the network, and serve. Each batch goes to all of them. With cfg=2 the first half
// of the ranks computes the batch's first sample, the others the second. A rank's output has zeros
// where the tokens of others are, so the sum is the whole, exactly.
// Errors: a rank that fails leaves the others waiting, so its process ends them all
// (dist/launch.h). Thread-safety: the thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "generate/clip_ranks.h"
#include "models/dit/network.h"
#include "models/tokenizer.h"

namespace vfm::generate {

class SharedClip {
 public:
  /// Network and ranks must outlive it.
  SharedClip(models::DiffusionNetwork& network, const ClipRanks& ranks)
      : network_(network), ranks_(ranks) {}

  /// DiffusionNetwork::forward(), on the CPU, of one or two samples. Of the rank that leads.
  Tensor forward(const models::NetworkBatch& batch);
  /// set_inference_fp8() of all of them: called by all, and of the rank that leads alone, while the
  /// others serve.
  void set_fp8(models::Fp8Parts parts);
  void switch_fp8(models::Fp8Parts parts);
  /// DiffusionNetwork::quantize() of all of them, in the same two ways.
  void quantize();
  void quantize_all();
  /// The tokenizer, whose decode_stream() all of them work on. Of the rank that leads; this must
  /// outlive the result.
  std::unique_ptr<models::VideoTokenizer> share(std::unique_ptr<models::VideoTokenizer> tokenizer);
  /// The others do no more, and serve() returns there. Of the rank that leads.
  void end();
  /// Of the others: does what is asked for, until end(). The tokenizer may be null where none is
  /// asked for.
  void serve(const models::VideoTokenizer* tokenizer);

 private:
  Tensor compute(const models::NetworkBatch& batch);

  models::DiffusionNetwork& network_;
  const ClipRanks& ranks_;
  std::unique_ptr<models::VideoTokenizer> tokenizer_;
  bool fp8_ = false;
};

}  // namespace vfm::generate
