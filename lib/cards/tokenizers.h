// A video tokenizer that computes in workers, with the interface that it has here: several clips at
// a time, one on each card, to the results of one device of their kind.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "cards/service.h"
#include "cards/stage_models.h"
#include "models/tokenizer.h"

namespace vfm::cards {

/// Which tokenizer, as models::make_tokenizer() takes it.
struct TokenizerPlan {
  models::TokenizerConfig config = {};
  std::uint64_t memory = 0;
  /// Latents that are to be made with it, at most: by that the memory of its work is predicted.
  int frames = 1, height = 1, width = 1;
};

/// The words and the memory with which StageModels::add() gets it; another service may add to them
/// what it wants (TokenizerService). Throws Error{usage} where its folder cannot be used.
Parcel tokenizer_parcel(const TokenizerPlan& plan);
std::int64_t tokenizer_bytes(const TokenizerPlan& plan, Device device);

/// Of the service of `number`, which TokenizerService answers: the last that was added, as a worker
/// is started and asked what it has. No weights are read here. `models` must outlive it. Throws
/// what StageModels::open() and ask() throw.
std::unique_ptr<models::VideoTokenizer> tokenizer_in_workers(StageModels& models,
                                                             std::size_t number);

/// What a worker answers: each request computes on one thread of its own processor, as each clip
/// does here.
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

}  // namespace vfm::cards
