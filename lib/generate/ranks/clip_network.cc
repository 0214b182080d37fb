// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_network.h"

#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "dist/bytes.h"
#include "generate/decode/shared_tokenizer.h"
#include "generate/ranks/clip_wire.h"
#include "tensor/allocator.h"
#include "tensor/device.h"

namespace vfm::generate {

static void fields(ClipWire& wire, models::NetworkBatch& batch) {
  wire(batch.samples, batch.latents, batch.text, batch.round_embedding, batch.network);
}

static void fields(ClipWire& wire, CodeJob& job) {
  wire(job.sample, job.text, job.given, job.options, job.seed, job.key);
}

namespace {

constexpr std::chrono::milliseconds kLookForStop(100);

enum class Work : char { forward, write, fp8, quantize, decode, end };

/// The one sample of two.
models::NetworkBatch half_of(const models::NetworkBatch& batch, std::int64_t half) {
  models::NetworkBatch one;
  one.network = batch.network;
  one.samples = {batch.samples[static_cast<std::size_t>(half)]};
  const std::int64_t latents = batch.latents.elements() / 2;
  one.latents = batch.latents.rows(half * latents, (half + 1) * latents);
  const std::int64_t first = batch.samples[0].text_tokens;
  one.round_embedding = batch.round_embedding;
  one.text = half == 0 ? batch.text.rows(0, first) : batch.text.rows(first, batch.text.size(0));
  return one;
}

}  // namespace

/// What the other ranks are to do.
void ClipNetwork::tell(const std::string& order) const {
  if (ranks_) dist::broadcast_bytes(ranks_->clip(), order, 0);
}

Tensor ClipNetwork::forward(const models::NetworkBatch& batch) const {
  if (ranks_) {
    tell(pack(Work::forward, batch));
    return compute(batch);
  }
  ops::Tape tape(false);
  const auto turn = take_turn(network_->device());
  network_->choose(batch.network);
  return network_->forward(tape, batch).to(Device::cpu);
}

std::vector<std::vector<std::int32_t>> ClipNetwork::write(std::span<const CodeJob> videos,
                                                          const HowFarOf& how_far) const {
  tell(pack(Work::write, std::vector<CodeJob>(videos.begin(), videos.end())));
  return write_codes(*decoder_, videos, how_far);
}

ClipNetwork::Clip::Clip(const ClipNetwork& network) : network_(network) {
  const std::lock_guard lock(network_.turn_.mutex);
  ++network_.turn_.clips;
}

ClipNetwork::Clip::~Clip() {
  Turn& turn = network_.turn_;
  const std::lock_guard lock(turn.mutex);
  --turn.clips;
  turn.changed.notify_all();
}

Tensor ClipNetwork::Clip::forward(const models::NetworkBatch& batch) const {
  wait_for(batch.network);
  return network_.forward(batch);
}

void ClipNetwork::Clip::wait_for(int number) const {
  Turn& turn = network_.turn_;
  std::unique_lock lock(turn.mutex);
  if (turn.number == number) return;
  ++turn.waiting;
  while (turn.number != number) {
    if (stop_requested()) {
      --turn.waiting;
      check_stop();
    }
    if (turn.waiting == turn.clips) {
      turn.number = number;
      turn.waiting = 0;
      turn.changed.notify_all();
    } else {
      turn.changed.wait_for(lock, kLookForStop);
    }
  }
}

/// This rank's part of the output, and on the leading rank all of it.
Tensor ClipNetwork::compute(const models::NetworkBatch& batch) const {
  dist::Group& halves = ranks_->halves();
  {
    const auto turn = take_turn(network_->device());
    network_->choose(batch.network);
  }
  const bool split = halves.size() > 1 && batch.samples.size() > 1;
  // Without guidance the second half has nothing to do, but for what it exchanges with the first.
  const bool idle = halves.size() > 1 && !split && halves.rank() > 0;
  if (idle && !ranks_->halves_meet(fp8_)) return {};
  ops::Tape tape(false);
  Tensor output;
  {
    const auto turn = take_turn(network_->device());
    output = network_->forward(tape, split ? half_of(batch, halves.rank()) : batch);
  }
  if (ranks_->half().size() > 1) ranks_->half().all_reduce(output).wait();
  if (idle) return {};
  output = output.to(Device::cpu);
  if (!split || ranks_->half().rank() > 0) return output;
  if (halves.rank() > 0) {
    halves.send(0, output).wait();
    return {};
  }
  const Tensor both({2 * output.elements()});
  copy(output.reshape({output.elements()}), both.rows(0, output.elements()));
  halves.receive(1, both.rows(output.elements(), both.elements())).wait();
  return both;
}

void ClipNetwork::set_fp8(models::Fp8Parts parts) {
  network_->set_inference_fp8(parts);
  fp8_ = parts.any();
}

void ClipNetwork::switch_fp8(models::Fp8Parts parts) {
  tell(pack(Work::fp8, parts));
  set_fp8(parts);
}

void ClipNetwork::quantize() {
  network_->quantize();
  if (network_->device() == Device::cpu) release_cached_memory();  // the whole matrices'
}

void ClipNetwork::quantize_all() {
  tell(pack(Work::quantize));
  quantize();
}

std::unique_ptr<models::VideoTokenizer> ClipNetwork::share(
    std::unique_ptr<models::VideoTokenizer> tokenizer) {
  tokenizer_ = std::move(tokenizer);
  const auto call = [this](std::span<const float> latents, int frames, int height, int width) {
    tell(pack(Work::decode, std::vector<float>(latents.begin(), latents.end()), frames, height,
              width));
  };
  return std::make_unique<SharedTokenizer>(*tokenizer_, ranks_->clip(), call);
}

void ClipNetwork::end() {
  tell(pack(Work::end));
}

void ClipNetwork::serve(const models::VideoTokenizer* tokenizer) {
  for (;;) {
    const std::string bytes = dist::broadcast_bytes(ranks_->clip(), "", 0);
    ClipWire wire(bytes);
    Work work = Work::end;
    wire(work);
    if (work == Work::end) return wire.end();
    if (work == Work::forward) {
      models::NetworkBatch batch;
      wire(batch);
      wire.end();
      compute(batch);
    } else if (work == Work::write) {
      std::vector<CodeJob> videos;
      wire(videos);
      wire.end();
      write_codes(*decoder_, videos);
    } else if (work == Work::fp8) {
      models::Fp8Parts parts;
      wire(parts);
      wire.end();
      set_fp8(parts);
    } else if (work == Work::quantize) {
      wire.end();
      quantize();
    } else {
      if (!tokenizer) fail("a rank without a tokenizer is asked to decode");
      std::vector<float> latents;
      int frames = 0, height = 0, width = 0;
      wire(latents, frames, height, width);
      wire.end();
      tokenizer->decode_together(ranks_->clip(), latents, frames, height, width,
                                 [](std::span<const float>, int) {});
    }
  }
}

}  // namespace vfm::generate
