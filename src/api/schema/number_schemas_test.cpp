// Numbers within the bounds of a schema, and multiples.
#include <gtest/gtest.h>

#include "api/schema/test_schema.h"

namespace chasqui {
namespace {

void check_numbers(const std::vector<SchemaCase>& cases) { EXPECT_EQ(wrong_texts(cases), ""); }

TEST(NumberSchemas, KeepsBoundsOfNumbers) {
  check_numbers({
      {R"({"type":"integer","minimum":-12,"maximum":345})",
       {"-12", "-9", "0", "9", "99", "345", "300", "279"},
       {"-13", "346", "350", "1000", "-0", "-100", "01", "1.0"}},
      {R"({"type":"integer","minimum":5})", {"5", "10", "4999"}, {"4", "0", "-5"}},
      {R"({"type":"integer","exclusiveMinimum":99,"exclusiveMaximum":130})",
       {"100", "129"},
       {"99", "130", "13", "1000"}},
      {R"({"type":"integer","minimum":1.5,"maximum":3.5})", {"2", "3"}, {"1", "4"}},
      {R"({"type":"number","minimum":0})", {"0", "0.5", "12.25", "0.0"}, {"-1", "-0.1", ".5", "1."}},
      {R"({"type":"number","exclusiveMinimum":0,"maximum":1})",
       {"0.01", "1", "1.0", "0.99", "0.0001"},
       {"0", "0.0", "1.01", "1.00001", "2", "-1"}},
      {R"({"type":"number","minimum":-1.25,"exclusiveMaximum":2.5})",
       {"-1.25", "-1.2", "-0.7", "0", "2.49", "2", "-1"},
       {"-1.26", "-1.3", "2.5", "2.50", "3", "-2"}},
      {R"({"minimum":0.1,"maximum":0.15})",
       {"0.1", "0.10", "0.12", "0.15", "0.149"},
       {"0.2", "0.151", "0", "1", "0.09"}},
      {R"({"type":"number","minimum":3,"exclusiveMinimum":true})", {"3.1", "4"}, {"3", "3.0"}},
      {R"({"type":"integer","format":"int32"})", {"2147483647", "-2147483648"}, {"2147483648", "-2147483649"}},
      {R"({"type":"number","minimum":-1.7976931348623157e308})", {"-5", "7.5"}, {}},
  });
}

TEST(NumberSchemas, KeepsMultiples) {
  check_numbers({
      {R"({"type":"integer","multipleOf":3})", {"0", "3", "-12", "300", "111111111"}, {"1", "-2", "100", "3.0"}},
      {R"({"type":"integer","multipleOf":7,"minimum":20,"maximum":50})", {"21", "28", "49"}, {"14", "20", "50", "56"}},
      {R"({"type":"number","multipleOf":0.01})", {"0", "1.5", "2.25", "-3.10", "7"}, {"1.255", "0.001"}},
      {R"({"type":"number","multipleOf":2.5,"minimum":0})", {"0", "2.5", "5", "7.5", "10.0"}, {"2", "3.5", "2.4"}},
      {R"({"allOf":[{"multipleOf":4},{"multipleOf":6}],"type":"integer"})", {"12", "24", "0"}, {"4", "6", "18"}},
      {R"({"type":"number","multipleOf":1})", {"0", "7", "-12"}, {"1.5", "0.1", "-0.5"}},
      {R"({"type":"number","allOf":[{"multipleOf":0.5},{"multipleOf":1}]})", {"0", "3"}, {"0.5", "2.5"}},
      {R"({"type":"integer","multipleOf":0.25})", {"0", "3"}, {"0.25"}},
      {R"({"type":"integer","minimum":0,"maximum":1000000,"multipleOf":1000})",
       {"0", "1000", "100000", "1000000"},
       {"500", "100", "1001000", "-1000"}},
      {R"({"type":"integer","multipleOf":500})", {"0", "500", "10000", "-1500", "123456500"}, {"50", "250", "00", "5"}},
      {R"({"type":"integer","minimum":99500,"multipleOf":1000})", {"100000", "1234000"}, {"99000", "99500", "0"}},
      {R"({"type":"integer","exclusiveMinimum":1000,"maximum":3500,"multipleOf":1000})",
       {"2000", "3000"},
       {"1000", "4000"}},
      {R"({"type":"integer","maximum":-500,"multipleOf":1000})", {"-1000", "-25000"}, {"0", "-500", "-0"}},
  });
}

}  // namespace
}  // namespace chasqui
