// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_wire.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"

namespace vfm::generate {

void ClipWire::end() const {
  if (!rest_.empty())
    fail("a message between processes has {} after its last value",
         counted(static_cast<std::int64_t>(rest_.size()), "byte"));
}

std::uint64_t ClipWire::count(std::uint64_t n, std::uint64_t least) {
  raw(&n, sizeof n);
  if (reads_ && n > rest_.size() / least) fail("a message between processes ends too early");
  return n;
}

void ClipWire::raw(void* value, std::uint64_t bytes) {
  if (!reads_) {
    bytes_.append(static_cast<const char*>(value), bytes);
    return;
  }
  if (bytes > rest_.size()) fail("a message between processes ends too early");
  std::copy_n(rest_.data(), bytes, static_cast<char*>(value));
  rest_.remove_prefix(bytes);
}

void ClipWire::one(HeldJson& json) {
  std::string text = reads_ ? "" : dump_json(json);
  one(text);
  if (reads_) json = parse_json(text, "what another process says");
}

void ClipWire::one(Tensor& tensor) {
  Shape shape = reads_ ? Shape() : tensor.shape();
  one(shape);
  if (reads_) tensor = Tensor(std::move(shape));
  raw(tensor.floats().data(), tensor.floats().size_bytes());
}

}  // namespace vfm::generate
