// SPDX-License-Identifier: Apache-2.0
#include "generate/files/latent_files.h"

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "io/folder.h"
#include "io/safetensors.h"

namespace vfm::generate {
namespace {

constexpr const char* kLatents = ".latents";
constexpr const char* kState = ".state";
constexpr std::int64_t kLastStep = 1 << 20;

template <class T>
io::TensorView view(const std::string& name, const char* dtype, std::vector<std::int64_t> shape,
                    std::span<const T> values) {
  return {name, dtype, std::move(shape), std::as_bytes(values)};
}

io::TensorView address_view(const std::string& address) {
  return view<char>("address", "U8", {static_cast<std::int64_t>(address.size())}, address);
}

const io::TensorView& need(const io::SafetensorsSet& set, const std::string& name,
                           const char* dtype) {
  const io::TensorView* found = set.find(name);
  if (!found || found->dtype != dtype) fail("'{}' has no {} of type {}", set.path(), name, dtype);
  return *found;
}

template <class T>
std::vector<T> values_of(const io::TensorView& tensor) {
  io::need_bytes(tensor.data);
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(T));
  return values;
}

std::string estimate_name(std::size_t i) {
  return i == 0 ? "previous" : "previous" + std::to_string(i + 1);
}

io::SafetensorsSet open(const std::string& folder, const std::string& name,
                        const std::string& address) {
  io::SafetensorsSet set(folder, name);
  const std::vector<char> found = values_of<char>(need(set, "address", "U8"));
  if (std::string(found.begin(), found.end()) != address)
    fail("'{}' is of another clip, or of another model", set.path());
  return set;
}

void remove(const std::string& folder, const std::string& name) {
  try {
    io::remove_file(io::join_path(folder, name + ".safetensors"));
  } catch (const Error& error) {
    log_info("{}", error.what());  // one that stays is overwritten, or refused by its address
  }
}

}  // namespace

void write_latent(const std::string& folder, const std::string& name,
                  const generate::Latent& latent, const std::string& address) {
  io::write_safetensors(
      folder, name + kLatents,
      {view<float>("latent", "F32", {latent.channels, latent.frames, latent.height, latent.width},
                   latent.values),
       address_view(address)});
}

generate::Latent read_latent(const std::string& folder, const std::string& name,
                             const std::string& address) {
  const io::SafetensorsSet set = open(folder, name + kLatents, address);
  const io::TensorView& tensor = need(set, "latent", "F32");
  if (tensor.shape.size() != 4) fail("'{}' has a latent that is not of 4 axes", set.path());
  for (const std::int64_t extent : tensor.shape)
    if (extent < 1 || extent > 100000) fail("'{}' has a latent of extent {}", set.path(), extent);
  const auto extent = [&](std::size_t axis) { return static_cast<int>(tensor.shape[axis]); };
  return {extent(0), extent(1), extent(2), extent(3), values_of<float>(tensor)};
}

void write_state(const std::string& folder, const std::string& name,
                 const models::SamplerState& state, const std::string& address) {
  const std::int64_t step = state.step;
  const auto length = [](const std::vector<double>& v) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(v.size())};
  };
  std::vector<io::TensorView> tensors = {
      view<double>("x", "F64", length(state.x), state.x),
      view<std::int64_t>("step", "I64", {1}, {&step, 1}),
      address_view(address),
  };
  for (std::size_t i = 0; i < state.estimates.size(); ++i)
    tensors.push_back(
        view<double>(estimate_name(i), "F64", length(state.estimates[i]), state.estimates[i]));
  if (!state.corrected.empty())
    tensors.push_back(view<double>("corrected", "F64", length(state.corrected), state.corrected));
  io::write_safetensors(folder, name + kState, std::move(tensors));
}

models::SamplerState read_state(const std::string& folder, const std::string& name,
                                const std::string& address) {
  const io::SafetensorsSet set = open(folder, name + kState, address);
  const std::vector<std::int64_t> step = values_of<std::int64_t>(need(set, "step", "I64"));
  if (step.size() != 1 || step[0] < 0 || step[0] > kLastStep) fail("'{}' has no step", set.path());
  models::SamplerState state{static_cast<int>(step[0]), values_of<double>(need(set, "x", "F64"))};
  for (std::size_t i = 0; set.find(estimate_name(i)); ++i)
    state.estimates.push_back(values_of<double>(need(set, estimate_name(i), "F64")));
  if (set.find("corrected")) state.corrected = values_of<double>(need(set, "corrected", "F64"));
  return state;
}

bool has_latent(const std::string& folder, const std::string& name) {
  return io::SafetensorsSet::exists(folder, name + kLatents);
}
bool has_state(const std::string& folder, const std::string& name) {
  return io::SafetensorsSet::exists(folder, name + kState);
}
void remove_latent(const std::string& folder, const std::string& name) {
  remove(folder, name + kLatents);
}
void remove_state(const std::string& folder, const std::string& name) {
  remove(folder, name + kState);
}

}  // namespace vfm::generate
