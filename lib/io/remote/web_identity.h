// Credentials of a role for the token of a web identity, as EKS and others give it to programs.
//
// AssumeRoleWithWebIdentity of AWS's Security Token Service (STS), and of stores that have the
// same. The request is not signed: the token is what proves the identity. Neither the token nor the
// credentials are in a message.
// Source: "AssumeRoleWithWebIdentity", AWS Security Token Service API Reference, version
// 2011-06-15. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/remote/credentials.h"

namespace vfm::io {

struct WebIdentity {
  std::string token_file;  ///< Is read at each request, as others write new tokens there.
  std::string setting;     ///< The variable or setting that names the file, for messages.
  std::string role;        ///< The ARN of the role.
  std::string session;     ///< The name of the session, or empty: a name of this process.
  std::string server;      ///< The address of STS.
  std::string ca_file;     ///< Certificates to trust, or empty for the system's.
};

/// Asks for credentials. Sends the request again as those for objects, for 20 seconds at most.
/// Throws Error{usage} if the server refuses, or if there is no token, and another Error if the
/// server does not answer.
Credentials credentials_of_web_identity(const WebIdentity& identity);

}  // namespace vfm::io
