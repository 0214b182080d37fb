// Self-attention of a DiT layer, bf16, heads of 128, no mask: forward and backward in TFLOP/s,
// counted as 4 s^2 h d forward and 2.5 times that backward, whatever a body computes.
//   gpu_attention [[HEADSx]TOKENS]...      (default: 8192 16384 32768; 32 heads)
// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"

using namespace vfm;

namespace {

constexpr int kHeadDim = 128;

struct Size {
  std::string name;  ///< as it was given
  int heads = 32;
  std::int64_t tokens = 0;
};

Size parse_size(const std::string& text) {
  const std::size_t at = text.find('x');
  if (at == std::string::npos) return {text, 32, bench::positive(text)};
  return {text, static_cast<int>(std::min<std::int64_t>(bench::positive(text.substr(0, at)), 1024)),
          bench::positive(text.substr(at + 1))};
}

void measure(const std::string& body, const Size& size) {
  const bench::Name forward{"attention", "forward " + size.name, body};
  const bench::Name backward{"attention", "backward " + size.name, body};
  const double s = static_cast<double>(size.tokens);
  const double flops = 4 * s * s * size.heads * kHeadDim;
  Tensor qkv;
  ops::AttentionPack pack;
  bool ran = bench::rehearsal();
  bench::attempt(forward, [&] {
    ops::set_attention_body(ops::parse_attention_body(body));
    pack.query_lengths = pack.key_lengths = {size.tokens};
    pack.heads = pack.key_heads = size.heads;
    pack.head_dim = kHeadDim;
    ops::prepare(pack, Device::cuda);
    qkv = bench::random_tensor({size.tokens, 3 * size.heads * kHeadDim}, DType::bf16, 1);
    const double seconds = bench::seconds_per_call([&] {
      ops::Tape silent(false);
      ops::self_attention(silent, qkv, pack);
    });
    bench::print(forward, 1e-12 * flops / seconds, "TFLOP/s", {{"ms", 1e3 * seconds}});
    ran = true;
  });
  if (!ran) return;
  bench::attempt(backward, [&] {
    const Tensor dout = bench::random_tensor({size.tokens, size.heads * kHeadDim}, DType::bf16, 2);
    // A gradient that nobody adds to a buffer: qkv is made from a leaf, as in a layer.
    const Tensor leaf = Tensor::zeros({1}, DType::f32, Device::cuda), gradient = leaf.clone();
    std::vector<double> times;
    while (times.size() < (flops < 2e13 ? 7 : 3)) {
      ops::Tape tape;
      tape.watch(leaf, gradient);
      tape.record(qkv, {leaf}, [qkv](ops::Tape& t) { t.take(qkv); });
      const Tensor out = ops::self_attention(tape, qkv, pack);
      bench::Stopwatch watch;
      times.push_back(watch.seconds([&] { tape.backward(out, dout); }));
    }
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    bench::print(backward, 1e-12 * 2.5 * flops / median, "TFLOP/s", {{"ms", 1e3 * median}});
  });
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run([&] {
    std::vector<Size> sizes;
    for (int i = 1; i < argc; ++i)
      sizes.push_back(parse_size(argv[i]));
    if (sizes.empty())
      for (const char* tokens : {"8192", "16384", "32768"})
        sizes.push_back(parse_size(tokens));
    for (const Size& size : sizes)
      for (const char* body : {"own", "cudnn"})
        measure(body, size);
  });
}
