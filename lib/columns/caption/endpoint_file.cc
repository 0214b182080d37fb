// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/endpoint_file.h"

#include <concepts>

#include "base/error.h"
#include "base/json.h"
#include "io/http.h"
#include "io/text_or_file.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kShownValue = 40;  ///< characters of a wrong value in a message

/// Reads values of an object by their keys, and collects all faults.
class KeyReader {
 public:
  explicit KeyReader(const Json& object) : object_(object) {}

  /// If `secret` is true, faults do not show the value.
  void text(const char* key, std::string& value, bool secret = false) {
    const Json* const found = find(key);
    if (!found) return;
    if (found->is_string() && !found->get_ref<const std::string&>().empty())
      value = found->get<std::string>();
    else
      add(fmt::format("\"{}\" must be a text that is not empty{}", key, but_is(*found, secret)));
  }
  template <class Number>
  void number(const char* key, Number& value, double least, double most) {
    const Json* const found = find(key);
    if (!found) return;
    constexpr bool whole = std::integral<Number>;
    const bool right = whole ? found->is_number_integer() : found->is_number();
    if (right && found->get<double>() >= least && found->get<double>() <= most)
      value = found->get<Number>();
    else
      add(fmt::format("\"{}\" must be a {}number from {} to {}{}", key, whole ? "whole " : "",
                      least, most, but_is(*found)));
  }
  void flag(const char* key, bool& value) {
    const Json* const found = find(key);
    if (!found) return;
    if (found->is_boolean())
      value = found->get<bool>();
    else
      add(fmt::format("\"{}\" must be true or false{}", key, but_is(*found)));
  }
  void price(const char* key, EndpointOptions& options) {
    const Json* const found = find(key);
    if (!found) return;
    const auto is_price = [](const Json& price) {
      return price.is_number() && price.get<double>() >= 0;
    };
    if (found->is_array() && found->size() == 2 && is_price((*found)[0]) && is_price((*found)[1])) {
      options.input_price = (*found)[0].get<double>();
      options.output_price = (*found)[1].get<double>();
    } else {
      add(fmt::format("\"{}\" must be two numbers from 0 on, [IN, OUT]{}", key, but_is(*found)));
    }
  }
  void add(const std::string& fault) { faults_ += (faults_.empty() ? "" : "; ") + fault; }

  /// Throws Error{usage} if there are faults, or if the object has other keys.
  void finish(const std::string& file) {
    std::string others;
    for (const auto& [key, value] : object_.items())
      if ((", " + keys_ + ",").find(", " + key + ",") == std::string::npos)
        others += (others.empty() ? "\"" : ", \"") + key + "\"";
    if (!others.empty()) add(fmt::format("unknown: {}; the keys are {}", others, keys_));
    if (!faults_.empty()) fail_usage("'{}': {}", file, faults_);
  }

 private:
  const Json* find(const char* key) {
    keys_ += (keys_.empty() ? "" : ", ") + std::string(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  static std::string but_is(const Json& value, bool secret = false) {
    return secret ? "" : ", but is " + dump_json(value).substr(0, kShownValue);
  }

  const Json& object_;
  std::string keys_, faults_;
};

bool names_variable(const std::string& name) {
  constexpr const char* kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return name.find_first_not_of(kLetters) == name.npos && !(name[0] >= '0' && name[0] <= '9');
}

void check_url(const std::string& url, KeyReader& keys) {
  try {
    io::check_http_url(url);
  } catch (const Error& error) {
    keys.add(error.what());
  }
}

}  // namespace

EndpointOptions read_endpoint(const std::string& url_or_file) {
  EndpointOptions options;
  if (url_or_file.find("://") != url_or_file.npos) {
    io::check_http_url(url_or_file);
    options.url = url_or_file;
    return options;
  }
  const std::string what = "'" + url_or_file + "'";
  const Json json = as_usage([&] { return parse_json(io::option_file(url_or_file), what); });
  if (!json.is_object()) fail_usage("{} is not a JSON object; see vfm-endpoint(5)", what);
  KeyReader keys(json);
  keys.text("url", options.url);
  if (!json.contains("url")) keys.add("\"url\" is missing");
  if (!options.url.empty()) check_url(options.url, keys);
  keys.text("model", options.model);
  keys.text("key", options.key_variable, true);
  if (!names_variable(options.key_variable))
    keys.add("\"key\" must be the name of an environment variable, not the key itself");
  keys.number("frames", options.frames, 1, 64);
  keys.number("side", options.side, 16, 4096);
  keys.number("parallel", options.parallel, 1, 256);
  keys.number("retries", options.retries, 0, 100);
  keys.number("wait", options.wait, 0, 300);
  keys.number("timeout", options.seconds, 0.001, 86400);
  keys.number("tokens", options.most_tokens, 1, 1'000'000);
  keys.number("temperature", options.temperature, 0, 2);
  keys.flag("schema", options.send_schema);
  keys.price("price", options);
  keys.finish(url_or_file);
  return options;
}

}  // namespace vfm::columns
