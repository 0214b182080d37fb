// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "modulate.h"

using vfm::kernels::ModulateForward;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

template <class T>
void compare(Checker& checker, int tokens, int width, int row_count, bool branch, bool extra,
             bool centred = true) {
  const auto size = static_cast<std::size_t>(tokens) * width;
  const auto x = noise(size, 1), plus = noise(size, 2), table = noise(3ul * width * row_count, 3);
  const auto side = as<T>(noise(size, 4));
  std::vector<std::int32_t> rows(tokens);
  for (int i = 0; i < tokens; ++i)
    rows[i] = (i * 7 / 5) % row_count;
  const DeviceArray<float> dx(x), dplus(plus), dtable(table), stream(size), moments(2ul * tokens);
  const DeviceArray<T> dside(side), normed(size);
  const DeviceArray<std::int32_t> drows(rows);
  ModulateForward call;
  call.tokens = tokens;
  call.width = width;
  call.centred = centred;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.x = dx.get();
  if (branch) call.branch = dside.get(), call.gate = dtable.get() + 2 * width;
  call.gate_stride = 3 * width;
  if (extra) call.extra = dplus.get();
  call.modulation = dtable.get();
  call.modulation_stride = 3 * width;
  call.rows = drows.get();
  if (branch || extra) call.stream = stream.get();
  call.normed = normed.get();
  call.moments = moments.get();
  need(modulate_forward(call, nullptr), "launch");

  std::vector<double> streams, normeds, means;
  for (int t = 0; t < tokens; ++t) {
    const float* row = table.data() + rows[t] * 3l * width;
    std::vector<double> v(width);
    double mean = 0, variance = 0;
    for (int i = 0; i < width; ++i) {
      const std::size_t at = static_cast<std::size_t>(t) * width + i;
      v[i] = x[at] + (branch ? double{row[2 * width + i]} * value(side[at]) : 0) +
             (extra ? plus[at] : 0);
      if (centred) mean += v[i] / width;
    }
    for (double u : v)
      variance += (u - mean) * (u - mean) / width;
    const double rstd = 1 / std::sqrt(variance + call.epsilon);
    means.insert(means.end(), {mean, rstd});
    streams.insert(streams.end(), v.begin(), v.end());
    for (int i = 0; i < width; ++i)
      normeds.push_back((v[i] - mean) * rstd * (1 + double{row[width + i]}) + row[i]);
  }
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") + std::to_string(tokens) +
                           " x " + std::to_string(width) + (centred ? "" : " rms");
  if (call.stream) checker.close(name + " stream", stream.host(), streams, 1e-6);
  checker.close(name + " moments", moments.host(), means, 1e-5);
  checker.close(name + " normed", normed.host(), normeds, sizeof(T) == 2 ? 4e-3 : 2e-6);
  if (!call.stream) return;
  const DeviceArray<float> alone(size);
  call.stream = alone.get(), call.normed = nullptr, call.moments = nullptr;
  call.modulation = nullptr;
  need(modulate_forward(call, nullptr), "launch without a norm");
  checker.check(name + " stream alone, the same bits", alone.host() == stream.host());
}

void time_bf16(int tokens, int width) {
  const auto size = static_cast<std::size_t>(tokens) * width;
  const DeviceArray<float> x(noise(size, 1)), table(noise(3ul * width, 2)), stream(size),
      moments(2ul * tokens);
  const DeviceArray<__nv_bfloat16> branch(as<__nv_bfloat16>(noise(size, 3))), normed(size);
  const DeviceArray<std::int32_t> rows(std::vector<std::int32_t>(tokens, 0));
  ModulateForward call;
  call.tokens = tokens;
  call.width = width;
  call.type = Type::bf16;
  call.x = x.get(), call.branch = branch.get(), call.gate = table.get() + 2 * width;
  call.modulation = table.get(), call.rows = rows.get();
  call.gate_stride = call.modulation_stride = 3 * width;
  call.stream = stream.get(), call.normed = normed.get(), call.moments = moments.get();
  time_launch("modulate bf16", 12.0 * static_cast<double>(size), 0,
              [&] { return modulate_forward(call, nullptr); });
}

void tests(Checker& checker) {
  for (const int width : {4, 192, 768, 1024, 1028, 4096, 5120, 12288}) {
    compare<float>(checker, 9, width, 5, true, true);
    compare<float>(checker, 3, width, 1, false, true);
    compare<__nv_bfloat16>(checker, 9, width, 5, true, false);
    compare<__nv_bfloat16>(checker, 2, width, 2, false, false);
    compare<float>(checker, 2, width, 2, false, false, false);
    compare<float>(checker, 3, width, 2, true, true, false);
    compare<__nv_bfloat16>(checker, 3, width, 2, true, false, false);
  }
  ModulateForward odd;
  odd.tokens = 1;
  odd.width = 6;
  checker.check("an odd width is refused", modulate_forward(odd, nullptr) == cudaErrorInvalidValue);
  checker.check("no tokens are no error", modulate_forward(ModulateForward{}, nullptr) == 0);
  if (timed()) time_bf16(8192, 4096);
}

}  // namespace

int main() {
  return run(tests);
}
