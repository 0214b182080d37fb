// Describes the network of a model's folder, and the adapters on it, from configurations and file
// headers. Reads no weights and compares no hashes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "generate/generate.h"
#include "models/decoder/decoder.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"
#include "models/folder/load_model.h"

namespace vfm::generate {

/// Collects the faults in any part of a model, to report them together.
class Faults {
 public:
  template <class Act>
  void look(Act act) {
    try {
      act();
    } catch (const Error& error) {
      found_.push_back(error.what());
    }
  }
  /// Throws Error{usage} with all faults, if any.
  void finish() const;

 private:
  std::vector<std::string> found_;
};

/// A diffusion network or a decoder, one of them. Two networks have one configuration.
struct NetworkHeaders {
  std::string type;
  std::optional<models::NetworkConfig> dit;
  std::optional<models::DecoderConfig> decoder;
  DType trained = DType::f32;
  double file_bytes = 0;  ///< of the weights, and of adapters; of two networks of the larger one
  /// The most memory that reading has beside the weights: a tensor's, and adapters.
  double loading_bytes = 0;
  /// Of two networks that are chosen by noise level: of the second one. 0: there is one network.
  double second_bytes = 0;
  /// The shapes of each set of adapters that stays beside the weights.
  std::vector<std::vector<nn::AdapterShape>> adapters;
  Faults faults;  ///< tensors and adapters that do not fit the network
};

/// Returns the network that `job` generates with, of its model. Throws Error{usage} for choices of
/// adapters or their base that do not suit this model, and Error for a folder or a configuration
/// that cannot be read.
NetworkHeaders read_network(const GenerateJob& job, const models::OpenedModel& opened);

}  // namespace vfm::generate
