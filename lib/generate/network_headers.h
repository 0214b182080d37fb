// The network of a model's folder, and the adapters on it, as configurations and the headers of
// files describe them. No weights are read, and no hashes compared.
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

namespace vfm::generate {

/// What was found wrong in any part of a model, to be reported together.
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
  /// Throws Error{usage} with all that was found, if anything was.
  void finish() const;

 private:
  std::vector<std::string> found_;
};

/// A diffusion network or a decoder, one of them.
struct NetworkHeaders {
  std::string type;
  std::optional<models::NetworkConfig> dit;
  std::optional<models::DecoderConfig> decoder;
  DType trained = DType::f32;
  double file_bytes = 0;  ///< of the weights, and of adapters
  /// Of each set of adapters that stays beside the weights.
  std::vector<std::vector<models::AdapterShape>> adapters;
  Faults faults;  ///< tensors and adapters that do not fit it
};

/// The network that `job` generates with. Throws Error{usage} for choices of adapters and of their
/// base that are not for this model, and Error for a folder or a configuration that cannot be read.
NetworkHeaders read_network(const GenerateJob& job);

}  // namespace vfm::generate
