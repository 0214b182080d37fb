// The signature of a request to a server that speaks S3: AWS Signature Version 4, by OpenSSL.
// Source: "AWS Signature Version 4 for API requests", AWS Identity and Access Management User
// Guide, and "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API Reference.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace vfm::io {

/// The payload's hash of a request over https, where TLS protects the payload.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct SigningKey {
  std::string key_id, secret;
  std::string region;
  std::string service = "s3";
};

/// The parts of a request that are signed.
struct SignedParts {
  std::string method;
  std::string path;                            ///< As it is sent: percent_encode()d.
  std::map<std::string, std::string> query;    ///< Plain text, not encoded.
  std::map<std::string, std::string> headers;  ///< Names in lower case. All are signed.
  std::string payload;                         ///< sha256_hex() of the body, or kUnsignedPayload.
};

/// Returns `text` with %XX for all bytes but letters, digits, '-', '.', '_', '~', and '/' if
/// `keep_slash`.
std::string percent_encode(std::string_view text, bool keep_slash);
/// Returns `query` as it is sent and signed: sorted by name, encoded, "name=value" joined by '&'.
std::string encode_query(const std::map<std::string, std::string>& query);

std::string sha256_hex(std::string_view bytes);
/// Returns the MD5 in base64, as the header Content-MD5 has it.
std::string md5_base64(std::string_view bytes);
std::string base64(std::string_view bytes);

/// Returns the time of the request as the header x-amz-date has it: "20130524T000000Z".
std::string signing_time(double unix_seconds);
std::string canonical_request(const SignedParts& parts);
/// Returns the value of the header Authorization. `time` is the value of x-amz-date.
std::string authorization(const SignedParts& parts, const SigningKey& key, const std::string& time);

}  // namespace vfm::io
