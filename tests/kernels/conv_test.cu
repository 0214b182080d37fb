// SPDX-License-Identifier: Apache-2.0
#include "conv.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

// One convolution: x of images that may overlap, weights [out, in, taps].
struct Case {
  const char* name;
  ConvGather gather;
  int out;
};

std::size_t source_size(const ConvGather& g) {
  return static_cast<std::size_t>((g.images - 1) * g.step) +
         static_cast<std::size_t>(g.frames) * g.height * g.width * g.channels;
}

// Offset of what row r sees by a tap, or -1.
std::int64_t seen(const ConvGather& g, std::int64_t r, int tap) {
  const int kx = tap % g.kernel_width, ky = tap / g.kernel_width % g.kernel_height,
            kt = tap / g.kernel_width / g.kernel_height;
  const std::int64_t line = r / g.out_width, plane = line / g.out_height;
  const std::int64_t image = plane / g.out_frames;
  std::int64_t t = plane % g.out_frames, y = line % g.out_height, x = r % g.out_width;
  if (g.back) {
    t += g.pad_front - kt, y += g.pad_top - ky, x += g.pad_left - kx;
    if (t < 0 || y < 0 || x < 0 || t % g.stride_t || y % g.stride_y || x % g.stride_x) return -1;
    t /= g.stride_t, y /= g.stride_y, x /= g.stride_x;
  } else {
    t = t * g.stride_t - g.pad_front + kt;
    y = y * g.stride_y - g.pad_top + ky, x = x * g.stride_x - g.pad_left + kx;
  }
  if (t < 0 || y < 0 || x < 0 || t >= g.frames || y >= g.height || x >= g.width) return -1;
  return image * g.step + ((t * g.height + y) * g.width + x) * g.channels;
}

template <class T>
std::string label(const Case& c, const char* what) {
  return std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") + c.name + " " +
         std::to_string(c.gather.channels) + " -> " + std::to_string(c.out) + what;
}

template <class T>
constexpr Type type_of() {
  return sizeof(T) == 2 ? Type::bf16 : Type::f32;
}

template <class T>
void compare_product(Checker& checker, const Case& c) {
  const ConvGather& g = c.gather;
  const int taps = g.taps(), depth = g.depth();
  const auto size = static_cast<std::size_t>(g.rows()) * c.out;
  const auto x = as<T>(noise(source_size(g), 1)), residual = as<T>(noise(size, 2));
  const auto w = as<T>(noise(static_cast<std::size_t>(c.out) * depth, 3));
  const auto bias = noise(static_cast<std::size_t>(c.out), 4);
  const DeviceArray<T> dx(x), dw(w), arranged(w.size()), dresidual(residual), y(size);
  const DeviceArray<float> dbias(bias);
  // Backwards the weights given are [source channels, columns, taps].
  need(conv_arrange(type_of<T>(), dw.get(), arranged.get(), g.back ? g.channels : c.out,
                    g.back ? c.out : g.channels, taps, g.back, nullptr),
       "arrange");
  ConvProduct call;
  call.gather = g, call.type = type_of<T>(), call.columns = c.out;
  call.source = dx.get(), call.weights = arranged.get(), call.bias = dbias.get();
  call.residual = dresidual.get(), call.y = y.get();
  need(conv_product(call, nullptr), "product");
  std::vector<double> expected;
  for (std::int64_t r = 0; r < g.rows(); ++r)
    for (int n = 0; n < c.out; ++n) {
      double sum = bias[static_cast<std::size_t>(n)] + double{value(residual[expected.size()])};
      for (int tap = 0; tap < taps; ++tap) {
        const std::int64_t at = seen(g, r, tap);
        for (int i = 0; at >= 0 && i < g.channels; ++i)
          sum += double{value(x[static_cast<std::size_t>(at + i)])} *
                 value(w[static_cast<std::size_t>(
                     (g.back ? i * c.out + n : n * g.channels + i) * taps + tap)]);
      }
      expected.push_back(sum);
    }
  checker.close(label<T>(c, ""), y.host(), expected, sizeof(T) == 2 ? 4e-3 : 4e-6);
}

