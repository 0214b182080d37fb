// Latents and unfinished samplings as files. Each file is written whole or not at all.
//
//   NAME.latents.safetensors   "latent" F32 (C,T,H,W), in the tokenizer's units; "address" U8
//   NAME.state.safetensors     "x" F64, "step" I64; "address" U8; of earlier steps the estimates
//                              that the sampler keeps, newest first: "previous" F64, "previous2"
//                              and so on; of unipc "corrected" F64 (models/process/sampler.h)
//
// The address is a hash, as text, of everything that decides the latent. A file with another
// address belongs to another clip or model. Hostile files give an Error, never a crash.
// Thread-safety: any thread, but one thread per name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "generate/decode/frames.h"
#include "models/process/sampler.h"

namespace vfm::generate {

inline constexpr const char* kLatentsExtension = ".latents.safetensors";
inline constexpr const char* kLatentsRecordExtension = ".latents.json";  ///< record beside it

void write_latent(const std::string& folder, const std::string& name,
                  const generate::Latent& latent, const std::string& address);
/// Throws Error for a missing, damaged or foreign file, or another address.
generate::Latent read_latent(const std::string& folder, const std::string& name,
                             const std::string& address);

void write_state(const std::string& folder, const std::string& name,
                 const models::SamplerState& state, const std::string& address);
models::SamplerState read_state(const std::string& folder, const std::string& name,
                                const std::string& address);

bool has_latent(const std::string& folder, const std::string& name);
bool has_state(const std::string& folder, const std::string& name);
void remove_latent(const std::string& folder, const std::string& name);
void remove_state(const std::string& folder, const std::string& name);

}  // namespace vfm::generate
