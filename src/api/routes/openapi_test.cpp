#include "api/routes/openapi.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/body/generation_fields.h"
#include "api/core/errors.h"

namespace chasqui {
namespace {

namespace json = boost::json;

json::object document() { return json::parse(openapi_document(all_routes())).as_object(); }

TEST(OpenApi, EveryRouteIsDescribed) {
  for (const Route& route : all_routes()) {
    EXPECT_FALSE(route.text.summary.empty()) << net::name(route.method) << ' ' << route.path;
    EXPECT_NE(route.dialect, nullptr) << route.path;
  }
}

TEST(OpenApi, EveryRouteStandsInTheDocumentation) {
  std::string docs;
  for (const auto& file : std::filesystem::directory_iterator(CHASQUI_SOURCE_DIR "/docs")) {
    if (file.path().extension() != ".md") continue;
    std::ifstream in(file.path());
    docs.append(std::istreambuf_iterator<char>(in), {});
  }
  for (const Route& route : all_routes()) {
    EXPECT_NE(docs.find(route.path), std::string::npos) << route.path << " is in no page of docs/";
  }
}

TEST(OpenApi, HasEachRouteOnceUnderItsPath) {
  const json::object all = document();
  std::size_t operations = 0;
  std::set<std::string> ids;
  for (const auto& [path, methods] : all.at("paths").as_object()) {
    for (const auto& [method, operation] : methods.as_object()) {
      ++operations;
      ids.insert(std::string(operation.at("operationId").as_string()));
      EXPECT_FALSE(operation.at("responses").as_object().empty()) << path;
    }
  }
  EXPECT_EQ(operations, all_routes().size());
  EXPECT_EQ(ids.size(), operations);
}

TEST(OpenApi, HasEveryGenerationFieldWithItsType) {
  const json::object all = document();
  const json::object& fields = all.at("components").at("schemas").at("GenerationFields").at("properties").as_object();
  for (const GenerationField& field : generation_fields()) {
    if (field.name.find('.') != std::string_view::npos) continue;
    ASSERT_TRUE(fields.contains(field.name)) << field.name;
    EXPECT_TRUE(fields.at(field.name).as_object().contains("type")) << field.name;
  }
  EXPECT_EQ(fields.at("temperature").at("minimum").to_number<double>(), 0);
  EXPECT_TRUE(fields.contains("n_predict")) << "other names count, too";
}

TEST(OpenApi, OpenRoutesNeedNoKeyAndOthersDo) {
  const json::object all = document();
  EXPECT_TRUE(all.at("paths").at("/health").at("get").at("security").as_array().empty());
  EXPECT_FALSE(all.at("paths").at("/props").at("get").as_object().contains("security"));
  EXPECT_EQ(all.at("security").as_array().size(), 2u);
}

TEST(OpenApi, TheDocumentationHasThisDocument) {
  const std::string document = openapi_document(all_routes()) + "\n";
  std::ofstream(CHASQUI_BINARY_DIR "/openapi.json") << document;
  std::ifstream file(CHASQUI_SOURCE_DIR "/docs/openapi.json");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == document) << "copy " CHASQUI_BINARY_DIR "/openapi.json to docs";
}

}  // namespace
}  // namespace chasqui
