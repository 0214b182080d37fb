// SPDX-License-Identifier: Apache-2.0
#include "io/remote/credentials.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "io/file.h"
#include "io/http.h"
#include "io/remote/answer_xml.h"
#include "io/remote/retry.h"
#include "io/remote/session.h"
#include "io/remote/web_identity.h"

namespace vfm::io {
namespace {

constexpr double kRenewBefore = 300;  // seconds before credentials expire
constexpr double kLeastBetween = 10;  // seconds between two fetches
constexpr std::uint64_t kMostConfig = std::uint64_t{4} << 20;
constexpr const char* kWhatToSet =
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws/credentials, or "
    "VFM_S3_ANONYMOUS=1 for a public bucket (vfm-storage(7))";

/// The settings of AWS's files: [section] and "name = value". Indented lines below a name without a
/// value are settings "name/inner".
using AwsSections = std::map<std::string, std::map<std::string, std::string>>;

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ')
    text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ')
    text.remove_suffix(1);
  return text;
}

/// Returns "profile NAME" for a section 'profile "NAME"', and "default" for "profile default".
std::string section_name(std::string_view text) {
  const std::size_t end = text.find_first_of(" \t");
  if (end == text.npos) return std::string(text);
  std::string_view name = without_spaces(text.substr(end));
  const bool quoted = name.size() >= 2 && (name.front() == '"' || name.front() == '\'') &&
                      name.front() == name.back();
  if (quoted) name = name.substr(1, name.size() - 2);
  if (text.starts_with("profile") && name == "default") return "default";
  return std::string(text.substr(0, end)) + " " + std::string(name);
}

AwsSections read_aws_file(const std::string& path) {
  AwsSections sections;
  if (path.empty() || !file_exists(path)) return sections;
  std::istringstream lines(read_file(path, kMostConfig));
  std::string section, outer;
  for (std::string line; std::getline(lines, line);) {
    const std::string_view text = without_spaces(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[' && text.back() == ']') {
      section = section_name(without_spaces(text.substr(1, text.size() - 2)));
      outer.clear();
      continue;
    }
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const std::string name(without_spaces(text.substr(0, equals)));
    const std::string value(without_spaces(text.substr(equals + 1)));
    const bool indented = line.front() == ' ' || line.front() == '\t';
    if (!indented) outer = value.empty() ? name : "";
    sections[section][indented && !outer.empty() ? outer + "/" + name : name] = value;
  }
  return sections;
}

std::string aws_path(const char* name, const std::string& usual) {
  if (const auto path = variable(name)) return *path;
  const auto home = variable("HOME");
  return home ? join_path(*home, usual) : "";
}

/// One profile of both files. What the credentials file says comes first.
class AwsProfile {
 public:
  explicit AwsProfile(const std::string& name)
      : name_(name),
        credentials_(read_aws_file(aws_path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"))),
        config_(read_aws_file(aws_path("AWS_CONFIG_FILE", ".aws/config"))) {}

  bool exists() const { return credentials_.contains(name_) || config_.contains(config_name()); }
  std::string get(const std::string& setting) const {
    const std::string first = look(credentials_, name_, setting);
    return first.empty() ? look(config_, config_name(), setting) : first;
  }
  /// A setting of the section [services NAME] that the profile names.
  std::string service(const std::string& setting) const {
    const std::string services = get("services");
    return services.empty() ? "" : look(config_, "services " + services, setting);
  }

 private:
  std::string config_name() const { return name_ == "default" ? name_ : "profile " + name_; }
  static std::string look(const AwsSections& sections, const std::string& section,
                          const std::string& setting) {
    const auto found = sections.find(section);
    if (found == sections.end()) return "";
    const auto value = found->second.find(setting);
    return value == found->second.end() ? "" : value->second;
  }

  std::string name_;
  AwsSections credentials_, config_;
};

Credentials credentials_of_json(const std::string& text, const std::string& what) {
  const Json json = parse_json(text, what);
  if (!json.is_object()) fail("{} is not a JSON object with credentials", what);
  Credentials found;
  found.key_id = need_string(json, "AccessKeyId", what);
  found.secret = need_string(json, "SecretAccessKey", what);
  // Containers and instances say Token, files SessionToken.
  for (const char* name : {"SessionToken", "Token"})
    if (found.token.empty()) found.token = get_string(json, name).value_or("");
  if (const auto expires = get_string(json, "Expiration"))
    found.expires = parse_answer_time(*expires);
  return found;
}

/// Asks an address of this machine for credentials. Few tries, as it is near.
std::string ask_near(const std::string& method, const std::string& url,
                     std::vector<std::string> headers) {
  WebRequest request;
  request.method = method;
  request.url = url;
  request.headers = std::move(headers);
  request.connect_seconds = 1;
  request.seconds = 5;
  request.most_bytes = std::size_t{1} << 20;
  Retry retry(std::min(net_seconds(), 5.0));
  for (;;) {
    const WebAnswer answer = WebSession().exchange(request);
    if (answer.succeeded()) return answer.body;
    const bool later = !answer.fault.empty() || may_succeed_later(answer.status);
    // Another place than EC2 has nobody at this address, which is no error of the network.
    if (!later || retry.tries() == 3 || !retry.wait(answer.retry_after))
      fail_as(Cause::server, "'{}' gives no credentials: {}", url,
              answer.fault.empty() ? fmt::format("status {}", answer.status) : answer.fault);
  }
}

/// Only these hosts get the token: those of containers, and this machine.
bool may_give_credentials(const std::string& url) {
  if (url.starts_with("https://")) return true;
  static constexpr std::array kHosts{"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
                                     "127.0.0.1",     "localhost",      "[::1]"};
  return std::any_of(kHosts.begin(), kHosts.end(), [&](const char* host) {
    const std::string begin = std::string("http://") + host;
    return url.starts_with(begin + "/") || url.starts_with(begin + ":") || url == begin;
  });
}

Credentials credentials_of_container() {
  std::string url;
  if (const auto relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
    url = "http://169.254.170.2" + *relative;
  else
    url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").value_or("");
  if (!may_give_credentials(url))
    fail_usage(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that may not be asked: use https, "
        "or an address of this machine or of the container service");
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  if (const auto path = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
    token = std::string(without_spaces(read_file(*path, kMostConfig)));
  if (token.find_first_of("\r\n") != token.npos)
    fail_usage("the container's authorization token has more than one line");
  std::vector<std::string> headers;
  if (!token.empty()) headers.push_back("Authorization: " + token);
  return credentials_of_json(ask_near("GET", url, headers), "the container's answer");
}

Credentials credentials_of_instance() {
  const std::string server =
      variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  const std::string root = server + (server.ends_with('/') ? "latest/" : "/latest/");
  const std::string token =
      ask_near("PUT", root + "api/token", {"X-aws-ec2-metadata-token-ttl-seconds: 21600"});
  if (token.find_first_of("\r\n") != token.npos) fail("the instance's token has several lines");
  const std::vector<std::string> headers{"X-aws-ec2-metadata-token: " + token};
  const std::string roles = root + "meta-data/iam/security-credentials/";
  std::string role = ask_near("GET", roles, headers);
  role = std::string(without_spaces(role.substr(0, role.find('\n'))));
  if (role.empty() || role.find_first_of(" /?#") != role.npos)
    fail("the instance has no role that gives credentials");
  return credentials_of_json(ask_near("GET", roles + role, headers), "the instance's answer");
}

bool is_true(const char* name) {
  const std::string value = variable(name).value_or("");
  return value == "1" || value == "true" || value == "True" || value == "TRUE";
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts)
    if (!text.empty()) return text;
  return "";
}

/// Who the variables and the profile say that asks. Neither: a container or an instance tells.
struct Identity {
  std::optional<Credentials> keys;
  std::optional<WebIdentity> web;
};

/// Another source than the one that is asked for would be another identity, so there is no next.
[[noreturn]] void refuse_setting(const std::string& profile, const char* setting, bool variables) {
  fail_usage(
      "profile '{}' of AWS's files gets its credentials by '{}', which vfm does not do; write them "
      "to the environment: eval \"$(aws configure export-credentials --format env --profile "
      "{})\"{}",
      profile, setting, profile, variables ? "" : ", and name no profile for the msc:// address");
}

/// Both keys, or none. Throws Error{usage} if one is missing.
std::optional<Credentials> key_pair(Credentials keys, const char* key_name, const char* secret_name,
                                    const std::string& where) {
  if (keys.key_id.empty() && keys.secret.empty()) return std::nullopt;
  if (keys.key_id.empty() || keys.secret.empty())
    fail_usage("{} has no {}, but {}; set both or none", where,
               keys.key_id.empty() ? key_name : secret_name,
               keys.key_id.empty() ? secret_name : key_name);
  return keys;
}

std::string sts_server(const AwsProfile& profile, const std::string& region) {
  std::string server;
  if (!is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))
    server = first_of({variable("AWS_ENDPOINT_URL_STS").value_or(""),
                       variable("AWS_ENDPOINT_URL").value_or(""),
                       profile.service("sts/endpoint_url"), profile.get("endpoint_url")});
  if (server.empty())
    server = "https://sts." + region +
             (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  check_http_url(server);
  return server.ends_with('/') ? server : server + "/";
}

std::optional<WebIdentity> web_identity(const AwsProfile& profile, const S3Place& place,
                                        bool variables) {
  constexpr const char* kSetting = "web_identity_token_file";
  constexpr const char* kVariable = "AWS_WEB_IDENTITY_TOKEN_FILE";
  const auto look = [&](const char* name, const char* setting) {
    return first_of({variables ? variable(name).value_or("") : "", profile.get(setting)});
  };
  WebIdentity found;
  found.token_file = look(kVariable, kSetting);
  if (found.token_file.empty()) return std::nullopt;
  const bool by_variable = variables && variable(kVariable);
  found.setting = by_variable ? kVariable : kSetting;
  found.role = look("AWS_ROLE_ARN", "role_arn");
  if (found.role.empty())
    fail_usage("{} is set, but not {}; set both or none", found.setting,
               by_variable ? "AWS_ROLE_ARN" : "role_arn");
  found.session = look("AWS_ROLE_SESSION_NAME", "role_session_name");
  found.server = sts_server(profile, place.region);
  found.ca_file = place.ca_file;
  return found;
}

/// In the order of AWS's own programs (botocore): a role of the profile comes before its keys.
Identity find_identity(const std::string& name, bool variables, const S3Place& place) {
  if (variables) {
    auto keys = key_pair(
        {variable("AWS_ACCESS_KEY_ID").value_or(""), variable("AWS_SECRET_ACCESS_KEY").value_or(""),
         variable("AWS_SESSION_TOKEN").value_or(""), 0},
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "the environment");
    if (keys) return {std::move(keys), {}};
  }
  const AwsProfile profile(name);
  if (!profile.get("role_arn").empty() && profile.get("web_identity_token_file").empty())
    refuse_setting(name, "role_arn", variables);
  if (auto web = web_identity(profile, place, variables)) return {{}, std::move(web)};
  const auto refuse_any = [&](std::initializer_list<const char*> settings) {
    for (const char* setting : settings)
      if (!profile.get(setting).empty()) refuse_setting(name, setting, variables);
  };
  refuse_any({"sso_account_id", "sso_role_name"});
  auto keys = key_pair({profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"),
                        profile.get("aws_session_token"), 0},
                       "aws_access_key_id", "aws_secret_access_key",
                       fmt::format("profile '{}' of AWS's files", name));
  if (keys) return {std::move(keys), {}};
  refuse_any({"credential_process", "sso_session", "sso_start_url", "login_session",
              "source_profile", "credential_source"});
  return {};
}

Credentials find_credentials(const std::string& name, bool variables, const S3Place& place) {
  const Identity identity = find_identity(name, variables, place);
  if (identity.keys) return *identity.keys;
  if (identity.web) return credentials_of_web_identity(*identity.web);
  if (variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
      variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
    return credentials_of_container();
  if (is_true("AWS_EC2_METADATA_DISABLED")) fail_usage("no credentials; {}", kWhatToSet);
  try {
    return credentials_of_instance();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    fail_usage("no credentials ({}); {}", error.what(), kWhatToSet);
  }
}

}  // namespace

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

CredentialSource::CredentialSource(std::function<Credentials()> fetch, std::function<void()> check,
                                   std::function<double()> now)
    : fetch_(std::move(fetch)), check_(std::move(check)), now_(std::move(now)) {}

Credentials CredentialSource::get() {
  const std::lock_guard lock(mutex_);
  const double now = now_();
  const bool soon = held_ && held_->expires > 0 && held_->expires - now < kRenewBefore;
  if (held_ && (!soon || now - fetched_ < kLeastBetween)) return *held_;
  try {
    held_ = fetch_();
  } catch (const Error&) {
    if (!held_ || held_->expires <= now) throw;
  }
  fetched_ = now_();  // All requests wait for a fetch, and one that fails may take long.
  return *held_;
}

void CredentialSource::check() const {
  if (check_) check_();
}

void CredentialSource::forget(const Credentials& refused) {
  const std::lock_guard lock(mutex_);
  if (held_ && held_->key_id == refused.key_id && held_->token == refused.token) held_.reset();
}

S3Place place_by_environment(const std::string& profile) {
  const std::string name = first_of({profile, variable("AWS_PROFILE").value_or(""),
                                     variable("AWS_DEFAULT_PROFILE").value_or(""), "default"});
  const AwsProfile settings(name);
  if (name != "default" && !settings.exists())
    fail_usage("AWS's files ~/.aws/credentials and ~/.aws/config have no profile '{}'", name);
  S3Place place;
  place.region =
      first_of({variable("AWS_REGION").value_or(""), variable("AWS_DEFAULT_REGION").value_or(""),
                settings.get("region"), place.region});
  if (!is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))
    place.endpoint = first_of({variable("AWS_ENDPOINT_URL_S3").value_or(""),
                               variable("AWS_ENDPOINT_URL").value_or(""),
                               settings.service("s3/endpoint_url"), settings.get("endpoint_url")});
  const std::string style = settings.get("s3/addressing_style");
  if (style == "path" || style == "virtual") place.path_style = style == "path";
  place.ca_file = first_of({variable("AWS_CA_BUNDLE").value_or(""), settings.get("ca_bundle")});
  if (!is_true("VFM_S3_ANONYMOUS")) {
    const bool variables = profile.empty();
    place.credentials =
        std::make_shared<CredentialSource>([=] { return find_credentials(name, variables, place); },
                                           [=] { find_identity(name, variables, place); });
  }
  return place;
}

Credentials credentials_of_file(const std::string& path) {
  return credentials_of_json(read_file(path, kMostConfig), fmt::format("'{}'", path));
}

static std::atomic<double> g_read_seconds{0};

void limit_read_seconds(double seconds) {
  g_read_seconds = seconds;
}

double read_seconds() {
  const double most = g_read_seconds;
  return most > 0 ? std::min(most, net_seconds()) : net_seconds();
}

double net_seconds() {
  const auto text = variable("VFM_NET_SECONDS");
  return text ? std::max(1.0, parse_seconds(*text)) : 120.0;
}

}  // namespace vfm::io
