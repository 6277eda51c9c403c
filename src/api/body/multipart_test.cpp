// Uploads as clients send them, and as none should.
#include "api/body/multipart.h"

#include <random>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

const std::string kForm =
    "--B\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".jsonl\"\r\n"
    "Content-Type: application/octet-stream\r\n\r\n{}\r\n--Bx\r\n{}\n\r\n--B--\r\n";

TEST(Multipart, ABoundaryIsReadFromTheContentType) {
  EXPECT_EQ(*form_boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(*form_boundary("Multipart/Form-Data;charset=utf-8; Boundary=\"a b;c\""), "a b;c");
  for (const std::string& type :
       {std::string("application/json"), std::string("multipart/form-data"), std::string(),
        std::string("multipart/form-data; boundary="), std::string("multipart/form-data; boundary=\"abc"),
        "multipart/form-data; boundary=" + std::string(71, 'x')}) {
    const auto boundary = form_boundary(type);
    ASSERT_FALSE(boundary) << type;
    EXPECT_EQ(boundary.error().field, "Content-Type");
  }
}

TEST(Multipart, PartsAreViewsOfTheBodyUpToTheirDelimiter) {
  const auto form = read_form(kForm, "B");
  ASSERT_TRUE(form) << form.error().message;
  ASSERT_EQ(form->size(), 2U);
  EXPECT_EQ(form->at(0).name, "purpose");
  EXPECT_EQ(form->at(0).content, "batch");
  EXPECT_FALSE(form->at(0).filename);
  EXPECT_EQ(*form->at(1).filename, "a \"b\".jsonl");
  EXPECT_EQ(form->at(1).content, "{}\r\n--Bx\r\n{}\n") << "another boundary that begins with it is text";
}

TEST(Multipart, PreambleBlanksAndEmptyPartsAreAllowed) {
  const auto form = read_form("hello\r\n--B \t\r\nContent-Disposition: form-data; name=x\r\n\r\n\r\n--B--", "B");
  ASSERT_TRUE(form) << form.error().message;
  EXPECT_EQ(form->at(0).name, "x");
  EXPECT_EQ(form->at(0).content, "");
  const auto empty = read_form("--B\r\nContent-Disposition: form-data; name=x\r\n\r\n--B--", "B");
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->at(0).content, "");
  EXPECT_TRUE(read_form("--B--", "B"));
}

TEST(Multipart, AFaultyFormIsRefusedWithItsFault) {
  const std::string head = "--B\r\nContent-Disposition: form-data; name=\"x\"\r\n";
  const std::pair<std::string, std::string> faults[] = {
      {"", "boundary"},
      {"{}", "boundary"},
      {"--B", "after its first boundary"},
      {"--B\r\n", "headers do not end"},
      {head + "\r\nabc", "ends before"},
      {head + "\r\nabc\r\n--C--", "ends before"},
      {head + "nonsense\r\n\r\nabc\r\n--B--", "no colon"},
      {head + "Content-Transfer-Encoding: base64\r\n\r\nabc\r\n--B--", "Content-Transfer-Encoding"},
      {"--B\r\nContent-Type: text/plain\r\n\r\nabc\r\n--B--", "without a name"},
      {"--B\r\n\r\nabc\r\n--B--", "without a name"},
      {"--B\r\nContent-Disposition: attachment; name=x\r\n\r\nabc\r\n--B--", "not form-data"},
      {"--B\r\nContent-Disposition: form-data; name=\"x\r\n\r\nabc\r\n--B--", "cannot be read"},
      {"--B\r\n" + std::string(9000, 'h') + ": x\r\n\r\nabc\r\n--B--", "headers do not end"},
  };
  for (const auto& [body, why] : faults) {
    const auto form = read_form(body, "B");
    ASSERT_FALSE(form) << body;
    EXPECT_NE(form.error().message.find(why), std::string::npos) << body << ": " << form.error().message;
  }
  std::string many;
  for (int i = 0; i < 17; ++i) many += head + "\r\n\r\n";
  EXPECT_FALSE(read_form(many + "--B--", "B"));
}

// Whatever bytes come, views stay inside the body.
TEST(Multipart, ChangedFormsAreReadOrRefused) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string body = kForm;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % body.size();
      switch (random() % 3) {
        case 0: body[at] = static_cast<char>(random()); break;
        case 1: body.erase(at, 1 + random() % 9); break;
        default: body.insert(at, kForm.substr(random() % kForm.size(), random() % 9));
      }
    }
    const auto form = read_form(body, "B");
    if (!form) continue;
    for (const FormPart& part : *form) {
      ASSERT_GE(part.content.data(), body.data());
      ASSERT_LE(part.content.data() + part.content.size(), body.data() + body.size());
    }
  }
}

}  // namespace
}  // namespace chasqui
