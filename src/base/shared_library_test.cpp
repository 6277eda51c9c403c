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

TEST(SharedLibrary, SaysWhetherItServesAndWhyNot) {
  int (*weight)(int) = nullptr;
  int (*send)(int) = nullptr;
  SharedLibrary here({kHere});
  here.find("parcel_weight", weight);
  EXPECT_TRUE(here.serves());
  here.find("parcel_send", send);
  EXPECT_FALSE(here.serves());
  EXPECT_EQ(here.fault("libparcel"), "the libparcel of this machine is too old, it has no parcel_send");

  SharedLibrary nowhere({kNowhere});
  nowhere.find("parcel_weight", weight);
  EXPECT_EQ(weight, nullptr);
  EXPECT_FALSE(nowhere.serves());
  const std::string fault = nowhere.fault("libparcel");
  EXPECT_TRUE(fault.starts_with("there is no libparcel on this machine (")) << fault;
  EXPECT_NE(fault.find(kNowhere), std::string::npos) << fault;
}

struct Parcel {
  int loads = 0;
};
struct LostParcel {};
int parcel_loads = 0;

Result<Parcel> load_parcel() { return Parcel{++parcel_loads}; }
Result<LostParcel> lose_parcel() {
  ++parcel_loads;
  return Error{ErrorCode::not_supported, "there is none", ""};
}

TEST(SharedLibrary, IsLoadedOnce) {
  const auto first = loaded_once(load_parcel);
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)->loads, 1);
  EXPECT_EQ(*loaded_once(load_parcel), *first);
  for (int i = 0; i < 2; ++i) {
    const auto lost = loaded_once(lose_parcel);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().message, "there is none");
  }
  EXPECT_EQ(parcel_loads, 2) << "an error stays, too";
}

}  // namespace
}  // namespace chasqui
