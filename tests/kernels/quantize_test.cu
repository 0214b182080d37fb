// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "elementwise.h"
#include "fp8_reference.h"
#include "kernel_test.h"
#include "quantize.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Quantized {
  std::vector<std::uint8_t> values;
  float scale;
};

// `shift`: elements by which x, and bytes by which the values, miss the alignment.
template <class T>
Quantized run_kernel(const std::vector<T>& x, std::size_t shift, bool gelu = false) {
  std::vector<T> shifted(shift);
  shifted.insert(shifted.end(), x.begin(), x.end());
  const DeviceArray<T> from(shifted);
  const DeviceArray<std::uint8_t> values(x.size() + shift + 1);
  const DeviceArray<float> scale(1);
  const DeviceArray<std::uint32_t> largest(kQuantizeParts);
  Quantize call;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.gelu = gelu;
  call.x = from.get() + shift;
  call.count = static_cast<std::int64_t>(x.size());
  call.values = values.get() + shift;
  call.scale = scale.get();
  call.largest = largest.get();
  need(quantize(call, nullptr), "quantize");
  Quantized result{values.host(), scale.host()[0]};
  if (result.values.back() != 0xff) std::exit(1);  // nobody may write behind the values
  result.values = {result.values.begin() + static_cast<std::ptrdiff_t>(shift),
                   result.values.end() - 1};
  return result;
}

// The same in two parts, whose largest magnitudes come together first.
template <class T>
Quantized run_parts(const std::vector<T>& x) {
  const Type type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  const std::size_t half = x.size() / 2;
  const std::vector<T> parts[] = {{x.begin(), x.begin() + static_cast<std::ptrdiff_t>(half)},
                                  {x.begin() + static_cast<std::ptrdiff_t>(half), x.end()}};
  const DeviceArray<std::uint32_t> both(2);
  for (std::size_t i = 0; i < 2; ++i) {
    const DeviceArray<T> from(parts[i]);
    const DeviceArray<std::uint32_t> words(kQuantizeParts);
    const auto count = static_cast<std::int64_t>(parts[i].size());
    need(largest_magnitudes(type, from.get(), count, words.get(), nullptr), "largest");
    need(largest_magnitudes(Type::f32, words.get(), quantize_parts(count), both.get() + i, nullptr),
         "largest of all");
  }
  Quantized result;
  for (const std::vector<T>& part : parts) {
    const DeviceArray<T> from(part);
    const DeviceArray<std::uint8_t> values(part.size());
    const DeviceArray<float> scale(1);
    Quantize call;
    call.type = type;
    call.x = from.get();
    call.count = static_cast<std::int64_t>(part.size());
    call.values = values.get();
    call.scale = scale.get();
    call.largest = both.get();
    call.given = 2;
    need(quantize(call, nullptr), "quantize a part");
    const std::vector<std::uint8_t> got = values.host();
    result.values.insert(result.values.end(), got.begin(), got.end());
    result.scale = scale.host()[0];
  }
  return result;
}

// What the kernel of gelu writes.
template <class T>
std::vector<T> gelu_of(const std::vector<T>& x) {
  const DeviceArray<T> from(x), to(x.size());
  need(activation_forward(sizeof(T) == 2 ? Type::bf16 : Type::f32, vfm::kernels::ActivationKind::gelu, from.get(), to.get(),
                    static_cast<std::int64_t>(x.size()), nullptr),
       "gelu");
  return to.host();
}

// To the last bit: every value is computed alone, and a maximum has no order.
template <class T>
void check(Checker& checker, const std::string& name, const std::vector<float>& numbers,
           std::size_t shift, bool gelu = false) {
  const std::vector<T> given = as<T>(numbers), x = gelu ? gelu_of(given) : given;
  float largest = 0;
  for (const T v : x)
    largest = std::isnan(largest) || std::isnan(value(v)) ? std::nanf("")
                                                          : std::max(largest, std::abs(value(v)));
  const ReferenceScale by = fp8_scale_of(largest);
  const Quantized got = run_kernel(given, shift, gelu);
  const std::string of = name + (gelu ? " of gelu" : "") + (sizeof(T) == 2 ? " bf16 " : " f32 ") +
                         std::to_string(x.size()) + (shift ? " shifted" : "");
  checker.check(of + ": scale",
                std::isnan(by.scale) ? std::isnan(got.scale) : got.scale == by.scale);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    wrong += got.values[i] != fp8_code_of(value(x[i]) * by.inverse);
  checker.check(of + ": " + std::to_string(wrong) + " values", wrong == 0);
  if (gelu || shift > 0) return;
  const Quantized parts = run_parts(given);
  checker.check(of + ": in two parts",
                parts.values == got.values && std::memcmp(&parts.scale, &got.scale, 4) == 0);
}

