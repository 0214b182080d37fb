// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <limits>
#include <memory>

#include "kernel_test.h"
#include "optimizer.h"

using namespace vfm::test;
using vfm::kernels::AdamwCall;
using vfm::kernels::ClipScale;
using vfm::kernels::kGradientPartials;
using vfm::kernels::kOptimizerChunk;
using vfm::kernels::OptimizerChunk;
using vfm::kernels::OptimizerSlot;
using vfm::kernels::OptimizerSlots;
using vfm::kernels::Type;
using Halves = std::vector<std::uint16_t>;

namespace {

// A float array that is f32 or bf16 on the device.
class Numbers {
 public:
  Numbers(const std::vector<float>& values, Type type)
      : type_(type), f32_(values), bf16_(as<__nv_bfloat16>(values)) {}
  void* get() const { return type_ == Type::f32 ? static_cast<void*>(f32_.get()) : bf16_.get(); }
  std::vector<float> host() const {
    if (type_ == Type::f32) return f32_.host();
    std::vector<float> result;
    for (const auto v : bf16_.host())
      result.push_back(value(v));
    return result;
  }

 private:
  Type type_;
  DeviceArray<float> f32_;
  DeviceArray<__nv_bfloat16> bf16_;
};

struct Form {
  bool split = false;
  Type moment = Type::f32;
  bool ema = true;
};

// One parameter on the device.
struct Parameter {
  Form form;
  float decay;
  std::size_t count;
  DeviceArray<float> value_;
  DeviceArray<std::uint16_t> high, low;
  DeviceArray<float> gradient;
  Numbers first, second;
  DeviceArray<float> ema;

  Parameter(const Form& f, float weight_decay, const std::vector<float>& w,
            const std::vector<float>& g, const std::vector<float>& m, const std::vector<float>& v,
            const std::vector<float>& average)
      : form(f),
        decay(weight_decay),
        count(w.size()),
        value_(w),
        high(halves(w, 16)),
        low(halves(w, 0)),
        gradient(g),
        first(m, f.moment),
        second(v, f.moment),
        ema(average) {}

  // shift 16: rounded to nearest, ties away from zero; 0: the rest.
  static Halves halves(const std::vector<float>& values, int shift) {
    Halves result;
    for (const float v : values)
      result.push_back(static_cast<std::uint16_t>(
          (std::bit_cast<unsigned>(v) + (shift == 16 ? 0x8000u : 0u)) >> shift));
    return result;
  }
  OptimizerSlot slot() const {
    OptimizerSlot s;
    if (form.split)
      s.high = high.get(), s.low = low.get();
    else
      s.value = value_.get();
    s.gradient = gradient.get();
    s.first_moment = first.get(), s.second_moment = second.get(), s.moment_type = form.moment;
    if (form.ema) s.ema = ema.get();
    s.count = static_cast<std::int64_t>(count);
    s.weight_decay = decay;
    return s;
  }
  std::vector<float> weights() const {
    if (!form.split) return value_.host();
    const Halves h = high.host(), l = low.host();
    std::vector<float> result;
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(joined(h[i], l[i]));
    return result;
  }
  static float joined(std::uint16_t high, std::uint16_t low) {
    return std::bit_cast<float>((unsigned{high} << 16) +
                                static_cast<unsigned>(static_cast<std::int16_t>(low)));
  }
};

using Parameters = std::vector<std::unique_ptr<Parameter>>;

// The arrays of slots and chunks of a model.
struct Model {
  std::vector<OptimizerChunk> host_chunks;
  DeviceArray<OptimizerSlot> slots;
  DeviceArray<OptimizerChunk> chunks;

