// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/shared_clip.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "dist/bytes.h"
#include "generate/decode/shared_tokenizer.h"
#include "generate/request/parcel.h"
#include "tensor/allocator.h"
#include "tensor/device.h"

namespace vfm::generate {
namespace {

enum class Work : char { forward, fp8, quantize, decode, end };

std::string pack_batch(const models::NetworkBatch& batch) {
  ClipParcel parcel;
  parcel.add(Work::forward);
  parcel.add(batch.samples);
  const auto add = [&](const Tensor& tensor) {
    parcel.add(std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end()));
    const std::span<const float> values = tensor.floats();
    parcel.add(std::vector<float>(values.begin(), values.end()));
  };
  add(batch.latents);
  add(batch.text);
  return parcel.take();
}

models::NetworkBatch unpack_batch(ClipParcelReader& parcel) {
  models::NetworkBatch batch;
  parcel.read(batch.samples);
  const auto read = [&](Tensor& tensor) {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
    parcel.read(shape);
    parcel.read(values);
    tensor = Tensor::from(values, Shape(shape.begin(), shape.end()));
  };
  read(batch.latents);
  read(batch.text);
  return batch;
}

/// The one sample of two.
models::NetworkBatch half_of(const models::NetworkBatch& batch, std::int64_t half) {
  models::NetworkBatch one;
  one.samples = {batch.samples[static_cast<std::size_t>(half)]};
  const std::int64_t latents = batch.latents.elements() / 2;
  one.latents = batch.latents.rows(half * latents, (half + 1) * latents);
  const std::int64_t first = batch.samples[0].text_tokens;
  one.text = half == 0 ? batch.text.rows(0, first) : batch.text.rows(first, batch.text.size(0));
  return one;
}

}  // namespace

Tensor SharedClip::compute(const models::NetworkBatch& batch) {
  dist::Group& halves = ranks_.halves();
  const bool split = halves.size() > 1 && batch.samples.size() > 1;
  // Without guidance the second half has nothing to do, but for what it exchanges with the first.
  const bool idle = halves.size() > 1 && !split && halves.rank() > 0;
  if (idle && !ranks_.halves_meet(fp8_)) return {};
  ops::Tape tape(false);
  Tensor output;
  {
    const auto turn = take_turn(network_.device());
    output = network_.forward(tape, split ? half_of(batch, halves.rank()) : batch);
  }
  if (ranks_.half().size() > 1) ranks_.half().all_reduce(output).wait();
  if (idle) return {};
  output = output.to(Device::cpu);
  if (!split || ranks_.half().rank() > 0) return output;
  if (halves.rank() > 0) {
    halves.send(0, output).wait();
    return {};
  }
  const Tensor both({2 * output.elements()});
  copy(output.reshape({output.elements()}), both.rows(0, output.elements()));
  halves.receive(1, both.rows(output.elements(), both.elements())).wait();
  return both;
}

Tensor SharedClip::forward(const models::NetworkBatch& batch) {
  dist::broadcast_bytes(ranks_.clip(), pack_batch(batch), 0);
  return compute(batch);
}

void SharedClip::set_fp8(models::Fp8Parts parts) {
  network_.set_inference_fp8(parts);
  fp8_ = parts.any();
}

void SharedClip::switch_fp8(models::Fp8Parts parts) {
  ClipParcel parcel;
  parcel.add(Work::fp8);
  parcel.add(parts);
  dist::broadcast_bytes(ranks_.clip(), parcel.take(), 0);
  set_fp8(parts);
}

void SharedClip::quantize() {
  network_.quantize();
  if (network_.device() == Device::cpu) release_cached_memory();
}

void SharedClip::quantize_all() {
  ClipParcel parcel;
  parcel.add(Work::quantize);
  dist::broadcast_bytes(ranks_.clip(), parcel.take(), 0);
  quantize();
}

std::unique_ptr<models::VideoTokenizer> SharedClip::share(
    std::unique_ptr<models::VideoTokenizer> tokenizer) {
  tokenizer_ = std::move(tokenizer);
  const auto call = [this](std::span<const float> latents, int frames, int height, int width) {
    ClipParcel parcel;
    parcel.add(Work::decode);
    parcel.add(std::vector<float>(latents.begin(), latents.end()));
    for (const int size : {frames, height, width})
      parcel.add(size);
    dist::broadcast_bytes(ranks_.clip(), parcel.take(), 0);
  };
  return std::make_unique<SharedTokenizer>(*tokenizer_, ranks_.clip(), call);
}

void SharedClip::end() {
  ClipParcel parcel;
  parcel.add(Work::end);
  dist::broadcast_bytes(ranks_.clip(), parcel.take(), 0);
}

void SharedClip::serve(const models::VideoTokenizer* tokenizer) {
  for (;;) {
    const std::string bytes = dist::broadcast_bytes(ranks_.clip(), "", 0);
    ClipParcelReader parcel(bytes);
    Work work = Work::end;
    parcel.read(work);
    if (work == Work::end) return;
    if (work == Work::forward) {
      compute(unpack_batch(parcel));
      continue;
    }
    if (work == Work::fp8) {
      models::Fp8Parts parts;
      parcel.read(parts);
      set_fp8(parts);
      continue;
    }
    if (work == Work::quantize) {
      quantize();
      continue;
    }
    if (!tokenizer) fail("a rank without a tokenizer is asked to decode");
    std::vector<float> latents;
    int frames = 0, height = 0, width = 0;
    parcel.read(latents);
    for (int* const size : {&frames, &height, &width})
      parcel.read(*size);
    tokenizer->decode_together(ranks_.clip(), latents, frames, height, width,
                               [](std::span<const float>, int) {});
  }
}

}  // namespace vfm::generate
