// SPDX-License-Identifier: Apache-2.0
#include "io/remote/web_identity.h"

#include <algorithm>

#include "base/error.h"
#include "io/file.h"
#include "io/process_name.h"
#include "io/remote/answer_xml.h"
#include "io/remote/retry.h"
#include "io/remote/session.h"
#include "io/remote/signature.h"

namespace vfm::io {
namespace {

constexpr double kMostWait = 20;  // seconds
constexpr std::uint64_t kMostToken = std::uint64_t{1} << 20;
constexpr std::size_t kLongestSession = 64;

std::string read_token(const WebIdentity& identity) {
  std::string token = as_usage([&] { return read_file(identity.token_file, kMostToken); });
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ')
    token.pop_back();
  if (token.empty()) fail_usage("'{}' ({}) has no token", identity.token_file, identity.setting);
  return token;
}

/// A server may repeat what it was sent.
bool repeats(const std::string& message, const std::string& token) {
  constexpr std::size_t kSame = 12;
  if (token.size() < kSame) return message.find(token) != message.npos;
  for (std::size_t i = 0; i + kSame <= message.size(); ++i)
    if (token.find(message.data() + i, 0, kSame) != token.npos) return true;
  return false;
}

[[noreturn]] void fail_identity(const WebIdentity& identity, const WebAnswer& answer, bool later,
                                const std::string& token) {
  std::string said = answer.fault;
  if (answer.status >= 300 || said.empty()) {
    const AnswerError error = read_answer_error(answer.body);
    said = fmt::format("status {}", answer.status);
    if (!repeats(error.code, token)) said += " " + error.code;
    if (!error.message.empty() && !repeats(error.message, token)) said += ": " + error.message;
  }
  if (later)
    fail_as(Cause::server, "'{}' gives no credentials for the token in '{}': {}", identity.server,
            identity.token_file, said);
  fail_usage("'{}' gives no credentials of role '{}' for the token in '{}' ({}): {}",
             identity.server, identity.role, identity.token_file, identity.setting, said);
}

}  // namespace

Credentials credentials_of_web_identity(const WebIdentity& identity) {
  const std::string token = read_token(identity);
  std::string session = identity.session;
  if (session.empty()) session = ("vfm-" + ProcessName::self().name()).substr(0, kLongestSession);
  const std::string body = encode_query({{"Action", "AssumeRoleWithWebIdentity"},
                                         {"Version", "2011-06-15"},
                                         {"RoleArn", identity.role},
                                         {"RoleSessionName", session},
                                         {"WebIdentityToken", token}});
  WebRequest request;
  request.method = "POST";
  request.url = identity.server;
  request.headers = {"Content-Type: application/x-www-form-urlencoded; charset=utf-8"};
  request.body = body;
  request.ca_file = identity.ca_file;
  request.connect_seconds = 5;
  request.seconds = 10;
  request.most_bytes = std::size_t{1} << 20;
  Retry retry(std::min(net_seconds(), kMostWait));
  for (;;) {
    const WebAnswer answer = WebSession().exchange(request);
    if (answer.succeeded()) {
      const auto get = [&](const char* name) {
        const std::string path = "AssumeRoleWithWebIdentityResult/Credentials/";
        return answer_element(answer.body, path + name);
      };
      const Credentials found{get("AccessKeyId"), get("SecretAccessKey"), get("SessionToken"),
                              parse_answer_time(get("Expiration"))};
      if (found.key_id.empty() || found.secret.empty())
        fail_as(Cause::answer, "the answer of '{}' has no credentials", identity.server);
      return found;
    }
    // STS could not reach the identity's provider.
    const bool later = answer.fault.empty()
                           ? may_succeed_later(answer.status) ||
                                 read_answer_error(answer.body).code == "IDPCommunicationError"
                           : !answer.hopeless;
    if (!later || !retry.wait(answer.retry_after)) fail_identity(identity, answer, later, token);
  }
}

}  // namespace vfm::io
