// Who asks a bucket's server, and where that server is: AWS's variables and files, web identities,
// containers and instances.
//
// Variables come first (AWS_ACCESS_KEY_ID ...), then a web identity (AWS_WEB_IDENTITY_TOKEN_FILE),
// then the profile AWS_PROFILE or "default" of ~/.aws/credentials and ~/.aws/config, then the
// container's address (AWS_CONTAINER_CREDENTIALS_...), then the instance's (EC2, IMDSv2). A source
// that is named and cannot be used is an error, and the next one is not tried. With
// VFM_S3_ANONYMOUS=1 requests are not signed. Secrets are never in a message.
// Source: "Standardized credential providers", AWS SDKs and Tools Reference Guide.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "io/remote/environment.h"

namespace vfm::io {

struct Credentials {
  std::string key_id, secret, token;
  double expires = 0;  ///< Seconds since 1970, or 0: never.
};

/// Returns the seconds since 1970, by the clock of this machine.
double unix_seconds();

/// Credentials that are fetched when they are first needed, and again before they expire.
class CredentialSource {
 public:
  /// `fetch` returns credentials or throws Error. `check` throws Error{usage} if the settings
  /// cannot give any. `now` returns the seconds since 1970. Tests have their own.
  explicit CredentialSource(std::function<Credentials()> fetch,
                            std::function<void()> check = nullptr,
                            std::function<double()> now = unix_seconds);

  /// Throws Error{usage} if the settings alone show that there are no credentials. Asks no server.
  void check() const;
  /// Returns credentials that do not expire soon. If they cannot be renewed, returns the older ones
  /// until they expire. Throws Error.
  Credentials get();
  /// Forgets these credentials, as the server calls them expired.
  void forget(const Credentials& refused);

 private:
  std::mutex mutex_;
  std::function<Credentials()> fetch_;
  std::function<void()> check_;
  std::function<double()> now_;
  std::optional<Credentials> held_;
  double fetched_ = 0;
};

/// A server that speaks S3, and how to ask it.
struct S3Place {
  std::string endpoint;  ///< "https://host:port", or empty for AWS.
  std::string region = "us-east-1";
  std::optional<bool> path_style;  ///< The bucket in the path; nullopt: with an endpoint.
  std::string ca_file;             ///< Certificates to trust, or empty for the system's.
  bool checksums = true;           ///< x-amz-checksum-..., otherwise Content-MD5.
  std::shared_ptr<CredentialSource> credentials;  ///< Null: requests are not signed.
};

/// Returns the place of s3:// addresses by variables and files. With `profile`, by this profile of
/// AWS's files, and not by the variables for keys. Throws Error{usage}.
S3Place place_by_environment(const std::string& profile = "");
/// Returns credentials of a file with JSON as `credential_process` writes it.
Credentials credentials_of_file(const std::string& path);

/// Returns VFM_NET_SECONDS, the seconds after which a request that does not succeed is given up.
double net_seconds();
/// Returns the same for a request that reads: net_seconds(), or less after limit_read_seconds().
double read_seconds();

}  // namespace vfm::io
