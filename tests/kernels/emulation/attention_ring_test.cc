// A ring of ranks whose parts of attention cuDNN computes, emulated here, against one rank on the
// CPU. The ranks are threads that share an emulated GPU: one has it until it waits for a message.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "cudnn_emulated.h"
#include "dist/threads.h"
#include "ops/attention/attention_choice.h"
#include "ops/determinism.h"
#include "support/ring_case.h"
#include "tensors.h"

using namespace vfm;

namespace {

class TurnsOnGpu : public dist::Group {
 public:
  TurnsOnGpu(dist::Group& group, std::mutex& gpu)
      : Group(group.axis(), group.rank(), group.ranks()), group_(group), gpu_(gpu) {}
  void barrier() override { group_.barrier(); }
  std::vector<std::string> gather(const std::string& text) override { return group_.gather(text); }

 private:
  struct Waiting : dist::Pending {
    Waiting(dist::Transfer begun, std::mutex& its_gpu) : transfer(std::move(begun)), gpu(its_gpu) {}
    void wait() override {
      while (!transfer.done()) {
        gpu.unlock();
        std::this_thread::yield();
        gpu.lock();
      }
    }
    bool done() override { return transfer.done(); }
    dist::Transfer transfer;
    std::mutex& gpu;
  };
  std::unique_ptr<dist::Pending> start(const dist::Call& call) override {
    return std::make_unique<Waiting>(group_.exchange(call.target, call.in, call.source, call.out),
                                     gpu_);
  }

  dist::Group& group_;
  std::mutex& gpu_;
};

test::RingOutcome ring_on_gpu(const test::RingCase& c) {
  const Tensor all = c.queries_keys_values(), all_dout = c.cotangent();
  const test::RingOutcome outcome = {Tensor({all.size(0), c.width()}), Tensor(all.shape())};
  std::mutex gpu;
  dist::thread_worlds(c.ranks(), [&](dist::World& world) {
    test::RingOfAll ranks(world, c);
    TurnsOnGpu group(*ranks.group, gpu);
    ranks.ring.group = &group;
    const test::Lengths places = c.places(static_cast<std::size_t>(world.rank()));
    const std::lock_guard turn(gpu);
    for (ops::AttentionPack& pack : ranks.ring.packs)
      ops::prepare(pack, Device::cuda);
    const Tensor qkv = test::part_of(all, places).to(Device::cuda);
    const Tensor gradient = Tensor::zeros(qkv.shape(), DType::f32, Device::cuda);
    ops::Tape tape;
    tape.watch(qkv, gradient);
    const Tensor out = nn::ring_attention(tape, qkv, ranks.ring);
    test::put(out, places, outcome.out);
    tape.backward(out, test::part_of(all_dout, places).to(Device::cuda));
    test::put(gradient, places, outcome.gradient);
  });
  return outcome;
}

}  // namespace

TEST_CASE("a ring through cuDNN is the whole attention, of packs and of unequal parts") {
  ops::set_attention_body(ops::AttentionBody::automatic);
  static std::vector<std::string> warned;
  set_log_sink([](LogLevel, std::string_view message) { warned.emplace_back(message); },
               LogLevel::warning);
  for (const test::RingCase& c :
       {test::RingCase{{{40, 9}, {24, 13}}, 4, 2, 64, DType::bf16},
        test::RingCase{{{33}, {20}}, 3, 1, 128, DType::bf16},
        // Ranks without tokens of a sample.
        test::RingCase{{{30, 0, 7}, {21, 12, 1}, {9, 5, 70}}, 2, 1, 64, DType::bf16},
        test::RingCase{{{0, 3}, {20, 0}, {1, 1}, {40, 0}}, 2, 2, 64, DType::bf16}}) {
    INFO(c.ranks() << " ranks");
    const test::RingOutcome expected = test::together(c);
    for (const bool deterministic : {false, true}) {
      ops::set_deterministic(deterministic);
      test::EmulatedCudnn& cudnn = test::emulated_cudnn() = {};
      const test::RingOutcome found = ring_on_gpu(c);
      CHECK(test::apart(found.out, expected.out) < 8e-3);
      CHECK(test::apart(found.gradient, expected.gradient) < 2e-2);
      CHECK((cudnn.forward_calls > 0) == !deterministic);
      CHECK((cudnn.backward_calls > 0) == !deterministic);
    }
    ops::set_deterministic(false);
  }
  CHECK(warned.empty());
}