template <class T>
void compare_weights(Checker& checker, const Case& c) {
  const ConvGather& g = c.gather;
  const int taps = g.taps(), depth = g.depth();
  const auto x = as<T>(noise(source_size(g), 1));
  const auto dy = as<T>(noise(static_cast<std::size_t>(g.rows()) * c.out, 2));
  const auto before = noise(static_cast<std::size_t>(c.out) * depth, 3);
  const auto bias_before = noise(static_cast<std::size_t>(c.out), 4);
  const auto chunks = static_cast<int>((g.rows() + kConvChunk - 1) / kConvChunk);
  const DeviceArray<T> dx(x), ddy(dy);
  const DeviceArray<float> dw(before), dbias(bias_before),
      partial(static_cast<std::size_t>(chunks) * before.size()),
      rows(static_cast<std::size_t>(kConvBiasParts) * c.out);
  ConvWeights call;
  call.gather = g, call.type = type_of<T>(), call.columns = c.out;
  call.source = dx.get(), call.dy = ddy.get();
  call.chunks = chunks, call.partial = partial.get();
  need(conv_weights(call, nullptr), "weights");
  need(conv_add_weights(partial.get(), chunks, dw.get(), c.out, g.channels, taps, nullptr), "add");
  need(conv_bias(type_of<T>(), ddy.get(), g.rows(), c.out, rows.get(), dbias.get(), nullptr),
       "bias");
  std::vector<double> expected(before.begin(), before.end());
  std::vector<double> sums(bias_before.begin(), bias_before.end());
  for (std::int64_t r = 0; r < g.rows(); ++r)
    for (int n = 0; n < c.out; ++n) {
      const double d = value(dy[static_cast<std::size_t>(r * c.out + n)]);
      sums[static_cast<std::size_t>(n)] += d;
      for (int tap = 0; tap < taps; ++tap) {
        const std::int64_t at = seen(g, r, tap);
        for (int i = 0; at >= 0 && i < g.channels; ++i)
          expected[static_cast<std::size_t>((n * g.channels + i) * taps + tap)] +=
              d * value(x[static_cast<std::size_t>(at + i)]);
      }
    }
  // See kConvChunk.
  checker.close(label<T>(c, ", weights"), dw.host(), expected, sizeof(T) == 2 ? 1e-4 : 1e-5);
  checker.close(label<T>(c, ", bias"), dbias.host(), sums, 1e-5);
}

ConvGather image(std::int64_t images, int height, int width, int channels, int stride, int pad) {
  ConvGather g;
  g.images = images, g.height = height, g.width = width, g.channels = channels;
  g.step = std::int64_t{height} * width * channels;
  g.kernel_height = g.kernel_width = 3;
  g.stride_y = g.stride_x = stride, g.pad_top = g.pad_left = pad;
  // Padded by one below and at the right.
  g.out_height = (height + pad + 1 - 3) / stride + 1,
  g.out_width = (width + pad + 1 - 3) / stride + 1;
  return g;
}

// `images` videos of `frames` frames, with `front` and no later zeros in time.
ConvGather video(int images, int frames, int front, int stride_t, ConvGather g) {
  g.images = images, g.frames = frames;
  g.kernel_frames = 3, g.pad_front = front, g.stride_t = stride_t;
  g.out_frames = (frames + front - 3) / stride_t + 1;
  g.step *= frames;
  return g;
}

// What the gradient of such a convolution's input is gathered from.
ConvGather back(ConvGather g, int out) {
  std::swap(g.height, g.out_height), std::swap(g.width, g.out_width);
  std::swap(g.frames, g.out_frames);
  g.channels = out, g.step = std::int64_t{g.frames} * g.height * g.width * out, g.back = true;
  return g;
}

