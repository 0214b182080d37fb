// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "regroup.h"

using vfm::kernels::Regroup;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

struct Sizes {
  int rows, columns, fine, coarse, space, frames;
};

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  std::vector<double> result;
  for (const T v : values)
    result.push_back(value(v));
  return result;
}

// Where value `i` of a patch is in frame t of the fine picture; none if it is in another frame.
bool place_of(const Sizes& s, int row, int column, int i, int t, std::size_t& at) {
  const int square = s.space * s.space, pixel = i % (s.frames * square);
  if (pixel / square != t) return false;
  const int y = row * s.space + pixel % square / s.space,
            x = column * s.space + pixel % square % s.space;
  at = (static_cast<std::size_t>(y) * s.columns * s.space + x) * s.fine + i / (s.frames * square);
  return true;
}

template <class T>
void compare(Checker& checker, const Sizes& s) {
  const int square = s.space * s.space, values = s.fine * s.frames * square;
  const int group = values / s.coarse;
  const auto few = static_cast<std::size_t>(s.rows) * s.columns * s.coarse;
  const auto many = static_cast<std::size_t>(s.rows) * s.columns * s.fine * square;
  const auto coarse = as<T>(noise(few, 1));
  std::vector<double> means(few);
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") + std::to_string(s.fine) +
                           " and " + std::to_string(s.coarse) + " channels";
  const double tolerance = sizeof(T) == 2 ? 8e-3 : 1e-6;
  Regroup call;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.rows = s.rows, call.columns = s.columns;
  call.fine_channels = s.fine, call.coarse_channels = s.coarse;
  call.space = s.space, call.frames = s.frames;
  const DeviceArray<T> pooled(few), given(coarse);
  for (int t = 0; t < s.frames; ++t) {
    const auto fine = as<T>(noise(many, 2 + t));
    std::vector<double> repeated(many);
    for (int row = 0; row < s.rows; ++row)
      for (int column = 0; column < s.columns; ++column)
        for (int i = 0; i < values; ++i) {
          std::size_t at = 0;
          if (!place_of(s, row, column, i, t, at)) continue;
          const std::size_t pixel =
              (static_cast<std::size_t>(row) * s.columns + column) * s.coarse + i / group;
          means[pixel] += double{value(fine[at])} / group;
          repeated[at] = value(coarse[pixel]);
        }
    const DeviceArray<T> x(fine), y(many);
    call.frame = t;
    call.add = t > 0;
    call.x = x.get(), call.y = pooled.get();
    need(vfm::kernels::pool_patches(call, nullptr), "pool_patches");
    call.x = given.get(), call.y = y.get();
    need(vfm::kernels::repeat_patches(call, nullptr), "repeat_patches");
    checker.close(name + " repeated", y.host(), repeated, 0);
  }
  checker.close(name + " pooled", pooled.host(), means, tolerance);
}

void tests(Checker& checker) {
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1}, Sizes{3, 5, 4, 8, 2, 2}, Sizes{2, 3, 6, 6, 2, 1},
                         Sizes{2, 150, 4, 2, 1, 2}, Sizes{2, 3, 5, 40, 2, 2}}) {
    compare<float>(checker, s);
    compare<__nv_bfloat16>(checker, s);
  }
  Regroup call;
  checker.check("nothing is no error", vfm::kernels::pool_patches(call, nullptr) == 0);
  call.rows = call.columns = 1, call.fine_channels = 2, call.coarse_channels = 3;
  checker.check("channels that do not divide are refused",
                vfm::kernels::repeat_patches(call, nullptr) == cudaErrorInvalidValue);
  call.coarse_channels = 2, call.frame = 1;
  checker.check("a frame that is not there is refused",
                vfm::kernels::pool_patches(call, nullptr) == cudaErrorInvalidValue);
}

}  // namespace

int main() {
  return run(tests);
}
