// A video tokenizer that computes in workers (workers/worker.h), one clip on each card at a time.
// It has the interface of a tokenizer in this process, and gives the same results as such a
// tokenizer on the worker's device.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/tokenizer.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::workers {

/// The arguments of models::make_tokenizer(), and sizes.
struct TokenizerPlan {
  models::TokenizerConfig config = {};
  std::uint64_t memory = 0;
  /// The size of the largest latents, from which the memory is predicted.
  int frames = 1, height = 1, width = 1;
};

/// Return the parcel and memory for StageModels::add(). A class derived from TokenizerService may
/// add words of its own. Throws Error{usage} if the tokenizer's folder cannot be used.
Parcel tokenizer_parcel(const TokenizerPlan& plan);
std::int64_t tokenizer_bytes(const TokenizerPlan& plan, Device device);

/// Returns the tokenizer of service `number`, a TokenizerService. Starts a worker and asks for its
/// properties, so this service must be the last one added. This process reads no weights. `models`
/// must outlive the result. Throws what StageModels::open() and ask() throw.
std::unique_ptr<models::VideoTokenizer> tokenizer_in_workers(StageModels& models,
                                                             std::size_t number);

/// The service in the worker. Each request computes on one thread of the processor, as each clip
/// does without workers.
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
