// Batches and files as they are written to disk and read again.
#include "api/batch/batch_job.h"

#include <gtest/gtest.h>

#include "api/batch/stored_file.h"

namespace chasqui {
namespace {

TEST(BatchJob, ComesBackFromDiskAsItWas) {
  BatchJob job;
  job.id = "batch_1";
  job.owner = 0xffff'ffff'ffff'fff1;
  job.serial = 12;
  job.input_file = "file-1";
  job.endpoint = "/v1/embeddings";
  job.window = "24h";
  job.metadata = {{"team", "search \"x\""}, {"", ""}};
  job.output_seconds = 7200;
  job.status = BatchStatus::finalizing;
  job.end = BatchStatus::expired;
  job.created = 100;
  job.expires = 200;
  job.in_progress = 110;
  job.finalizing = 150;
  job.output_file = "file-o";
  job.error_file = "file-e";
  job.has_output = true;
  job.counts = {5, 3, 1};
  job.faults = {{"invalid_json_line", "line 3: no", "url", 3}};
  const std::string text = job_text(job);
  const auto back = read_job(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(job_text(*back), text);
  EXPECT_EQ(back->owner, job.owner);
  EXPECT_EQ(back->end, BatchStatus::expired);
}

TEST(BatchJob, WhatIsNotWholeIsNotRead) {
  EXPECT_FALSE(read_job("{}"));
  EXPECT_FALSE(read_job(""));
  EXPECT_FALSE(read_file_meta(R"({"id":"file-1"})"));
}

TEST(BatchJob, TellsClientsWhatOpenAiTells) {
  BatchJob job;
  job.id = "batch_1";
  job.status = BatchStatus::completed;
  job.ended = 7;
  std::string out;
  JsonWriter json(out);
  write_job(json, job);
  EXPECT_NE(out.find(R"("errors":null)"), std::string::npos) << out;
  EXPECT_NE(out.find(R"("output_file_id":null)"), std::string::npos) << out;
  EXPECT_NE(out.find(R"("completed_at":7,"failed_at":null)"), std::string::npos) << out;
  EXPECT_NE(out.find(R"("request_counts":{"total":0,"completed":0,"failed":0})"), std::string::npos) << out;
}

TEST(StoredFile, ComesBackFromDiskAsItWas) {
  const StoredFile file{"file-1", 77, 3, "../\"x\".jsonl", "batch", 1ull << 40, 100, 200};
  const auto back = read_file_meta(file_meta(file));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(file_meta(*back), file_meta(file));
}

TEST(BatchJob, AWindowIsAWholeNumberWithAUnit) {
  EXPECT_EQ(window_seconds("24h"), 86'400);
  EXPECT_EQ(window_seconds("30d"), 30 * 86'400);
  EXPECT_EQ(window_seconds("90s"), 90);
  EXPECT_EQ(window_seconds("5m"), 300);
  for (const char* const text : {"", "h", "24", "0h", "-1h", "1.5h", "31d", "24 h", "24H", "99999999999999999999s"}) {
    EXPECT_FALSE(window_seconds(text)) << text;
  }
  EXPECT_FALSE(window_seconds(std::string(1000, '0') + "1h")) << "it would be kept as it is";
}

}  // namespace
}  // namespace chasqui
