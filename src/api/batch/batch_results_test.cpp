// Results of a batch: each line is in one file of results, once, wherever a process has ended.
#include "api/batch/batch_results.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/batch/line_exchange.h"

namespace chasqui {
namespace {

namespace json = boost::json;

class BatchResultsTest : public testing::Test {
 protected:
  BatchResultsTest() {
    std::string pattern = testing::TempDir() + "results-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    folder_ = *JobFolder::open(path_);
    job_.id = "batch_1";
    job_.input_file = "in";
    job_.endpoint = "/v1/completions";
    job_.output_file = "out";
    job_.error_file = "err";
    std::string input;
    for (int i = 1; i <= kLines; ++i) {
      input += R"({"custom_id":"id-)" + std::to_string(i) +
               R"(","method":"POST","url":"/v1/completions","body":{"prompt":"x"}})" + "\n";
    }
    EXPECT_TRUE(folder_->put("in.bytes", input));
  }
  ~BatchResultsTest() override { std::filesystem::remove_all(path_); }

  static AnsweredLine answer(std::uint32_t number, int status = 200) {
    return {number, "id-" + std::to_string(number), "req", status, "{\"n\":\n" + std::to_string(number) + "}", {}};
  }
  // How often each id is in a file.
  void count(const std::string& name, std::map<std::string, int>& ids) const {
    const auto text = folder_->read(name, 1 << 20);
    if (!text) return;
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t end = text->find('\n', at);
      ASSERT_NE(end, std::string::npos);
      const json::value line = json::parse(text->substr(at, end - at));
      ++ids[std::string(line.at("custom_id").as_string())];
      at = end + 1;
    }
  }

  static constexpr int kLines = 40;
  std::string path_;
  std::shared_ptr<JobFolder> folder_;
  BatchJob job_;
};

TEST_F(BatchResultsTest, AnswersGoToOneFileAndErrorsToTheOther) {
  job_.end = BatchStatus::expired;
  ASSERT_TRUE(find_results(*folder_, job_.id));
  ASSERT_TRUE(append_results(*folder_, job_.id, 0, {answer(2), answer(1, 400)}));
  const auto written = write_result_files(*folder_, job_);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->unanswered, kLines - 2U);
  std::map<std::string, int> ids;
  count("out.bytes", ids);
  EXPECT_EQ(ids, (std::map<std::string, int>{{"id-2", 1}}));
  count("err.bytes", ids);
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kLines));
  const std::string output = *folder_->read("out.bytes", 1 << 20);
  EXPECT_NE(output.find(R"("response":{"status_code":200,"request_id":"req","body":{"n": 2}})"), std::string::npos)
      << output;
  EXPECT_NE(folder_->read("err.bytes", 1 << 20)->find(R"("error":{"code":"batch_expired")"), std::string::npos);
}

TEST_F(BatchResultsTest, ABatchWithoutErrorsHasNoErrorFile) {
  ASSERT_TRUE(find_results(*folder_, job_.id));
  ASSERT_TRUE(append_results(*folder_, job_.id, 0, {answer(1)}));
  const auto written = write_result_files(*folder_, job_);
  ASSERT_TRUE(written);
  EXPECT_GT(written->output_bytes, 0U);
  EXPECT_EQ(written->error_bytes, 0U);
  EXPECT_FALSE(folder_->open_file("err.bytes"));
}

// A process takes the next lines that have no result, answers them in any order, and ends in the middle of a write.
TEST_F(BatchResultsTest, EachLineHasOneResultWhereverProcessesEnd) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 40; ++trial) {
    ASSERT_TRUE(folder_->remove(results_name(job_.id)));
    const auto input = folder_->open_file("in.bytes");
    ASSERT_TRUE(input);
    for (bool ends = false; !ends;) {
      auto found = find_results(*folder_, job_.id);
      ASSERT_TRUE(found);
      std::uint64_t at = found->bytes;
      LinePlace next;
      for (bool killed = false; !killed && !ends;) {
        auto ahead = read_ahead(*input, job_.endpoint, next, found->done);
        ASSERT_TRUE(ahead);
        next = ahead->next;
        std::vector<AnsweredLine> lines;
        for (const WaitingLine& line : ahead->lines)
          lines.push_back(answer(line.place.number, random() % 4 ? 200 : 500));
        std::ranges::shuffle(lines, random);
        ends = lines.empty() && ahead->at_end;
        const auto bytes = append_results(*folder_, job_.id, at, lines);
        ASSERT_TRUE(bytes);
        at += *bytes;
        killed = random() % 2 == 0;
        if (killed && *bytes > 0) {
          std::filesystem::resize_file(path_ + "/" + results_name(job_.id), at - random() % *bytes);
          ends = false;
        }
      }
    }
    ASSERT_TRUE(write_result_files(*folder_, job_));
    std::map<std::string, int> ids;
    count("out.bytes", ids);
    count("err.bytes", ids);
    ASSERT_EQ(ids.size(), static_cast<std::size_t>(kLines)) << trial;
    for (const auto& [id, times] : ids) ASSERT_EQ(times, 1) << id;
    ASSERT_TRUE(folder_->remove("out.bytes"));
    ASSERT_TRUE(folder_->remove("err.bytes"));
  }
}

TEST_F(BatchResultsTest, ALineIsReadOnceMoreWithItsTries) {
  const auto input = folder_->open_file("in.bytes");
  const auto ahead = read_ahead(*input, job_.endpoint, {}, {});
  ASSERT_TRUE(ahead);
  WaitingLine line = ahead->lines.at(6);
  line.tries = 2;
  line.line = {};
  const auto again = read_again(*input, job_.endpoint, line);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->lines.at(0).line.custom_id, "id-7");
  EXPECT_EQ(again->lines.at(0).tries, 2U);
}

TEST(LineExchange, StoppingItIsAClientThatLeaves) {
  LineExchange exchange("/v1/completions", "{}", "req");
  EXPECT_EQ(exchange.take_body(), "{}");
  EXPECT_EQ(*exchange.request().header("X-Request-Id"), "req");
  int told = 0;
  exchange.on_client_gone([&] { ++told; });
  EXPECT_FALSE(exchange.client_gone());
  exchange.stop();
  exchange.stop();
  EXPECT_TRUE(exchange.client_gone());
  EXPECT_EQ(told, 1);
  exchange.on_client_gone([&] { ++told; });
  EXPECT_EQ(told, 2) << "it has gone already";
  EXPECT_FALSE(exchange.answered());
}

}  // namespace
}  // namespace chasqui
