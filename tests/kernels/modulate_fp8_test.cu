// Modulate that writes E4M3 against the two steps that it joins, and against their definitions: to
// the last bit, as both are computed in the same order.
// SPDX-License-Identifier: Apache-2.0
#include "fp8_reference.h"
#include "kernel_test.h"
#include "modulate_fp8.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Case {
  int tokens = 0, width = 0, rows = 1;
  bool branch = false, extra = false, centred = true;
  float peak = 0;  ///< an element of the last token, if it is not 0
};

/// What a call reads and writes.
template <class T>
struct Arrays {
  std::size_t size;
  DeviceArray<float> x, extra, table, stream, moments;
  DeviceArray<T> branch;
  DeviceArray<std::int32_t> rows;

  static std::vector<float> stream_of(const Case& c, std::size_t size) {
    std::vector<float> values = noise(size, 1);
    if (c.peak != 0) values[size - 2] = c.peak;
    return values;
  }
  static std::vector<std::int32_t> rows_of(const Case& c) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(c.tokens));
    for (int i = 0; i < c.tokens; ++i)
      rows[static_cast<std::size_t>(i)] = i * 7 / 5 % c.rows;
    return rows;
  }
  explicit Arrays(const Case& c)
      : size(static_cast<std::size_t>(c.tokens) * c.width),
        x(stream_of(c, size)),
        extra(noise(size, 2)),
        table(noise(3ul * c.width * c.rows, 3)),
        stream(size),
        moments(2ul * c.tokens),
        branch(as<T>(noise(size, 4))),
        rows(rows_of(c)) {}

  ModulateForward call(const Case& c) const {
    ModulateForward call;
    call.tokens = c.tokens, call.width = c.width;
    call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
    call.centred = c.centred;
    call.x = x.get();
    if (c.branch) call.branch = branch.get(), call.gate = table.get() + 2 * c.width;
    if (c.extra) call.extra = extra.get();
    call.modulation = table.get();
    call.gate_stride = call.modulation_stride = 3 * c.width;
    call.rows = rows.get();
    if (c.branch || c.extra) call.stream = stream.get();
    call.moments = moments.get();
    return call;
  }
};

template <class T>
void compare(Checker& checker, const Case& c) {
  const Arrays<T> two(c), one(c);
  const DeviceArray<T> normed(two.size);
  ModulateForward first = two.call(c);
  first.normed = normed.get();
  need(modulate_forward(first, nullptr), "modulate");
  const DeviceArray<std::uint8_t> values(one.size + 1);
  const DeviceArray<float> scale(1);
  const DeviceArray<std::uint32_t> maxima(static_cast<std::size_t>(c.tokens)),
      largest(kQuantizeParts);
  const ModulateFp8 call{one.call(c), values.get(), scale.get(), maxima.get(), largest.get()};
  need(modulate_fp8(call, nullptr), "modulate to FP8");

  const std::vector<T> expected = normed.host();
  float most = 0;
  for (const T v : expected)
    most = std::isnan(most) || std::isnan(value(v)) ? std::nanf("")
                                                    : std::max(most, std::abs(value(v)));
  const ReferenceScale by = fp8_scale_of(most);
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") +
                           std::to_string(c.tokens) + " x " + std::to_string(c.width) +
                           (c.branch ? " branch" : "") + (c.extra ? " extra" : "") +
                           (c.centred ? "" : " rms") + (c.peak != 0 ? " peak" : "");
  const float got = scale.host()[0];
  checker.check(name + ": scale", std::isnan(by.scale) ? std::isnan(got) : got == by.scale);
  const std::vector<std::uint8_t> codes = values.host();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong += codes[i] != fp8_code_of(value(expected[i]) * by.inverse);
  checker.check(name + ": " + std::to_string(wrong) + " values", wrong == 0);
  checker.check(name + ": nothing behind the values", codes.back() == 0xff);
  const auto same = [](const DeviceArray<float>& a, const DeviceArray<float>& b) {
    const std::vector<float> left = a.host(), right = b.host();  // with NaN among them
    return std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
  };
  if (first.stream) checker.check(name + ": stream", same(one.stream, two.stream));
  checker.check(name + ": moments", same(one.moments, two.moments));
}

template <class T>
void check_type(Checker& checker) {
  for (const int width : {4, 192, 1024, 1028, 4096, 5120, 12288}) {
    compare<T>(checker, {9, width, 5, true, true});
    compare<T>(checker, {3, width, 2, true, false, false});
    compare<T>(checker, {2, width, 2});
  }
  // More tokens than a block of the second pass has; rows that change within what is loaded at
  // once.
  compare<T>(checker, {16, 64, 1, true});
  compare<T>(checker, {67, 64, 3, true});
  // The largest is in the last token; nothing that is not finite may be overlooked.
  compare<T>(checker, {40, 256, 1, true, false, true, 1e4f});
  for (const float bad : {std::nanf(""), INFINITY})
    compare<T>(checker, {40, 256, 1, true, false, true, bad});
}

void check_arguments(Checker& checker) {
  const DeviceArray<float> scale(1);
  const DeviceArray<std::uint32_t> largest(kQuantizeParts);
  ModulateFp8 call;
  call.forward.width = 8;
  call.scale = scale.get(), call.largest = largest.get();
  need(modulate_fp8(call, nullptr), "no tokens");
  checker.check("no tokens: a scale", scale.host()[0] == fp8_scale_of(0).scale);
  call.forward.tokens = 1;
  call.forward.width = 6;
  checker.check("an odd width is refused", modulate_fp8(call, nullptr) == cudaErrorInvalidValue);
}

void time_bf16(int tokens, int width) {
  Case c{tokens, width, 1, true};
  const Arrays<__nv_bfloat16> arrays(c);
  const DeviceArray<std::uint8_t> values(arrays.size);
  const DeviceArray<float> scale(1);
  const DeviceArray<std::uint32_t> maxima(static_cast<std::size_t>(tokens)),
      largest(kQuantizeParts);
  const ModulateFp8 call{arrays.call(c), values.get(), scale.get(), maxima.get(), largest.get()};
  time_launch("modulate to FP8 bf16", 15.0 * static_cast<double>(arrays.size), 0,
              [&] { return modulate_fp8(call, nullptr); });
}

void tests(Checker& checker) {
  check_type<float>(checker);
  check_type<__nv_bfloat16>(checker);
  // Tokens for more than one part of the largest, and the largest in the last.
  compare<__nv_bfloat16>(checker, {4099, 4, 2, false, true, true, 1e4f});
  check_arguments(checker);
  if (timed()) time_bf16(8192, 4096);
}

}  // namespace

int main() {
  return run(tests);
}
