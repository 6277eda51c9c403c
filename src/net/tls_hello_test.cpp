#include "net/tls_hello.h"

#include <string>

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

TEST(TlsHello, WantsTheHeaderFirst) {
  for (const std::string& begun : {std::string(), bytes({22}), bytes({22, 3, 1, 2}), std::string("GET ")}) {
    EXPECT_EQ(tls_record_bytes(begun), 5u);
  }
}

TEST(TlsHello, ThenTheWholeRecord) {
  EXPECT_EQ(tls_record_bytes(bytes({22, 3, 1, 0, 0})), 5u);
  EXPECT_EQ(tls_record_bytes(bytes({22, 3, 1, 2, 0})), 5u + 512);
  EXPECT_EQ(tls_record_bytes(bytes({22, 3, 3, 0x48, 0, 1, 0})), 5u + 18 * 1024);
}

// It is refused by what is there: waiting for more would be waiting for what never comes.
TEST(TlsHello, WantsNoMoreOfWhatIsNone) {
  EXPECT_EQ(tls_record_bytes("GET / HTTP/1.1"), 5u);
  EXPECT_EQ(tls_record_bytes(bytes({22, 3, 1, 0xff, 0xff})), 5u) << "longer than a record can be";
  EXPECT_EQ(tls_record_bytes(bytes({22, 2, 1, 2, 0})), 5u) << "no version";
  EXPECT_EQ(tls_record_bytes(bytes({21, 3, 1, 0, 2})), 5u) << "an alert";
}

}  // namespace
}  // namespace chasqui::net
