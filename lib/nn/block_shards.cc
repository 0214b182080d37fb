// SPDX-License-Identifier: Apache-2.0
#include "nn/block_shards.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "ops/pointwise/add.h"

namespace vfm::nn {

BlockShards::BlockShards(dist::Group& whole, dist::Group& cut, dist::Group* replicas,
                         Options options)
    : whole_(whole), cut_(cut), replicas_(replicas), options_(options) {}

std::unique_ptr<BlockShards> BlockShards::another() const {
  auto made = std::make_unique<BlockShards>(whole_, cut_, replicas_, options_);
  made->late_ = true;
  return made;
}

void BlockShards::set_blocks(std::vector<std::vector<ShardedMatrix*>> blocks) {
  blocks_.clear();
  gathered_ = 0;
  for (std::vector<ShardedMatrix*>& matrices : blocks) {
    Block& block = blocks_.emplace_back();
    block.matrices = std::move(matrices);
  }
}

void BlockShards::start(std::size_t i) {
  Block& block = blocks_[i];
  if (std::exchange(block.here, true)) return;
  most_gathered_ = std::max(most_gathered_, ++gathered_);
  for (ShardedMatrix* matrix : block.matrices) {
    const Tensor &name = matrix->name_, &own = matrix->low_.defined() ? matrix->low_ : matrix->own_;
    matrix->all_ = Tensor(name.shape(), own.dtype(), name.device());
    block.gathering.push_back(
        matrix->group_.all_gather(own, matrix->all_.reshape({name.elements()}), matrix->rows_));
  }
}

void BlockShards::need(std::size_t i) {
  if (!options_.at_once) start(i);
  arrive(blocks_[i]);
}

void BlockShards::arrive(Block& block) {
  for (dist::Transfer& transfer : block.gathering)
    transfer.wait();
  block.gathering.clear();
}

void BlockShards::gather_all(bool backward_follows) {
  if (!options_.at_once) return;
  left_ = backward_follows ? blocks_.size() : 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    start(i);
    // Another stage's has nothing to wait for.
    blocks_[i].final = blocks_[i].matrices.empty();
    if (!backward_follows) continue;
    for (ShardedMatrix* matrix : blocks_[i].matrices)
      if (matrix->gradient_.defined())
        matrix->sum_ = Tensor::zeros(matrix->name_.shape(), DType::f32, matrix->name_.device());
  }
}

void BlockShards::release(std::size_t i) {
  Block& block = blocks_[i];
  if (options_.keep || options_.at_once || !std::exchange(block.here, false)) return;
  --gathered_;
  for (ShardedMatrix* matrix : block.matrices) {
    if (!matrix->all_.unique())
      fail("a matrix {} is held after its block", to_string(matrix->name_.shape()));
    matrix->all_ = Tensor();
  }
}

void BlockShards::drop() {
  for (Block& block : blocks_) {
    if (!std::exchange(block.here, false)) continue;
    --gathered_;
    arrive(block);
    for (ShardedMatrix* matrix : block.matrices)
      matrix->all_ = Tensor();
  }
}

void BlockShards::look_at_all(const Look& look) {
  for (Block& block : blocks_) {
    arrive(block);
    for (const ShardedMatrix* matrix : block.matrices) {
      const Tensor all = matrix->all_.defined() ? matrix->all_ : matrix->gather();
      const Tensor here = matrix->stretch_of(all).to(Device::cpu),
                   own = matrix->own_.to(Device::cpu);
      look(*matrix, all,
           here.bytes() == own.bytes() && std::memcmp(here.raw(), own.raw(), own.bytes()) == 0);
    }
  }
}

void BlockShards::begin(Way way) {
  if (told_) told_(way);
  passing_ = true;
}

void BlockShards::forward(std::size_t i, bool recorded) {
  if (i == 0 && !options_.at_once) begin(recorded ? Way::recorded : Way::forward);
  if (i == blocks_.size()) passing_ = false;
  if (i > 0) release(i - 1);
  if (i < blocks_.size()) need(i);
  if (options_.at_once) return;
  if (i + 1 < blocks_.size()) start(i + 1);
  // Backward begins with the last block, which travels while the loss is computed.
  if (recorded && i > 0 && i == blocks_.size()) start(i - 1);
}

