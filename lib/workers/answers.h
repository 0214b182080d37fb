// Packs answers of captioning models (models/vlm/caption_model.h) into parcels (workers/parcel.h).
// Only lib/workers uses this header. Texts are packed as bytes, since a text may be invalid UTF-8.
// Numbers are packed without rounding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"
#include "models/vlm/caption_model.h"
#include "workers/parcel.h"

namespace vfm::workers {

Json to_json(const models::AnswerRule& rule);
/// Throws Error for invalid JSON.
models::AnswerRule rule_of(const Json& json);

/// Adds an answer to a parcel. If the answer is an error of the GPU, throws this error.
void put_answer(Parcel& to, const models::Answer& answer);
/// Returns answer number `i` of a parcel. Throws Error if the parcel has no answer `i`.
models::Answer answer_at(const Parcel& from, std::size_t i);

/// number_bytes() converts numbers to bytes, and numbers_of() converts bytes to numbers.
/// numbers_of() throws Error if the number of bytes is not a multiple of the size of T.
template <class T>
Tensor number_bytes(std::span<const T> numbers) {
  return bytes_tensor({reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()});
}
template <class T>
std::vector<T> numbers_of(const Tensor& bytes) {
  const std::string_view text = text_of(bytes);
  if (text.size() % sizeof(T) != 0) fail("{} bytes are no numbers of {}", text.size(), sizeof(T));
  std::vector<T> numbers(text.size() / sizeof(T));
  if (!text.empty()) std::memcpy(numbers.data(), text.data(), text.size());
  return numbers;
}

}  // namespace vfm::workers
