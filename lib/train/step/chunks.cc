// SPDX-License-Identifier: Apache-2.0
#include "train/step/chunks.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
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

nn::Streams NetworkChunks::blank(int number, Side side) const {
  const nn::BlockRange& range = chunks_.at(static_cast<std::size_t>(number)).blocks;
  nn::Streams blank;
  for (const Shape& shape : batch_.streams(side == Side::input ? range.begin : range.end))
    blank.emplace_back(shape, DType::f32, batch_.device);
  return blank;
}

nn::Streams NetworkChunks::forward(int number, nn::Streams streams) {
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
  if (chunk.first) {
    streams = stages->embed();
  } else {
    chunk.gradients.resize(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i)
      tape.arrive(streams[i],
                  [&chunk, i](Tensor gradient) { chunk.gradients[i] = std::move(gradient); });
  }
  nn::Streams made = stages->blocks(std::move(streams), chunk.blocks.begin, chunk.blocks.end);
  if (!chunk.last) {
    // The next rank waits for tensors of these shapes.
    if (!std::ranges::equal(made, batch_.streams(chunk.blocks.end), {}, &Tensor::shape))
      fail("block {} hands on {}, and Architecture::skips says another number or shape",
           chunk.blocks.end - 1, counted(static_cast<std::int64_t>(made.size()), "tensor"));
    chunk.out = made;
    // A block may hand on its own result besides.
    const Tensor rests = tape.rest(made.front());
    for (Tensor& one : chunk.out)
      if (one.id() == made.front().id()) one = rests;
    return made;
  }
  chunk.out = {stages->head(made)};
  chunk.seeds = {batch_.loss(chunk.out.front())};
  return {};
}

void NetworkChunks::expect_backward(int number) {
  chunks_.at(static_cast<std::size_t>(number)).tape->wake();
}

nn::Streams NetworkChunks::backward(int number, nn::Streams gradients) {
  Chunk& chunk = chunks_.at(static_cast<std::size_t>(number));
  if (chunk.last) gradients = std::exchange(chunk.seeds, {});
  // Before the first adapter there is nothing to learn.
  nn::backward(*chunk.tape, chunk.out, gradients);
  chunk.tape.reset();
  chunk.out.clear();
  nn::Streams of_inputs = std::exchange(chunk.gradients, {});
  for (std::size_t i = 0; i < of_inputs.size(); ++i)
    if (!of_inputs[i].defined())
      of_inputs[i] =
          Tensor::zeros(batch_.streams(chunk.blocks.begin)[i], DType::f32, batch_.device);
  return of_inputs;
}

void NetworkChunks::forward_alone() {
  const int pp = layout_.pp_size(), rank = layout_.pp_rank();
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    nn::Streams streams;
    if (!chunks_[i].first) {
      streams = blank(static_cast<int>(i), Side::input);
      for (const Tensor& stream : streams)
        layout_.pp->receive((rank + pp - 1) % pp, stream).wait();
    }
    for (const Tensor& made : forward(static_cast<int>(i), std::move(streams)))
      layout_.pp->send((rank + 1) % pp, made).wait();
    chunks_[i].out.clear();
  }
}

}  // namespace vfm::train
