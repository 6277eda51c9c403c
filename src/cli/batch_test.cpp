#include "cli/batch.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

TEST(Batch, TakesItsEndpointFromTheFirstLineWithARequest) {
  const auto endpoint = endpoint_of("\n  \r\n{\"custom_id\":\"a\",\"url\":\"/v1/embeddings\"}\n{\"url\":\"/v1/x\"}\n");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(*endpoint, "/v1/embeddings");
  for (const char* bad : {"", "\n\n", "[1]\n", "{\"url\":1}\n", "no JSON"}) {
    EXPECT_FALSE(endpoint_of(bad)) << bad;
  }
}

TEST(Batch, UploadsAFileBetweenBoundariesThatItDoesNotHave) {
  const Upload upload = upload_of("a\"b\r\n.jsonl", "{\"x\":\"--chasqui-batch-\"}\n");
  EXPECT_EQ(upload.type, "multipart/form-data; boundary=chasqui-batch--");
  EXPECT_EQ(upload.body,
            "--chasqui-batch--\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
            "--chasqui-batch--\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a_b__.jsonl\"\r\n"
            "Content-Type: application/jsonl\r\n\r\n{\"x\":\"--chasqui-batch-\"}\n\r\n--chasqui-batch----\r\n");
}

}  // namespace
}  // namespace chasqui::cli
