// Signatures of requests, by AWS's published examples.
// Sources: AWS's "aws-sig-v4-test-suite", and "Examples: Signature Calculations in AWS Signature
// Version 4" of the Amazon S3 API Reference.
// SPDX-License-Identifier: Apache-2.0
#include "io/remote/signature.h"

#include <catch2/catch.hpp>

using namespace vfm::io;

namespace {

const SigningKey kSuite{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1",
                        "service"};
const SigningKey kExamples{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                           "us-east-1", "s3"};
const std::string kNothing = sha256_hex("");

std::string signature_of(const std::string& authorized) {
  return authorized.substr(authorized.find("Signature=") + 10);
}

/// A request of the suite, of 2015-08-30 12:36:00.
std::string suite(SignedParts parts) {
  parts.headers["host"] = "example.amazonaws.com";
  parts.headers["x-amz-date"] = "20150830T123600Z";
  if (parts.payload.empty()) parts.payload = kNothing;
  return signature_of(authorization(parts, kSuite, "20150830T123600Z"));
}

/// A request of the examples of S3, of 2013-05-24.
std::string example(SignedParts parts) {
  parts.headers["host"] = "examplebucket.s3.amazonaws.com";
  parts.headers["x-amz-date"] = "20130524T000000Z";
  if (parts.payload.empty()) parts.payload = kNothing;
  parts.headers["x-amz-content-sha256"] = parts.payload;
  return signature_of(authorization(parts, kExamples, "20130524T000000Z"));
}

}  // namespace

TEST_CASE("requests are signed as AWS's test suite says") {
  CHECK(suite({"GET", "/"}) == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  CHECK(suite({"POST", "/"}) == "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  CHECK(suite({"GET", "/", {{"Param2", "value2"}, {"Param1", "value1"}}}) ==
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  CHECK(suite({"GET", "/", {}, {{"my-header1", " value1"}, {"my-header2", " \"a   b   c\""}}}) ==
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
  CHECK(suite({"GET", "/" + percent_encode("\xe1\x88\xb4", true)}) ==
        "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  CHECK(authorization({"GET", "/", {}, {{"host", "example.amazonaws.com"}}, kNothing}, kSuite,
                      "20150830T123600Z")
            .starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/"
                         "aws4_request, SignedHeaders=host, Signature="));
}

TEST_CASE("requests are signed as the examples of S3 say") {
  CHECK(example({"GET", "/test.txt", {}, {{"range", "bytes=0-9"}}}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(example({"PUT",
                 "/" + percent_encode("test$file.text", true),
                 {},
                 {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                  {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                 sha256_hex("Welcome to Amazon S3.")}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(example({"GET", "/", {{"lifecycle", ""}}}) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(example({"GET", "/", {{"max-keys", "2"}, {"prefix", "J"}}}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("names are encoded for the address and the signature alike") {
  CHECK(percent_encode("a/b c+d~e*\xc3\xa9", true) == "a/b%20c%2Bd~e%2A%C3%A9");
  CHECK(percent_encode("a/b", false) == "a%2Fb");
  CHECK(encode_query({{"b", "/"}, {"a b", ""}, {"a", "&="}}) == "a=%26%3D&a%20b=&b=%2F");
  CHECK(signing_time(1369353600) == "20130524T000000Z");
  CHECK(md5_base64("") == "1B2M2Y8AsgTpgAmY7PhCfg==");
  CHECK(base64("a") == "YQ==");
}
