#include "base/shared_library.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr const char* kNowhere = "/nowhere/libnowhere.so.1";
constexpr const char* kHere = CHASQUI_BINARY_DIR "/test_libraries/parcel.so";

TEST(SharedLibrary, SaysWhyThereIsNone) {
  const SharedLibrary library({kNowhere, "/nowhere/libother.so.1"});
  EXPECT_FALSE(library.loaded());
  EXPECT_NE(library.why().find(kNowhere), std::string::npos) << library.why();
}

TEST(SharedLibrary, TakesTheFirstNameThatThereIs) {
  const SharedLibrary library({kNowhere, kHere});
  EXPECT_TRUE(library.loaded());
  EXPECT_EQ(library.why(), "");
}

TEST(SharedLibrary, FindsFunctions) {
  SharedLibrary library({kHere});
  int (*weight)(int) = nullptr;
  library.find("parcel_weight", weight);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight(6), 42);
  EXPECT_EQ(library.missing(), "");
}

TEST(SharedLibrary, NamesTheFirstFunctionThatIsMissing) {
  SharedLibrary library({kHere});
  int (*weight)(int) = nullptr;
  int (*send)(int) = [](int parcels) { return parcels; };
  int (*lose)(int) = nullptr;
  library.find("parcel_send", send);
  library.find("parcel_weight", weight);
  library.find("parcel_lose", lose);
  EXPECT_EQ(send, nullptr);
  EXPECT_NE(weight, nullptr);
  EXPECT_EQ(lose, nullptr);
  EXPECT_EQ(library.missing(), "parcel_send");
}

}  // namespace
}  // namespace chasqui
