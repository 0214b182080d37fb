// The forward pass of one batch through a diffusion network, whole or in parts; and the network.
//
// Its State derives from NetworkFrame, and has
//   State(config, seed, compute, device, trainable, layout)     see make_network()
//   Block, Context                                       types; Context derives from BlockContext
//   std::deque<Block> blocks                             see nn/stack.h
//   Context context(tape, pack, text) const
// Thread-safety: FramedForward: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/dit/framed_network.h"
#include "models/dit/network_frame.h"
#include "nn/stack.h"

namespace vfm::models {

/// The batch, the tape and the state must outlive this object.
template <class State>
class FramedForward final
    : public nn::StackForward<typename State::Block, typename State::Context> {
  using Base = nn::StackForward<typename State::Block, typename State::Context>;

 public:
  FramedForward(const State& state, ops::Tape& tape, const NetworkBatch& batch)
      : Base({state.blocks, state.of_blocks, state.recompute, state.offload}, tape),
        s_(state),
        batch_(batch),
        pack_(checked_pack()) {
    s_.watch(tape);
    this->context_ = s_.context(tape, pack_, batch.text);
    const nn::Conditions& conditions = this->context_.conditions;
    this->read_ = {this->context_.positions, conditions.embedding, conditions.shared,
                   this->context_.text.text};
  }

 private:
  Tensor start() override { return s_.enter(this->tape_, batch_, pack_); }
  Tensor finish(const nn::Stream& x) override {
    const auto& context = this->context_;
    return s_.leave(this->tape_, x, context.last ? *context.last : context.conditions, pack_);
  }
  NetworkPack checked_pack() const {
    batch_.check(s_.config);
    return {s_.config, batch_, s_.device, s_.layout};
  }

  const State& s_;
  const NetworkBatch& batch_;
  const NetworkPack pack_;
};

/// A network is its state.
template <class State>
class NetworkOf final : public FramedNetwork {
 public:
  NetworkOf(const NetworkConfig& config, std::uint64_t seed, DType compute, Device device,
            bool trainable, const nn::NetworkLayout& layout)
      : FramedNetwork(std::make_unique<State>(config, seed, compute, device, trainable, layout)) {}

  Tensor forward(ops::Tape& tape, const NetworkBatch& batch) const override {
    return FramedForward<State>(state(), tape, batch).forward();
  }
  std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape,
                                            const NetworkBatch& batch) const override {
    return std::make_unique<FramedForward<State>>(state(), tape, batch);
  }

 private:
  const State& state() const { return static_cast<const State&>(*frame_); }
};

}  // namespace vfm::models
