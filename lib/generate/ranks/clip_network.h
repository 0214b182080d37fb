// The network that makes a clip. It belongs to one rank, or several ranks share it. If they share
// it, one rank samples and writes files, and receives the others' parts of each network output and
// of the frames.
//
// All ranks of an autoregressive model write its codes together (generate/sampling/codes.h).
//
// The leader of the clip (generate/ranks/clip_ranks.h) has the prompts, the sampler and the files.
// The other ranks have a part of the network, and serve the leader. Each batch goes to all of them.
// With cfg=2 the first half of the ranks computes the first sample of the batch, the other half the
// second. A rank's output has zeros at other ranks' tokens, so the sum is exact. Errors: a rank
// that fails leaves the others waiting, so its process ends them all (dist/launch.h).
//
// A model may have two networks that are chosen by noise level, of which one is in memory at a
// time. Clips that are sampled at the same time use the same one: when all of them need the other,
// or have ended, it is loaded. So -j N clips take two loads together.
// Ranks that share clips begin some of them before they finish the first (generate/clip_maker.cc).
//
// Thread-safety: forward() of a network of one rank from any thread; everything else from the
// thread that made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "generate/ranks/clip_ranks.h"
#include "generate/sampling/codes.h"
#include "models/dit/network.h"
#include "models/tokenizer.h"

namespace vfm::generate {

class ClipNetwork {
 public:
  /// A network of this rank alone. It must outlive this object.
  explicit ClipNetwork(models::DiffusionNetwork& network) : network_(&network) {}
  /// This rank's part of a network, if more than one rank makes the clip. `network` and `ranks`
  /// must outlive this object.
  ClipNetwork(models::DiffusionNetwork& network, const ClipRanks& ranks)
      : network_(&network), ranks_(ranks.clip().size() > 1 ? &ranks : nullptr) {}
  /// This rank's part of a decoder that ranks share: for write(), share(), serve() and end().
  ClipNetwork(const models::CausalDecoder& decoder, const ClipRanks& ranks)
      : decoder_(&decoder), ranks_(&ranks) {}

  const models::NetworkConfig& config() const { return network_->config(); }
  bool shared() const { return ranks_ != nullptr; }
  /// DiffusionNetwork::forward() of the network that the batch is for, on the CPU, without
  /// gradients; of a shared network for one or two samples. Called by the leading rank. No other
  /// thread may have a clip that uses another network.
  Tensor forward(const models::NetworkBatch& batch) const;

  /// write_codes() of all ranks. Called by the leading rank.
  std::vector<std::vector<std::int32_t>> write(std::span<const CodeJob> videos,
                                               const HowFarOf& how_far) const;

  /// A clip that is being sampled.
  class Clip {
   public:
    explicit Clip(const ClipNetwork& network);
    ~Clip();
    Clip(const Clip&) = delete;
    Clip& operator=(const Clip&) = delete;

    const models::NetworkConfig& config() const { return network_.config(); }
    /// ClipNetwork::forward(), once the other clips need this network too. Honours base/stop.h.
    Tensor forward(const models::NetworkBatch& batch) const;

   private:
    void wait_for(int number) const;
    const ClipNetwork& network_;
  };

  /// set_inference_fp8() on all ranks. All ranks call set_fp8(). Only the leading rank calls
  /// switch_fp8(), while the others serve.
  void set_fp8(models::Fp8Parts parts);
  void switch_fp8(models::Fp8Parts parts);
  /// DiffusionNetwork::quantize() on all ranks. All ranks call quantize(). Only the leading rank
  /// calls quantize_all(), while the others serve.
  void quantize();
  void quantize_all();
  /// Returns a tokenizer whose decode_stream() runs on all ranks. Called by the leading rank of a
  /// shared network. This object must outlive the result.
  std::unique_ptr<models::VideoTokenizer> share(std::unique_ptr<models::VideoTokenizer> tokenizer);
  /// Ends serve() on the other ranks. Called by the leading rank.
  void end();
  /// Called by the other ranks: serves the leading rank until its end(). `tokenizer` may be null if
  /// it is not used.
  void serve(const models::VideoTokenizer* tokenizer);

 private:
  /// Which of several networks the clips use.
  struct Turn {
    std::mutex mutex;
    std::condition_variable changed;
    int number = 0;   ///< of the network
    int clips = 0;    ///< that are being sampled
    int waiting = 0;  ///< of these, the ones that need the other network
  };

  void tell(const std::string& order) const;
  Tensor compute(const models::NetworkBatch& batch) const;

  models::DiffusionNetwork* network_ = nullptr;
  const models::CausalDecoder* decoder_ = nullptr;
  const ClipRanks* ranks_ = nullptr;  ///< of a shared network
  std::unique_ptr<models::VideoTokenizer> tokenizer_;
  bool fp8_ = false;
  mutable Turn turn_;
};

}  // namespace vfm::generate