  explicit Model(const Parameters& parameters)
      : host_chunks(chunks_of(parameters)), slots(slots_of(parameters)), chunks(host_chunks) {}
  static std::vector<OptimizerSlot> slots_of(const Parameters& parameters) {
    std::vector<OptimizerSlot> result;
    for (const auto& p : parameters)
      result.push_back(p->slot());
    return result;
  }
  static std::vector<OptimizerChunk> chunks_of(const Parameters& parameters) {
    std::vector<std::int64_t> counts;
    for (const auto& p : parameters)
      counts.push_back(static_cast<std::int64_t>(p->count));
    const int n = static_cast<int>(counts.size());
    std::vector<OptimizerChunk> result(vfm::kernels::optimizer_chunks(counts.data(), n, nullptr));
    vfm::kernels::optimizer_chunks(counts.data(), n, result.data());
    return result;
  }
  OptimizerSlots all() const {
    return {slots.get(), chunks.get(), static_cast<std::int64_t>(host_chunks.size())};
  }
};

std::vector<float> rounded(const std::vector<float>& values) {
  std::vector<float> result;
  for (const auto v : as<__nv_bfloat16>(values))
    result.push_back(value(v));
  return result;
}

const AdamwCall kUsual = {.all = {},
                          .learning_rate = 3e-3f,
                          .beta1 = 0.85f,
                          .beta2 = 0.98f,
                          .epsilon = 1e-6f,
                          .gradient_scale = 0.37f,
                          .ema_decay = 0.95f,
                          .step = 3};

// Numbers that both types of moments hold, so that the forms begin alike.
std::unique_ptr<Parameter> make(const Form& form, std::size_t count, unsigned seed, float decay) {
  auto squares = noise(count, seed + 3);
  for (float& v : squares)
    v *= v;
  return std::make_unique<Parameter>(
      form, decay, noise(count, seed), rounded(noise(count, seed + 1)),
      rounded(noise(count, seed + 2)), rounded(squares), noise(count, seed + 4));
}

struct Result {
  std::vector<double> w, m, v, ema;  // by the formula in double
};

Result solve(const Parameter& p, const AdamwCall& c, double scale) {
  const auto w = p.weights(), g = p.gradient.host(), m = p.first.host(), v = p.second.host(),
             ema = p.ema.host();
  Result r;
  for (std::size_t i = 0; i < p.count; ++i) {
    const double gi = scale * g[i];
    r.m.push_back(c.beta1 * double{m[i]} + (1 - double{c.beta1}) * gi);
    r.v.push_back(c.beta2 * double{v[i]} + (1 - double{c.beta2}) * gi * gi);
    const double mean = r.m[i] / (1 - std::pow(double{c.beta1}, static_cast<double>(c.step)));
    const double square = r.v[i] / (1 - std::pow(double{c.beta2}, static_cast<double>(c.step)));
    r.w.push_back(w[i] * (1 - double{c.learning_rate} * p.decay) -
                  c.learning_rate * mean / (std::sqrt(square) + c.epsilon));
    r.ema.push_back(c.ema_decay * double{ema[i]} + (1 - double{c.ema_decay}) * r.w[i]);
  }
  return r;
}

void check_result(Checker& checker, const std::string& name, const Parameter& p, const Result& r) {
  const double moment = p.form.moment == Type::f32 ? 2e-7 : 4e-3;
  checker.close(name + " w", p.weights(), r.w, 3e-7);
  checker.close(name + " m", p.first.host(), r.m, moment);
  checker.close(name + " v", p.second.host(), r.v, moment);
  if (p.form.ema) checker.close(name + " ema", p.ema.host(), r.ema, 3e-7);
}

std::vector<Form> all_forms() {
  std::vector<Form> forms;
  for (const bool split : {false, true})
    for (const Type moment : {Type::f32, Type::bf16})
      for (const bool ema : {true, false})
        forms.push_back({split, moment, ema});
  return forms;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// All forms of the same parameter in one launch, and others beside them; three steps.
void check_step(Checker& checker, std::size_t count) {
  Parameters parameters;
  for (const Form& form : all_forms())
    parameters.push_back(make(form, count, 11, 0.1f));
  for (const std::size_t other : {std::size_t{1}, std::size_t{0}, count + 3})
    parameters.push_back(make({}, other, 29, 0.f));
  const Model model(parameters);
  const DeviceArray<float> scale(std::vector<float>{0.5f});
  AdamwCall call = kUsual;
  call.all = model.all();
  for (call.step = 1; call.step <= 3; ++call.step) {
    call.device_scale = call.step == 2 ? scale.get() : nullptr;
    std::vector<Result> expected;
    for (const auto& p : parameters)
      expected.push_back(solve(*p, call, call.gradient_scale * (call.step == 2 ? 0.5 : 1)));
    need(adamw(call, nullptr), "adamw");
    for (std::size_t i = 0; i < parameters.size(); ++i)
      check_result(checker,
                   "count " + std::to_string(count) + " step " + std::to_string(call.step) +
                       " slot " + std::to_string(i),
                   *parameters[i], expected[i]);
    if (call.step > 1) continue;
    // All began alike: weights are the same bits in every form, moments the f32's rounded.
    const Parameter& plain = *parameters[0];
    for (std::size_t i = 1; i < all_forms().size(); ++i) {
      const Parameter& p = *parameters[i];
      const bool low = p.form.moment == Type::bf16;
      const auto moments = [&](const Numbers& n) { return low ? rounded(n.host()) : n.host(); };
      checker.check("form " + std::to_string(i) + " has the bits of the plain one",
                    same_bits(p.weights(), plain.weights()) &&
                        (!p.form.ema || same_bits(p.ema.host(), plain.ema.host())) &&
                        same_bits(p.first.host(), moments(plain.first)) &&
                        same_bits(p.second.host(), moments(plain.second)));
    }
  }
}

// Arrays that begin `skip` elements behind an aligned address give what aligned ones give.
void check_alignment(Checker& checker, std::size_t skip) {
  for (const Form& form : all_forms()) {
    Parameters parameters;
    parameters.push_back(make(form, 777 + skip, 11, 0.1f));
    parameters.push_back(make(form, 777 + skip, 11, 0.1f));
    OptimizerSlot whole = parameters[0]->slot(), part = parameters[1]->slot();
    const auto later = [&](void* p, Type type) -> void* {
      return static_cast<unsigned char*>(p) + skip * (type == Type::f32 ? 4 : 2);
    };
    if (form.split)
      part.high += skip, part.low += skip;
    else
      part.value += skip;
    part.gradient += skip;
    part.first_moment = later(part.first_moment, form.moment);
    part.second_moment = later(part.second_moment, form.moment);
    if (form.ema) part.ema += skip;
    part.count -= static_cast<std::int64_t>(skip);
    const DeviceArray<OptimizerSlot> slots(std::vector<OptimizerSlot>{whole, part});
    const DeviceArray<OptimizerChunk> chunks(std::vector<OptimizerChunk>{{0, 0}, {1, 0}});
    AdamwCall call = kUsual;
    call.all = {slots.get(), chunks.get(), 2};
    need(adamw(call, nullptr), "adamw");
    const auto expected = parameters[0]->weights(), got = parameters[1]->weights();
    checker.check("a part that begins at " + std::to_string(skip),
                  std::memcmp(expected.data() + skip, got.data() + skip, 777 * sizeof(float)) == 0);
    const DeviceArray<double> partial(kGradientPartials), sum(1ul);
    need(gradient_squares(OptimizerSlots{slots.get() + 1, chunks.get(), 1}, partial.get(),
                          sum.get(), nullptr),
         "squares");
    double squares = 0;
    const std::vector<float> gradient = parameters[1]->gradient.host();
    for (std::size_t i = skip; i < gradient.size(); ++i)
      squares += double{gradient[i]} * gradient[i];
    checker.check("squares of such a part", std::abs(sum.host()[0] - squares) <= 1e-12 * squares);
  }
}

// torch 2, torch.optim.AdamW(lr=1e-2, betas=(.9, .99), eps=1e-8, weight_decay=.1), float32: the
// numbers of tests/unit/train/optimizer_test.cc.
void check_torch(Checker& checker) {
  const std::vector<std::vector<float>> gradients = {
      {0.1f, -0.2f, 0.0f, 5.0f}, {-0.3f, 0.4f, 1e-6f, -2.5f}, {0.2f, 0.1f, -3.0f, 0.25f}};
  const std::vector<double> expected = {0.49326184391975403, -1.2440853118896484, 1.993051528930664,
                                        -0.013998211361467838};
  std::vector<float> w = {0.5f, -1.25f, 2.0f, 0.001f}, m(4), v(4);
  for (int step = 1; step <= 3; ++step) {
    Parameters one;
    one.push_back(std::make_unique<Parameter>(Form{true, Type::f32, false}, 0.1f, w,
                                              gradients[step - 1], m, v, w));
    const Model model(one);
    AdamwCall call;
    call.all = model.all(), call.learning_rate = 1e-2f, call.step = step;
    need(adamw(call, nullptr), "adamw");
    w = one[0]->weights(), m = one[0]->first.host(), v = one[0]->second.host();
  }
  checker.close("three steps as PyTorch's", w, expected, 3e-7);
}

void check_adversarial(Checker& checker) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  for (const Form& form : all_forms()) {
    Parameters one;
    const std::vector<float> g = {kNan, kInf, 1e15f, -1e15f, 1e-30f, 0, 1, -kInf, 1};
    one.push_back(std::make_unique<Parameter>(form, 0.1f, noise(9, 1), g, std::vector<float>(9),
                                              std::vector<float>(9), noise(9, 2)));
    const Model model(one);
    AdamwCall call = kUsual;
    call.all = model.all();
    const DeviceArray<float> scale(std::vector<float>{kNan});
    call.device_scale = scale.get();
    const auto before = one[0]->weights(), first = one[0]->first.host();
    need(adamw(call, nullptr), "adamw");
    checker.check("a bad scale is skipped",
                  same_bits(before, one[0]->weights()) && same_bits(first, one[0]->first.host()));
    call.device_scale = nullptr;
    Result r = solve(*one[0], call, call.gradient_scale);
    need(adamw(call, nullptr), "adamw");
    // The squares are large for a common tolerance; NaN and infinity must stand where they should.
    for (const auto& [got, want] : {std::pair{one[0]->weights(), r.w},
                                    {one[0]->first.host(), r.m},
                                    {one[0]->second.host(), r.v}})
      checker.close("NaN and infinity", got, want, 4e-3);
  }
}

// A split master holds every f32 exactly; its high half is the nearest bf16.
void check_split(Checker& checker) {
  std::vector<float> values = noise(777, 5);
  for (const unsigned bits : {0u, 0x80000000u, 0x3f808000u, 0xbf808000u, 0x3f807fffu, 0x3f818000u,
                              0x7f800000u, 0xff800000u, 0x7f7fffffu, 1u, 0x807fffffu, 0x3fffffffu})
    values.push_back(std::bit_cast<float>(bits));
  for (const unsigned bits : {0x7fffffffu, 0xffffffffu, 0x7f800001u, 0x7fc00000u})
    values.push_back(std::bit_cast<float>(bits));
  const auto count = static_cast<std::int64_t>(values.size());
  const DeviceArray<float> weights(values), again(values.size());
  const DeviceArray<std::uint16_t> high(values.size()), low(values.size());
  need(vfm::kernels::split_weights(weights.get(), high.get(), low.get(), count, nullptr), "split");
  need(vfm::kernels::join_weights(high.get(), low.get(), again.get(), count, nullptr), "join");
  const Halves h = high.host();
  const std::vector<float> back = again.host();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = "split weight " + std::to_string(i);
    const float bf16 = std::bit_cast<float>(unsigned{h[i]} << 16);
    if (std::isnan(values[i])) {
      checker.check(name + " is NaN", std::isnan(bf16) && std::isnan(back[i]));
      continue;
    }
    checker.check(name, std::bit_cast<unsigned>(back[i]) == std::bit_cast<unsigned>(values[i]));
    if (std::isfinite(bf16))
      checker.check(name + " is near", std::abs(bf16 - values[i]) <=
                                           std::abs(value(__nv_bfloat16(values[i])) - values[i]));
  }
  checker.check("a negative number of weights",
                vfm::kernels::split_weights(weights.get(), high.get(), low.get(), -1, nullptr) ==
                    cudaErrorInvalidValue);
}

