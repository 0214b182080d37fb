// SPDX-License-Identifier: Apache-2.0
#include "train/step/chunks.h"

#include <utility>

#include "dist/group.h"

namespace vfm::train {

NetworkChunks::NetworkChunks(const nn::NetworkLayout& layout, StagedBatch batch, bool record,
                             ops::Tape::Listener final)
    : layout_(layout), batch_(std::move(batch)), record_(record), final_(std::move(final)) {
  for (const nn::BlockRange& range : layout.chunks(batch_.blocks)) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.blocks = range;
    chunk.first = range.begin == 0;
    chunk.last = range.end == static_cast<std::size_t>(batch_.blocks);
  }
}

Tensor NetworkChunks::blank_stream() const {
  return Tensor(batch_.stream, DType::f32, batch_.device);
}

Tensor NetworkChunks::forward(int number, Tensor stream) {
  Chunk& chunk = chunks_.at(static_cast<std::size_t>(number));
  ops::Tape& tape = chunk.tape.emplace(record_);
  // What is in no block all chunks use.
  if (final_)
    tape.listen(
        [this](const Tensor& gradient) {
          if (told_.insert(gradient.data<std::byte>()).second) final_(gradient);
        },
        number > 0);
  const auto stages = batch_.stages(tape);
  if (chunk.first)
    stream = stages->embed();
  else
    tape.arrive(stream, [&chunk](Tensor gradient) { chunk.gradient = std::move(gradient); });
  Tensor made = stages->blocks(std::move(stream), chunk.blocks.begin, chunk.blocks.end);
  if (!chunk.last) {
    chunk.out = tape.rest(made);
    return made;
  }
  chunk.out = stages->head(made);
  chunk.seed = batch_.loss(chunk.out);
  return {};
}

void NetworkChunks::expect_backward(int number) {
  chunks_.at(static_cast<std::size_t>(number)).tape->wake();
}

Tensor NetworkChunks::backward(int number, const Tensor& gradient) {
  Chunk& chunk = chunks_.at(static_cast<std::size_t>(number));
  const Tensor seed = chunk.last ? std::exchange(chunk.seed, Tensor()) : gradient;
  // Before the first adapter there is nothing to learn.
  if (chunk.tape->wants_grad(chunk.out)) chunk.tape->backward(chunk.out, seed);
  chunk.tape.reset();
  chunk.out = Tensor();
  Tensor of_stream = std::exchange(chunk.gradient, Tensor());
  if (!chunk.first && !of_stream.defined())
    of_stream = Tensor::zeros(batch_.stream, DType::f32, batch_.device);
  return of_stream;
}

void NetworkChunks::forward_alone() {
  const int pp = layout_.pp_size(), rank = layout_.pp_rank();
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    Tensor stream;
    if (!chunks_[i].first) {
      stream = blank_stream();
      layout_.pp->receive((rank + pp - 1) % pp, stream).wait();
    }
    const Tensor made = forward(static_cast<int>(i), std::move(stream));
    if (made.defined()) layout_.pp->send((rank + 1) % pp, made).wait();
    chunks_[i].out = Tensor();
  }
}

}  // namespace vfm::train