// Three frames of an image of `pixels` columns, of images that overlap; stride in time.
ConvGather time(std::int64_t frames, int pixels, int channels, int stride) {
  ConvGather g;
  g.images = frames, g.height = 3, g.width = pixels, g.channels = channels;
  g.step = std::int64_t{stride} * pixels * channels;
  g.kernel_height = 3, g.out_height = 1, g.out_width = pixels;
  return g;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [in, out] :
       std::vector<std::pair<int, int>>{{3, 5}, {8, 8}, {24, 136}, {72, 64}}) {
    all.push_back({"3x3", image(2, 5, 7, in, 1, 1), out});
    all.push_back({"3x3, halved", image(2, 6, 4, in, 2, 0), out});
    all.push_back({"in time", time(3, 7, in, 1), out});
    all.push_back({"in time, halved", time(2, 5, in, 2), out});
    all.push_back({"3x3x3", video(2, 4, 2, 1, image(1, 5, 7, in, 1, 1)), out});
    all.push_back({"3x3x3, halved", video(1, 5, 0, 2, image(1, 6, 4, in, 2, 0)), out});
    all.push_back({"3x3 back", back(image(2, 5, 7, in, 1, 1), out), in});
    all.push_back({"3x3x3 back", back(video(2, 4, 2, 1, image(1, 5, 7, in, 1, 1)), out), in});
    all.push_back(
        {"3x3x3, halved, back", back(video(1, 5, 0, 2, image(1, 6, 4, in, 2, 0)), out), in});
    all.push_back({"3x3, halved, back", back(image(2, 6, 4, in, 2, 0), out), in});
  }
  all.push_back({"a pixel", image(1, 1, 1, 16, 1, 1), 8});
  all.push_back({"many rows", image(1, 96, 90, 8, 1, 1), 8});  // more than one chunk
  if (!small()) {
    all.push_back({"3x3", image(3, 41, 37, 128, 1, 1), 256});
    all.push_back({"3x3x3", video(1, 3, 2, 1, image(1, 41, 37, 128, 1, 1)), 256});
    all.push_back({"3x3 back", back(image(2, 41, 37, 256, 1, 1), 128), 256});
    all.push_back({"in time", time(5, 1001, 192, 1), 192});
  }
  return all;
}

void test_refusals(Checker& checker) {
  const DeviceArray<float> a(64);
  ConvProduct p;
  p.gather = image(1, 2, 2, 1, 1, 1), p.columns = 0;
  p.source = p.weights = a.get(), p.y = a.get();
  checker.check("no columns are refused", conv_product(p, nullptr) == cudaErrorInvalidValue);
  p.columns = 1, p.gather.width = 1 << 20, p.gather.height = 1 << 20;
  checker.check("too large an image is refused", conv_product(p, nullptr) == cudaErrorInvalidValue);
  p.gather = image(1, 2, 2, 1, 1, 1), p.gather.frames = 0;
  checker.check("no frames are refused", conv_product(p, nullptr) == cudaErrorInvalidValue);
  ConvWeights w;
  w.gather = back(image(1, 2, 2, 1, 1, 1), 1), w.columns = 1, w.chunks = 1;
  checker.check("gradients of gradients are refused",
                conv_weights(w, nullptr) == cudaErrorInvalidValue);
  w.gather.back = false, w.chunks = 65536;
  checker.check("too many chunks are refused", conv_weights(w, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error",
                conv_product({}, nullptr) == 0 && conv_weights({}, nullptr) == 0);
}

void tests(Checker& checker) {
  for (const Case& c : cases()) {
    const bool large = c.gather.rows() * c.out * c.gather.depth() > 1e8;
    compare_product<__nv_bfloat16>(checker, c);
    if (!large) compare_product<float>(checker, c);
    if (c.gather.back) continue;
    compare_weights<__nv_bfloat16>(checker, c);
    if (!large) compare_weights<float>(checker, c);
  }
  test_refusals(checker);
}

}  // namespace

int main() {
  return run(tests);
}