// Sum of squares and the scale from it.
void check_norm(Checker& checker, const Parameters& parameters, const std::string& name) {
  const Model model(parameters);
  const DeviceArray<double> partial(kGradientPartials), sum(2ul), norm(1ul);
  const DeviceArray<float> scale(1ul);
  for (const int i : {0, 1})
    need(gradient_squares(model.all(), partial.get(), sum.get() + i, nullptr), "squares");
  const std::vector<double> got = sum.host();
  double expected = 0;
  for (const auto& p : parameters)
    for (const float g : p->gradient.host())
      expected += double{g} * g;
  const double root = std::sqrt(expected);
  const auto same = [](double a, double b, double tolerance) {
    return std::isfinite(b) ? std::abs(a - b) <= tolerance * b
                            : (std::isnan(b) ? std::isnan(a) : a == b);
  };
  checker.check(name + ": sum of squares", same(got[0], expected, 1e-14));
  checker.check(name + ": the same bits again", std::memcmp(&got[0], &got[1], 8) == 0);
  for (const double factor : {1.0, 0.01})
    for (const double most : {0.0, 0.5 * factor * root, 2 * factor * root, 1.0}) {
      ClipScale call;
      call.sum = sum.get(), call.factor = factor, call.most = most;
      call.norm = most == 1 ? nullptr : norm.get();
      call.scale = scale.get();
      need(clip_scale(call, nullptr), "clip");
      double want = most > 0 && root > 0 ? factor * std::min(1.0, most / (factor * root)) : factor;
      if (!std::isfinite(root)) want = std::nan("");
      checker.check(name + ": scale", same(scale.host()[0], want, 1e-7));
      if (call.norm) checker.check(name + ": norm", same(norm.host()[0], factor * root, 1e-14));
    }
}

