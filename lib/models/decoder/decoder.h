// The autoregressive decoder over discrete latents (`model.type: autoregressive`): a Llama that
// writes a video code after code, frame by frame and row by row, like the autoregressive models of
// Cosmos.
//
//   x_0 = start, x_i = table[code i-1]    what is known when code i is written
//   in each layer:
//     x += absolute positions             in models that have them
//     x += SelfAttention(RMS(x))          causal; G key/value heads for H query heads; per-head RMS
//                                         norm of queries and keys, 3D rotary positions
//     x += CrossAttention(RMS(x), text)   in models with text
//     x += MLP(RMS(x))                    SwiGLU
//   logits_i = W RMS(x_i)                 of code i
//
// RMS norms have weights; eps 1e-5 everywhere; no biases; W is not the table. Token i has the
// position (frame, row, column) of the code that it predicts; models/decoder/decoder_config.h has
// two other ways, those of Cosmos-1.0. Theta is 500,000; along time YaRN stretches the slow
// frequencies (ops/position/positions.h). Sources: NVIDIA, "Cosmos World Foundation Model Platform"
// (2025), section 5.2; Grattafiori et al., "The Llama 3 herd of models" (2024); Peng et al., "YaRN"
// (2023). Shape letters: S tokens of the pack, V vocabulary, L text tokens of the pack, E text
// width.
// Thread-safety: several threads may call forward(), each with its own tape, and use writers of
// their own. Call all other members from one thread.
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

/// The loss of a pack, over this rank's own tokens alone.
struct CodeLoss {
  ops::CrossEntropy tokens;           ///< losses of own tokens; seed for all logits of forward()
  std::vector<std::int64_t> lengths;  ///< own tokens of each sample
  /// Returns the sum of each sample's losses: see ops::CrossEntropy::read_sums().
  std::vector<double> read_sums() const { return tokens.read_sums(lengths); }
};

class CausalDecoder {
 public:
  /// See make_network() for the arguments. Matrices are initialised xavier uniform, tables normal
  /// 0.02, norms one. A layout cuts the table and W by rows too.
  CausalDecoder(const DecoderConfig& config, std::uint64_t seed, DType compute = DType::f32,
                Device device = Device::cpu, bool trainable = true,
                const nn::NetworkLayout& layout = {});
  ~CausalDecoder();
  CausalDecoder(CausalDecoder&&) noexcept;

  const DecoderConfig& config() const;
  Device device() const;
  const nn::ParameterList& parameters() const;
  /// See DiffusionNetwork::attach() and adapters().
  void attach(const std::vector<nn::AdapterShape>& shapes, bool trainable);
  const nn::ParameterList& adapters() const;
  /// See DiffusionNetwork::set_recompute().
  void set_recompute(nn::Recompute recompute, bool offload = false);
  /// Returns the teacher-forced logits, [S, V] f32, on device(). Row i has the logits of code i
  /// given the codes before it; without a start token, those of the code after code i. If ranks
  /// share the decoder, the rows are those of this cp part, and the columns this rank's entries of
  /// the vocabulary. Throws Error if tp divides outputs (nn::NetworkLayout::by_outputs).
  Tensor forward(ops::Tape& tape, const CodeBatch& batch) const;
  /// Return the same pass in parts, and the shape of the tensor between them: see DiffusionNetwork.
  std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape, const CodeBatch& batch) const;
  Shape stream_shape(const CodeBatch& batch) const;
  /// Returns the loss from the logits that forward() returned for this batch, as
  /// ops::cross_entropy() does. Each code has a target; -1 is none. Without a start token, targets
  /// of first codes are ignored. All ranks of tp must call it.
  CodeLoss loss(const Tensor& logits, const CodeBatch& batch, std::span<const std::int32_t> targets,
                double z_loss, double scale) const;

 private:
  friend class CodeWriter;
  struct State;
  class Stages;
  std::unique_ptr<State> state_;
};

/// Writes one video code after code. Keeps the keys and values of written codes, so each code costs
/// as much as one token. The logits equal those of CausalDecoder::forward() up to rounding.
///
/// If ranks share the decoder, by the layout of writing_layout(), each rank has a writer of the
/// video, and all make the same calls: the logits are those of one rank, to the bit. A rank keeps
/// the keys of its own heads and layers. The stages of a pipeline wait for one another, so other
/// videos should be written meanwhile: those in the order of their calls.
class CodeWriter {
 public:
  /// `text` is f32 (tokens, E), or undefined for a model without text. Keeps a reference to
  /// `decoder`.
  CodeWriter(const CausalDecoder& decoder, const CodeSample& sample, const Tensor& text);
  ~CodeWriter();

  std::int64_t written() const;
  /// Returns the V logits of the next code. Returns none on Device::meta, none for the first code
  /// without a start token, and none before the last stage of a pipeline. Call it once for each
  /// code. Throws Error if all codes are written.
  std::vector<float> logits();
  /// Sets the next code, which all ranks know.
  void write(std::int32_t code);
  /// Sets the next code, which in a pipeline the last stage alone knows: it tells the first stage.
  void write_drawn(std::int32_t code);
  /// Returns the codes, on ranks of the first stage of a pipeline and of the last. Call it on all
  /// ranks, when all codes are written.
  std::vector<std::int32_t> codes();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::models
