// SPDX-License-Identifier: Apache-2.0
#include "io/remote/signature.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include "base/error.h"

namespace vfm::io {
namespace {

using Sha256 = std::array<unsigned char, 32>;

/// The digest is looked up once, as OpenSSL 3 takes long for it.
const EVP_MD* sha256_method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (!method) fail("this OpenSSL has no SHA-256");
  return method;
}

std::string to_hex(const Sha256& digest) {
  std::string text;
  for (const unsigned char byte : digest)
    text += fmt::format("{:02x}", byte);
  return text;
}

Sha256 sha256(std::string_view bytes) {
  Sha256 digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, sha256_method(), nullptr) != 1)
    fail("OpenSSL cannot compute a SHA-256");
  return digest;
}

Sha256 hmac(std::string_view key, std::string_view text) {
  Sha256 digest{};
  unsigned int size = 0;
  if (!HMAC(sha256_method(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size))
    fail("OpenSSL cannot compute an HMAC");
  return digest;
}

std::string_view as_text(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// A header's value with single spaces, and none at its ends.
std::string trimmed_value(std::string_view value) {
  std::string text;
  for (const char c : value)
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string signed_names(const SignedParts& parts) {
  std::string names;
  for (const auto& [name, value] : parts.headers)
    names += (names.empty() ? "" : ";") + name;
  return names;
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

std::string encode_query(const std::map<std::string, std::string>& query) {
  std::map<std::string, std::string> sorted;  // by their encoded names
  for (const auto& [name, value] : query)
    sorted[percent_encode(name, false)] = percent_encode(value, false);
  std::string text;
  for (const auto& [name, value] : sorted)
    text += (text.empty() ? "" : "&") + name + "=" + value;
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  return to_hex(sha256(bytes));
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string md5_base64(std::string_view bytes) {
  std::array<char, 16> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                 nullptr, EVP_md5(), nullptr) != 1)
    fail("this OpenSSL has no MD5");
  return base64({digest.data(), digest.size()});
}

std::string signing_time(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string canonical_request(const SignedParts& parts) {
  std::string text = parts.method + "\n" + parts.path + "\n" + encode_query(parts.query) + "\n";
  for (const auto& [name, value] : parts.headers)
    text += name + ":" + trimmed_value(value) + "\n";
  return text + "\n" + signed_names(parts) + "\n" + parts.payload;
}

std::string authorization(const SignedParts& parts, const SigningKey& key,
                          const std::string& time) {
  const std::string day = time.substr(0, 8);
  const std::string scope = day + "/" + key.region + "/" + key.service + "/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256_hex(canonical_request(parts));
  Sha256 digest = hmac("AWS4" + key.secret, day);
  for (const std::string_view each : {std::string_view(key.region), std::string_view(key.service),
                                      std::string_view("aws4_request"), std::string_view(to_sign)})
    digest = hmac(as_text(digest), each);
  return "AWS4-HMAC-SHA256 Credential=" + key.key_id + "/" + scope +
         ", SignedHeaders=" + signed_names(parts) + ", Signature=" + to_hex(digest);
}

}  // namespace vfm::io
