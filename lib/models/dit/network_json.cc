// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_json.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "models/dit/architecture.h"
#include "models/folder/config_json.h"

namespace vfm::models {
namespace {

const Architecture& of_class(const std::string& name) {
  if (const Architecture* const found = architecture_of_class(name)) return *found;
  fail_usage("model configuration: '_class_name' is '{}'; the diffusion networks are {}", name,
             fmt::join(network_class_names(), ", "));
}

using Visit = void (*)(NetworkConfig& config, ConfigFields& fields);

/// How the class names the fields.
Visit visit_of(const Architecture& architecture, std::string_view class_name) {
  if (architecture.foreign != nullptr)
    for (const ForeignClass& one : architecture.foreign->classes)
      if (one.name == class_name) return one.visit;
  return architecture.visit_json ? architecture.visit_json : architecture.visit;
}

/// Throws for a value of another model that has the class.
void refuse_other_values(const Architecture& architecture, const Json& config) {
  if (architecture.foreign == nullptr) return;
  for (const ForeignField& field : architecture.foreign->fields)
    if (const std::string sign = other_value(field, config); !sign.empty())
      fail_usage("model configuration: {} is of {}, which is not supported", sign, field.otherwise);
}

class Writer final : public ConfigFields {
 public:
  explicit Writer(Json& config) : config_(config) {}

  void integer(const char* name, int& value, int, int, int zero) override {
    config_[name] = value == 0 ? zero : value;
  }
  void number(const char* name, double& value, double, double) override { config_[name] = value; }
  void sizes(const char* name, std::array<int, 3>& value, int, int) override {
    config_[name] = value;
  }
  void scales(const char* name, std::array<double, 3>& value) override { config_[name] = value; }
  void flag(const char* name, bool& value, bool always) override {
    if (value || always) config_[name] = value;
  }
  void word(const char*, bool& value, const char* name, const char* word) override {
    config_[name] = value ? Json(word) : Json();
  }
  void modulation(const char*, std::string&, const char* name, int& value) override {
    config_[name] = value == 0 ? Json() : Json(value);
  }

 private:
  Json& config_;
};

// Fields that are absent keep their defaults.
class Reader final : public ConfigFields {
 public:
  explicit Reader(const Json& config) : config_(config) {}

  void integer(const char* name, int& value, int, int, int) override {
    value = integer_field(config_, name, value);
  }
  void number(const char* name, double& value, double, double) override {
    value = get_number(config_, name).value_or(value);
  }
  void sizes(const char* name, std::array<int, 3>& value, int, int) override {
    value = numbers_field(config_, name, value);
  }
  void scales(const char* name, std::array<double, 3>& value) override {
    value = numbers_field(config_, name, value);
  }
  void flag(const char* name, bool& value, bool) override {
    value = get_bool(config_, name).value_or(value);
  }
  void word(const char*, bool& value, const char* name, const char* word) override {
    if (!config_.contains(name)) return;
    const auto found = get_string(config_, name);
    if (found && *found != word)
      fail_usage("model configuration: '{}' is '{}', not '{}' or null", name, *found, word);
    value = found.has_value();
  }
  void modulation(const char*, std::string& kind, const char* name, int& value) override {
    const bool null = config_.contains(name) && config_[name].is_null();
    const int rank = null ? 0 : integer_field(config_, name, value);
    if (rank == 0 && !null)
      fail_usage("model configuration: '{}' is 0, not a width of 1 or more, or null", name);
    value = rank;
    kind = rank == 0 ? "full" : "lora";
  }

 private:
  const Json& config_;
};

}  // namespace

std::vector<std::string_view> network_class_names() {
  std::vector<std::string_view> names;
  for (const Architecture* one : architectures()) {
    names.push_back(one->class_name);
    if (one->foreign == nullptr) continue;
    for (const ForeignClass& other : one->foreign->classes)
      names.push_back(other.name);
  }
  return names;
}

std::string other_value(const ForeignField& field, const Json& config) {
  if (field.otherwise.empty()) return {};
  const auto found = config.find(field.name);
  if (found == config.end() || found->is_null()) return {};
  return *found == parse_json(field.value, field.name) ? "" : fmt::format("'{}'", field.name);
}

Json network_config_to_json(const NetworkConfig& c) {
  Json config;
  config["_class_name"] = c.architecture->class_name;
  NetworkConfig copy = c;
  Writer writer(config);
  visit_of(*c.architecture, c.architecture->class_name)(copy, writer);
  return config;
}

NetworkConfig network_config_from_json(const Json& config) {
  if (!config.is_object()) fail_usage("model configuration: not a JSON object");
  const auto name = get_string(config, "_class_name");
  NetworkConfig c = default_config(name ? of_class(*name) : kDit);
  Reader reader(config);
  visit_of(*c.architecture, name.value_or(""))(c, reader);
  refuse_other_values(*c.architecture, config);
  c.validate();
  return c;
}

}  // namespace vfm::models
