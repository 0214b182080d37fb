// A video tokenizer that computes in workers (workers/worker.h). It has the interface and the
// results of a tokenizer in this process on the same device. Each GPU computes one clip at a time.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/tokenizer.h"
#include "workers/service.h"
#include "workers/stage_models.h"

namespace vfm::workers {

struct TokenizerPlan {
  models::TokenizerConfig config = {};
  std::uint64_t memory = 0;
  /// The size of the largest latents. The memory is predicted from this size.
  int frames = 1, height = 1, width = 1;
};

/// tokenizer_parcel() and tokenizer_bytes() return the arguments `open` and `memory` for
/// StageModels::add(). A program whose service is derived from TokenizerService may add words to
/// the parcel. Throws Error{usage} if the tokenizer's folder cannot be used.
Parcel tokenizer_parcel(const TokenizerPlan& plan);
std::int64_t tokenizer_bytes(const TokenizerPlan& plan, Device device);

/// Returns the tokenizer of service `number`, which must be a TokenizerService and the last service
/// added. Starts a worker and asks the worker for the tokenizer's properties. This process reads no
/// weights. `models` must outlive the result. Throws what StageModels::open() and ask() throw.
std::unique_ptr<models::VideoTokenizer> tokenizer_in_workers(StageModels& models,
                                                             std::size_t number);

/// The service of a tokenizer. A request computes on one thread of the processor.
class TokenizerService : public Service {
 public:
  /// `open` is the result of tokenizer_parcel().
  TokenizerService(const Parcel& open, Device device);
  Parcel answer(const Parcel& request) override;

 protected:
  const models::VideoTokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::unique_ptr<models::VideoTokenizer> tokenizer_;
};

}  // namespace vfm::workers
