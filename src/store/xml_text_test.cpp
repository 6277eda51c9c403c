#include "store/xml_text.h"

#include <gtest/gtest.h>

namespace chasqui::store {
namespace {

std::string nested(std::size_t depth, std::string_view inside = {}) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += "<a>";
  text += inside;
  for (std::size_t i = 0; i < depth; ++i) text += "</a>";
  return text;
}

TEST(XmlText, ReadsElementsWithoutTheirPrefixes) {
  const auto read = read_xml(
      "<?xml version=\"1.0\" encoding='utf-8'?>\n<D:multistatus xmlns:D=\"DAV:\"><D:response a='>'>"
      "<lp1:href>/a&amp;b &#x41;</lp1:href><empty/></D:response>\n<D:response/></D:multistatus>\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "multistatus");
  ASSERT_EQ(read->children.size(), 2u);
  EXPECT_EQ(read->children[0].text_of("href"), "/a&b A");
  EXPECT_NE(read->children[0].child("empty"), nullptr);
  EXPECT_EQ(read->children[0].child("none"), nullptr);
  EXPECT_EQ(read->children[1].text_of("href"), "");
}

TEST(XmlText, RefusesWhatIsNone) {
  for (const char* text : {"", "text", "<", "<a", "<a>", "</a>", "<a></a></a>", "<a><b></a>", "<a/><b/>", "<?",
                           "<a b=\"></a>", "<a b=c/>", "<a b'c='d'></a>", "{\"json\": true}", "<a>\xff</a", "<a></a"}) {
    EXPECT_FALSE(read_xml(text)) << text;
  }
  EXPECT_FALSE(read_xml(std::string_view("<a>\0</a>", 8)));
}

TEST(XmlText, RefusesDeclarationsCommentsAndCdata) {
  for (const char* text :
       {"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a><!-- </a> --></a>", "<a><![CDATA[<a>]]></a>"}) {
    EXPECT_FALSE(read_xml(text)) << text;
  }
}

TEST(XmlText, HasALimitOfDepth) {
  EXPECT_TRUE(read_xml(nested(kXmlDepthMax)));
  EXPECT_FALSE(read_xml(nested(kXmlDepthMax + 1)));
  EXPECT_FALSE(read_xml(nested(1'000'000)));
  // What looks like an end and is none.
  for (const char* inside : {"<b c=\"</a>\">", "<b c='/>'>", "<?x </a> ?>", "<b c = \"/>\" >"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += std::string("<a>") + inside;
    EXPECT_FALSE(read_xml(text)) << inside;
  }
}

TEST(XmlText, HasALimitOfSize) {
  EXPECT_TRUE(read_xml(nested(2, std::string(100'000, ' '))));
  EXPECT_FALSE(read_xml(nested(2, std::string(kXmlMax, ' '))));
}

}  // namespace
}  // namespace chasqui::store