void check_norms(Checker& checker) {
  Parameters parameters;
  check_norm(checker, parameters, "nothing");
  for (const std::size_t count : {1, 7, 0, 300})
    parameters.push_back(make({}, count, 3 + count, 0));
  check_norm(checker, parameters, "small");
  parameters.push_back(make({}, kOptimizerChunk + 5, 7, 0));
  parameters.push_back(make({}, 2 * kOptimizerChunk, 8, 0));
  check_norm(checker, parameters, "chunks");
  for (const float special : {1e30f, 3e38f, -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(), 0.f}) {
    Parameters some;
    if (special != 0) some.push_back(make({}, 30, 3, 0));
    std::vector<float> g(11);
    g[9] = special;
    some.push_back(std::make_unique<Parameter>(Form{}, 0.f, g, g, g, g, g));
    check_norm(checker, some, std::to_string(special));
  }
  parameters.clear();
  for (int i = 0; i < kGradientPartials + 9; ++i)
    parameters.push_back(make({}, 2, i, 0));
  check_norm(checker, parameters, "more slots than blocks");
  std::vector<float> zeros(5);
  parameters.clear();
  parameters.push_back(std::make_unique<Parameter>(Form{}, 0.f, zeros, zeros, zeros, zeros, zeros));
  check_norm(checker, parameters, "zeros");
}

