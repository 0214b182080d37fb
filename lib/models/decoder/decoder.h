// The autoregressive decoder over discrete latents (`model.type: autoregressive`): a Llama that
// writes a video code after code, frame by frame and row by row, like the autoregressive models of
// Cosmos.
//
//   x_0 = start, x_i = table[code i-1]    what is known when code i is written
//   of each layer:
//     x += absolute positions             in models that have some
//     x += SelfAttention(RMS(x))          causal; G key/value heads for H of queries; per-head RMS
//                                         norm of queries and keys, 3D rotary positions
//     x += CrossAttention(RMS(x), text)   where there is text
//     x += MLP(RMS(x))                    SwiGLU
//   logits_i = W RMS(x_i)                 of code i
//
// RMS norms have weights; eps 1e-5 everywhere; no biases; W is not the table. Token i has the
// position (frame, row, column) of the code that it writes; models/decoder/decoder_config.h has the
// other ways, which are those of Cosmos-1.0. Theta is 500,000; along time YaRN stretches the slow
// frequencies (ops/position/positions.h). Sources: NVIDIA, "Cosmos World Foundation Model
// Platform" (2025), section 5.2; Grattafiori et al., "The Llama 3 herd of models" (2024); Peng et
// al., "YaRN" (2023). Shape letters: S tokens of the pack, V vocabulary, L text tokens of the pack,
// E text width. Thread-safety: several threads may ask forward(), each with its own tape, and step
// writers of their own; all else from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/decoder/decoder_config.h"
#include "models/dit/network.h"
#include "ops/loss/cross_entropy.h"

namespace vfm::models {

/// The loss of a pack, of this rank's own tokens alone.
struct CodeLoss {
  ops::CrossEntropy tokens;           ///< losses: of own tokens; seed: of forward()'s logits
  std::vector<std::int64_t> lengths;  ///< own tokens of each sample
  /// The sum over each sample's, as ops::CrossEntropy::read_sums() has it.
  std::vector<double> read_sums() const { return tokens.read_sums(lengths); }
};

class CausalDecoder {
 public:
  /// As make_network() says. Matrices begin xavier uniform, tables normal 0.02, norms one. With a
  /// layout, table and W are cut by their rows too.
  CausalDecoder(const DecoderConfig& config, std::uint64_t seed, DType compute = DType::f32,
                Device device = Device::cpu, bool trainable = true,
                const nn::NetworkLayout& layout = {});
  ~CausalDecoder();
  CausalDecoder(CausalDecoder&&) noexcept;

  const DecoderConfig& config() const;
  Device device() const;
  const nn::ParameterList& parameters() const;
  /// As DiffusionNetwork has them.
  void attach(const std::vector<nn::AdapterShape>& shapes, bool trainable);
  const nn::ParameterList& adapters() const;
  /// As DiffusionNetwork::set_recompute().
  void set_recompute(nn::Recompute recompute, bool offload = false);
  /// Teacher-forced: the logits of every code given those before it, or, without a start token, of
  /// the code after each; [S, V] f32, on device(). Where ranks share the decoder, of the codes of
  /// this cp part, and of this rank's entries of the vocabulary.
  Tensor forward(ops::Tape& tape, const CodeBatch& batch) const;
  /// The same in parts, and the shape of what passes between them: as DiffusionNetwork has it.
  std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape, const CodeBatch& batch) const;
  Shape stream_shape(const CodeBatch& batch) const;
  /// Of what forward() made of the batch, with a target for each of its codes, -1 for none, as
  /// ops::cross_entropy() says. Without a start token first codes have none, whatever is given. All
  /// ranks of tp must call it.
  CodeLoss loss(const Tensor& logits, const CodeBatch& batch, std::span<const std::int32_t> targets,
                double z_loss, double scale) const;

 private:
  friend class CodeWriter;
  struct State;
  class Stages;
  std::unique_ptr<State> state_;
};

/// Writes one video code after code, keeping the keys and values of those that are written: each
/// costs as much as one token. The logits are those of CausalDecoder::forward(), but for rounding.
class CodeWriter {
 public:
  /// `text` is f32 (tokens, E), or undefined for a model without text. Keeps the reference.
  CodeWriter(const CausalDecoder& decoder, const CodeSample& sample, const Tensor& text);
  ~CodeWriter();

  std::int64_t written() const;
  /// Of the next code: V numbers on the CPU, none of a decoder on Device::meta, or of the first
  /// code without a start token. Once for each code, and not when all are written.
  std::vector<float> logits();
  /// The next code is this one.
  void write(std::int32_t code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::models