void BlockShards::enter(ops::Tape& tape, std::size_t i) {
  forward(i, tape.recording());
  if (options_.at_once) {
    tape.in_backward([this, i](ops::Tape&) {
      if (!last_ || i == blocks_.size()) return;
      blocks_[i].final = true;
      go_on();
    });
    return;
  }
  if (tape.recording())
    tape.in_backward([this, i](ops::Tape& t) { backward(&t, i, t.replaces()); });
}

// What is recorded from block i on is done.
void BlockShards::backward(ops::Tape* tape, std::size_t i, bool first) {
  if (i < blocks_.size()) {
    end_sums();
    sum(tape, i, first);
    release(i);
  } else {
    begin(Way::backward);
  }
  if (i == 0) {
    passing_ = false;
    return;
  }
  need(i - 1);
  if (tape != nullptr) lend_buffers(*tape, i - 1);
  if (i > 1) start(i - 2);
}

void BlockShards::lend_buffers(ops::Tape& tape, std::size_t i) {
  for (ShardedMatrix* matrix : blocks_[i].matrices) {
    if (!matrix->gradient_.defined()) continue;
    const Tensor& name = matrix->name_;
    matrix->sum_ = Tensor(name.shape(), DType::f32, name.device());
    tape.lend(name, matrix->sum_);
  }
}

void BlockShards::sum(ops::Tape* tape, std::size_t i, bool first) {
  for (ShardedMatrix* matrix : blocks_[i].matrices) {
    if (!matrix->gradient_.defined()) continue;
    const Tensor& name = matrix->name_;
    if (tape != nullptr) tape->take_back(name, matrix->no_gradient_);
    Tensor buffer = std::exchange(matrix->sum_, Tensor());
    if (!buffer.defined()) buffer = Tensor::zeros(name.shape(), DType::f32, name.device());
    buffer = buffer.to(options_.travel).reshape({name.elements()});
    dist::Group& group = matrix->group_;
    const auto own = matrix->rows_.begin() + group.rank();
    const std::int64_t begin = std::accumulate(matrix->rows_.begin(), own, std::int64_t{0});
    Sum& sum = sums_.emplace_back();
    sum.block = i;
    sum.matrix = matrix;
    sum.first = first;
    sum.own = buffer.rows(begin, begin + *own);
    sum.transfer = group.reduce_scatter(buffer, sum.own, matrix->rows_);
    sum.buffer = std::move(buffer);
  }
}

void BlockShards::end_first() {
  Sum& sum = sums_.front();
  sum.transfer.wait();
  const Tensor& gradient = sum.matrix->gradient_;
  if (sum.first)
    convert(sum.own, gradient);
  else
    ops::add_in_place(gradient, sum.own);
  sums_.pop_front();
}

void BlockShards::end_sums() {
  while (!sums_.empty())
    end_first();
}

// A rank that had nothing to do with some block's matrices has not waited for them, and the update
// is about to change what they are gathered from.
void BlockShards::start_last() {
  const std::size_t i = --left_;
  arrive(blocks_[i]);
  sum(nullptr, i, true);
}

// Two blocks' sums at a time: each may need memory besides the buffers.
void BlockShards::go_on() {
  const auto full = [this] { return !sums_.empty() && sums_.front().block != sums_.back().block; };
  if (!options_.at_once || late_) return;
  while (!sums_.empty() && sums_.front().transfer.done())
    end_first();
  while (left_ > 0 && blocks_[left_ - 1].final && !full())
    start_last();
}

void BlockShards::fill(Way way, bool first) {
  if (options_.at_once) return;
  const std::size_t places = blocks_.size() + 1;
  for (std::size_t i = 0; i < places; ++i) {
    if (way == Way::backward)
      backward(nullptr, places - 1 - i, first);
    else
      forward(i, way == Way::recorded);
  }
}

void BlockShards::finish() {
  while (options_.at_once && left_ > 0) {
    while (!sums_.empty() && sums_.front().block != sums_.back().block)
      end_first();
    start_last();
  }
  end_sums();
  if (replicas_ == nullptr) return;
  for (Block& block : blocks_)
    for (ShardedMatrix* matrix : block.matrices)
      if (matrix->gradient_.defined()) replicas_->all_reduce(matrix->gradient_).wait();
}

}  // namespace vfm::nn
