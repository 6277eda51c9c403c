#include "net/digest.h"

#include <utility>

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

std::string of(Digest::Kind kind, std::initializer_list<std::string_view> parts) {
  Digest digest(kind);
  for (const std::string_view part : parts) digest.add(part);
  return digest.hex();
}

TEST(Digest, IsThatOfTheStandards) {
  const std::string sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(of(Digest::Kind::sha256, {"abc"}), sha256);
  EXPECT_EQ(of(Digest::Kind::sha256, {"a", "", "bc"}), sha256);
  EXPECT_EQ(of(Digest::Kind::sha1, {"ab", "c"}), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Digest, NamesWhatGitHas) {
  // As `git hash-object` prints it for a file with "hello\n" in it.
  EXPECT_EQ(of(Digest::Kind::sha1, {std::string_view("blob 6\0", 7), "hello\n"}),
            "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Digest, BeginsAgainWhereItIsReplaced) {
  Digest digest(Digest::Kind::sha1);
  digest.add("what was wrong");
  digest = Digest(Digest::Kind::sha1);
  digest.add("abc");
  EXPECT_EQ(digest.hex(), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

}  // namespace
}  // namespace chasqui::net
