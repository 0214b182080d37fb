// A video tokenizer that computes in workers, several clips at a time, one on each card. It has the
// interface of a tokenizer in this process, and gives the results of one such device.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/tokenizer.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::workers {

/// Which tokenizer, as models::make_tokenizer() takes it.
struct TokenizerPlan {
  models::TokenizerConfig config = {};
  std::uint64_t memory = 0;
  /// The largest latents to be made; they decide the predicted memory of its work.
  int frames = 1, height = 1, width = 1;
};

/// The parcel and memory for StageModels::add(); another service may add words of its own
/// (TokenizerService). Throws Error{usage} if its folder cannot be used.
Parcel tokenizer_parcel(const TokenizerPlan& plan);
std::int64_t tokenizer_bytes(const TokenizerPlan& plan, Device device);

/// The tokenizer behind service `number`, a TokenizerService. It must be the last service added,
/// since a worker is started and asked for its properties. No weights are read here. `models` must
/// outlive it. Throws what StageModels::open() and ask() throw.
std::unique_ptr<models::VideoTokenizer> tokenizer_in_workers(StageModels& models,
                                                             std::size_t number);

/// The worker's side: each request computes on one thread of the processor, as each clip does in
/// this process.
class TokenizerService : public Service {
 public:
  /// Opens what tokenizer_parcel() describes.
  TokenizerService(const Parcel& open, Device device);
  Parcel answer(const Parcel& request) override;

 protected:
  const models::VideoTokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::unique_ptr<models::VideoTokenizer> tokenizer_;
};

}  // namespace vfm::workers
