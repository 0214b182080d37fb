// Self-attention of a DiT layer, bf16, 32 heads of 128, no mask: forward and backward in TFLOP/s,
// counted as 4 s^2 h d forward and 2.5 times that backward, whatever a body computes.
//   gpu_attention [TOKENS]...      (default: 8192 16384 32768)
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "gpu.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"

using namespace vfm;

namespace {

constexpr int kHeads = 32, kHeadDim = 128;

void measure(const std::string& body, std::int64_t tokens) {
  const std::string length = std::to_string(tokens);
  const bench::Name forward{"attention", "forward " + length, body};
  const bench::Name backward{"attention", "backward " + length, body};
  const double s = static_cast<double>(tokens);
  const double flops = 4 * s * s * kHeads * kHeadDim;
  bench::attempt(forward, [&] {
    ops::set_attention_body(ops::parse_attention_body(body));
    ops::AttentionPack pack;
    pack.query_lengths = pack.key_lengths = {tokens};
    pack.heads = pack.key_heads = kHeads;
    pack.head_dim = kHeadDim;
    ops::prepare(pack, Device::cuda);
    const Tensor qkv = bench::random_tensor({tokens, 3 * kHeads * kHeadDim}, DType::bf16, 1);
    const Tensor dout = bench::random_tensor({tokens, kHeads * kHeadDim}, DType::bf16, 2);
    const double seconds = bench::seconds_per_call([&] {
      ops::Tape silent(false);
      ops::self_attention(silent, qkv, pack);
    });
    bench::print(forward, 1e-12 * flops / seconds, "TFLOP/s", {{"ms", 1e3 * seconds}});
    bench::attempt(backward, [&] {
      // A gradient that nobody adds to a buffer: qkv is made from a leaf, as in a layer.
      const Tensor leaf = Tensor::zeros({1}, DType::f32, Device::cuda), gradient = leaf.clone();
      std::vector<double> times;
      for (int i = 0; i < 7; ++i) {
        ops::Tape tape;
        tape.watch(leaf, gradient);
        tape.record(qkv, {leaf}, [qkv](ops::Tape& t) { t.take(qkv); });
        const Tensor out = ops::self_attention(tape, qkv, pack);
        bench::Stopwatch watch;
        times.push_back(watch.seconds([&] { tape.backward(out, dout); }));
      }
      std::sort(times.begin(), times.end());
      bench::print(backward, 1e-12 * 2.5 * flops / times[3], "TFLOP/s", {{"ms", 1e3 * times[3]}});
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::int64_t> lengths;
  for (int i = 1; i < argc; ++i)
    lengths.push_back(std::atoll(argv[i]));
  if (lengths.empty()) lengths = {8192, 16384, 32768};
  return bench::run([&] {
    for (const std::int64_t tokens : lengths)
      for (const char* body : {"own", "cudnn"})
        measure(body, tokens);
  });
}