template <class T>
void check_type(Checker& checker) {
  for (const std::size_t count : {0, 1, 15, 16, 17, 4096, 4099})
    for (const std::size_t shift : {0, 1})
      check<T>(checker, "noise", noise(count, 7), shift);
  // More than all parts' threads take at once.
  check<T>(checker, "long", noise(2200001, 9), 0);
  // The largest at either end, or in the last part of all.
  std::vector<float> peak = noise(9000, 3);
  peak.front() = -100;
  check<T>(checker, "first largest", peak, 0);
  peak.back() = 1000;
  check<T>(checker, "last largest", peak, 0);
  // Every code, each halfway case and its neighbours: with 448 among them the scale is 1.
  std::vector<float> halves;
  for (int code = 0; code < 126; ++code)
    for (const float sign : {-1.f, 1.f}) {
      const auto low = static_cast<float>(fp8_values()[static_cast<std::size_t>(code)]);
      const auto high = static_cast<float>(fp8_values()[static_cast<std::size_t>(code + 1)]);
      const float middle = (low + high) / 2;
      for (const float v :
           {low, high, middle, std::nextafter(middle, 0.f), std::nextafter(middle, 1e9f)})
        halves.push_back(sign * v);
    }
  check<T>(checker, "halfway", halves, 0);
  check<T>(checker, "zeros", std::vector<float>(100, 0.f), 0);
  check<T>(checker, "tiny", std::vector<float>(100, 1e-30f), 0);
  check<T>(checker, "huge", std::vector<float>{3e38f, -1e38f, 1.f}, 0);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<float> damaged = noise(5000, 5);
    damaged[4321] = bad;
    check<T>(checker, "NaN or infinity", damaged, 0);
  }
}

// Gelu in the same launches: what two kernels make, one after the other.
template <class T>
void check_gelu(Checker& checker) {
  for (const std::size_t count : {0, 1, 17, 4096, 4099})
    for (const std::size_t shift : {0, 1})
      check<T>(checker, "noise", noise(count, 7), shift, true);
  // What a thread sees after numbers of which the largest is known, so that little is computed.
  const std::vector<float> given = noise(2200001, 9);
  check<T>(checker, "long", given, 0, true);
  for (const float last : {100.f, -INFINITY, std::copysign(std::nanf(""), -1.f), -3e38f}) {
    std::vector<float> changed = given;
    changed[2150000] = last;
    check<T>(checker, "long, " + std::to_string(last), changed, 0, true);
  }
  // The largest is where gelu turns, after small ones.
  std::vector<float> turning = given;
  for (float& v : turning)
    v = -0.01f * std::abs(v);
  turning[2150000 - kQuantizeParts * 4096] = 0.1f;  // of the same thread
  turning[2150000] = -0.75f;
  check<T>(checker, "turning", turning, 0, true);
  // Negative numbers alone: the largest is where gelu turns, and far out it is zero.
  std::vector<float> negative;
  for (int i = 1; i <= 5000; ++i)
    negative.push_back(-0.002f * static_cast<float>(i));
  check<T>(checker, "negative", negative, 0, true);
  negative.push_back(300);
  check<T>(checker, "one is large", negative, 0, true);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    negative.back() = bad;
    check<T>(checker, "NaN or infinity", negative, 0, true);
  }
}

void check_arguments(Checker& checker) {
  Quantize call;
  call.count = -1;
  checker.check("a negative count", quantize(call, nullptr) == cudaErrorInvalidValue);
  call.count = 0;
  call.given = -1;
  checker.check("a negative number of parts", quantize(call, nullptr) == cudaErrorInvalidValue);
}

void time_bf16(Checker&) {
  constexpr std::size_t kCount = std::size_t{8192} * 4096;
  const DeviceArray<__nv_bfloat16> x(as<__nv_bfloat16>(noise(kCount, 1)));
  const DeviceArray<std::uint8_t> values(kCount);
  const DeviceArray<float> scale(1);
  const DeviceArray<std::uint32_t> largest(kQuantizeParts);
  for (const bool gelu : {false, true}) {
    const Quantize call{Type::bf16,   gelu,        x.get(),      static_cast<std::int64_t>(kCount),
                        values.get(), scale.get(), largest.get()};
    time_launch(gelu ? "gelu to FP8 8192 x 4096 bf16" : "quantize 8192 x 4096 bf16", 5.0 * kCount,
                0, [&] { return quantize(call, nullptr); });
  }
}

void tests(Checker& checker) {
  check_type<float>(checker);
  check_type<__nv_bfloat16>(checker);
  check_gelu<float>(checker);
  check_gelu<__nv_bfloat16>(checker);
  check_arguments(checker);
  if (timed()) time_bf16(checker);
}

}  // namespace

int main() {
  return run(tests);
}
