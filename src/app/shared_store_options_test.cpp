#include "app/shared_store_options.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

SharedStoreFlags flags_of(const std::string& url, const std::string& leases) {
  SharedStoreFlags flags;
  flags.objects.url = url;
  flags.leases = leases;
  return flags;
}

TEST(SharedStoreFlags, TheStoreAndTheLeasesGoTogether) {
  SharedStoreFlags none;
  EXPECT_TRUE(complete_shared_store(none, "/sessions"));
  const std::string folder = testing::TempDir() + "shared";
  SharedStoreFlags both = flags_of(folder, "redis://localhost");
  EXPECT_TRUE(complete_shared_store(both, ""));
  EXPECT_EQ(complete_shared_store(both, "/sessions").error().field, "--session-dir");
  SharedStoreFlags store = flags_of(folder, "");
  EXPECT_EQ(complete_shared_store(store, "").error().field, "--shared-store");
  SharedStoreFlags leases = flags_of("", "redis://localhost");
  EXPECT_EQ(complete_shared_store(leases, "").error().field, "--session-leases");
}

TEST(SharedStoreFlags, ErrorsNameTheFlagAndNoPassword) {
  SharedStoreFlags redis = flags_of(testing::TempDir() + "shared", "redis://:secret@");
  const auto error = complete_shared_store(redis, "").error();
  EXPECT_EQ(error.field, "--session-leases");
  EXPECT_EQ(error.message.find("secret"), std::string::npos) << error.message;
  SharedStoreFlags ftp = flags_of("ftp://user:secret@host/", "redis://localhost");
  const auto unknown = complete_shared_store(ftp, "").error();
  EXPECT_EQ(unknown.field, "--shared-store");
  EXPECT_EQ(unknown.message.find("secret"), std::string::npos) << unknown.message;
}

TEST(SharedStoreFlags, RootsOfModelsDiffer) {
  EXPECT_NE(shared_root_of("a.b"), shared_root_of("a_b"));
  EXPECT_EQ(shared_root_of("Qwen2.5 ü").find_first_not_of("abcdefghijklmnopqrstuvwxyzQ0123456789_-"),
            std::string::npos);
}

}  // namespace
}  // namespace chasqui