void time_form(const Form& form, const std::string& name, double bytes) {
  Parameters parameters;
  constexpr std::size_t kCount = 4096ul * 4096 * 4;
  const std::vector<float> values(kCount, 1.f), norms(4096, 1.f);
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(
        std::make_unique<Parameter>(form, 0.f, values, values, values, values, values));
    parameters.push_back(std::make_unique<Parameter>(form, 0.f, norms, norms, norms, norms, norms));
  }
  const Model model(parameters);
  AdamwCall call;
  call.all = model.all();
  const DeviceArray<double> partial(kGradientPartials), sum(1ul);
  time_launch("adamw " + name, bytes * 4 * kCount, 0, [&] { return adamw(call, nullptr); });
  time_launch("gradient squares " + name, 16.0 * kCount, 0,
              [&] { return gradient_squares(model.all(), partial.get(), sum.get(), nullptr); });
}

void tests(Checker& checker) {
  check_step(checker, 8);
  check_step(checker, 1037);
  Parameters large;
  large.push_back(make({true, Type::bf16, true}, 2 * kOptimizerChunk + 13, 5, 0.1f));
  const Model model(large);
  AdamwCall call = kUsual;
  call.all = model.all();
  const Result expected = solve(*large[0], call, call.gradient_scale);
  need(adamw(call, nullptr), "adamw");
  check_result(checker, "many chunks", *large[0], expected);
  check_torch(checker);
  for (const std::size_t skip : {1, 2, 4})
    check_alignment(checker, skip);
  check_adversarial(checker);
  check_split(checker);
  check_norms(checker);
  call.step = 0;
  checker.check("step 0 is refused", adamw(call, nullptr) == cudaErrorInvalidValue);
  checker.check("no chunks are no error", adamw(AdamwCall{}, nullptr) == 0);
  if (!timed()) return;
  time_form({false, Type::f32, false}, "f32", 28);
  time_form({false, Type::f32, true}, "f32 with ema", 36);
  time_form({true, Type::f32, false}, "split", 28);
  time_form({true, Type::bf16, false}, "split, bf16 moments", 20);
}

}  // namespace

int main() {
  return run(tests);
}
